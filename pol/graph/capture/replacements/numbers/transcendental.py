"""Functions of numbers by operations that have rules: trigonometric, hyperbolic, gamma and error functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import in_binary32, replaces

_LARGE = 1e9
"""Beyond it x^2 + 1 is x^2."""

# Polynomials from the highest power down.
# atan(x) / x - 1 in x^2 for |x| <= tan(pi / 8), divided by x^2 (Moshier's Cephes).
_ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
# erfinv(x) / x in w = -log(1 - x^2): for w < 5 in w - 2.5, else in sqrt(w) - 3 (Giles, "Approximating the erfinv
# function", 2010).
_ERFINV_CENTER = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
# log(erfc(x) / t) + x^2 in t = 1 / (1 + x / 2) for x >= 0 (Numerical Recipes, erfcc).
_ERFC = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
    -1.26551223,
)  # fmt: skip
# Lanczos' series of the gamma function (Numerical Recipes, gammln).
_LANCZOS = (76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3,
            -5.395239384953e-6)  # fmt: skip
_SHIFT = 6
"""Recurrences before the asymptotic series of digamma and trigamma."""


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    total = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _is_negative(x: Tensor) -> Tensor:
    """The sign bit, also of -0."""
    return torch.where(x == 0, 1.0 / x, x) < 0


def _odd(x: Tensor, size: Tensor) -> Tensor:
    """The size with the sign of x."""
    return torch.where(_is_negative(x), -size, size)


@replaces("tan.default")
@in_binary32
def _tan(x: Tensor) -> Tensor:
    """sin(x) / cos(x)."""
    return torch.sin(x) / torch.cos(x)


@replaces("sinh.default")
@in_binary32
def _sinh(x: Tensor) -> Tensor:
    # (e^a - e^-a) / 2 = (p + p / (p + 1)) / 2 with p = e^a - 1.
    size = torch.abs(x)
    power = torch.expm1(size)
    fall = torch.where(size < 1, power / (power + 1.0), 1.0 - 1.0 / (power + 1.0))
    return _odd(x, 0.5 * power + 0.5 * fall)


@replaces("cosh.default")
@in_binary32
def _cosh(x: Tensor) -> Tensor:
    power = torch.exp(torch.abs(x))
    return 0.5 * power + 0.5 / power


@replaces("asinh.default")
@in_binary32
def _asinh(x: Tensor) -> Tensor:
    size = torch.abs(x)
    square = size * size
    near = torch.log1p(size + square / (1.0 + torch.sqrt(square + 1.0)))
    return _odd(x, torch.where(size > _LARGE, torch.log(size) + math.log(2), near))


@replaces("acosh.default")
@in_binary32
def _acosh(x: Tensor) -> Tensor:
    above = x - 1.0
    near = torch.log1p(above + torch.sqrt(above * (above + 2.0)))
    return torch.where(x > _LARGE, torch.log(x) + math.log(2), near)


@replaces("atanh.default")
@in_binary32
def _atanh(x: Tensor) -> Tensor:
    size = torch.abs(x)
    return _odd(x, 0.5 * torch.log1p(2.0 * size / (1.0 - size)))


def _atan_of_size(size: Tensor) -> Tensor:
    """atan for x >= 0: about 0, 1 or infinity."""
    is_far, is_middle = size > math.tan(3 * math.pi / 8), size > math.tan(math.pi / 8)
    inner = torch.where(is_middle, (size - 1.0) / (size + 1.0), size)
    inner = torch.where(is_far, -1.0 / size, inner)
    base = torch.where(is_far, math.pi / 2, torch.where(is_middle, math.pi / 4, 0.0)).to(size.dtype)
    square = inner * inner
    return base + (_polynomial(square, _ATAN) * square * inner + inner)


@replaces("atan.default")
@in_binary32
def _atan(x: Tensor) -> Tensor:
    return _odd(x, _atan_of_size(torch.abs(x)))


@replaces("atan2.default")
@in_binary32
def _atan2(y: Tensor, x: Tensor) -> Tensor:
    height, width = torch.abs(y), torch.abs(x)
    ratio = torch.where(height == width, 1.0, height / width)
    ratio = torch.where(height == 0, 0.0, ratio)
    angle = _atan_of_size(ratio)
    return _odd(y, torch.where(_is_negative(x), math.pi - angle, angle))


@replaces("asin.default")
@in_binary32
def _asin(x: Tensor) -> Tensor:
    size = torch.abs(x)
    return _odd(x, _atan_of_size(size / torch.sqrt((1.0 - size) * (1.0 + size))))


@replaces("acos.default")
@in_binary32
def _acos(x: Tensor) -> Tensor:
    return 2.0 * _atan_of_size(torch.sqrt((1.0 - x) / (1.0 + x)))


@replaces("special_erfcx.default")
@in_binary32
def _scaled_erfc(x: Tensor) -> Tensor:
    size = torch.abs(x)
    t = 1.0 / (1.0 + 0.5 * size)
    far = t * torch.exp(_polynomial(t, _ERFC))
    return torch.where(x < 0, 2.0 * torch.exp(x * x) - far, far)


@replaces("special_log_ndtr.default")
@in_binary32
def _log_of_normal_share(x: Tensor) -> Tensor:
    turned = x * math.sqrt(0.5)
    low = torch.log(0.5 * _scaled_erfc(-turned)) - turned * turned
    return torch.where(x < -1.0, low, torch.log1p(-0.5 * _erfc(turned)))


@replaces("erfc.default")
@in_binary32
def _erfc(x: Tensor) -> Tensor:
    size = torch.abs(x)
    t = 1.0 / (1.0 + 0.5 * size)
    far = t * torch.exp(_polynomial(t, _ERFC) - size * size)
    return torch.where(x < 0, 2.0 - far, far)


@replaces("erfinv.default")
@in_binary32
def _erfinv(x: Tensor) -> Tensor:
    w = -torch.log((1.0 - x) * (1.0 + x))
    inner = torch.where(w < 5.0, _polynomial(w - 2.5, _ERFINV_CENTER), _polynomial(torch.sqrt(w) - 3.0, _ERFINV_TAIL))
    return torch.where(torch.abs(x) == 1.0, x * math.inf, inner * x)


@replaces("special_ndtri.default")
@in_binary32
def _normal_quantile(p: Tensor) -> Tensor:
    return _erfinv(2.0 * p - 1.0) * math.sqrt(2)


def _sine_of_turns(x: Tensor) -> Tensor:
    """sin(pi x)."""
    return torch.sin(math.pi * (x - torch.floor(x)))


@replaces("lgamma.default")
@in_binary32
def _lgamma(x: Tensor) -> Tensor:
    is_low = x < 0.5
    y = torch.where(is_low, 1.0 - x, x)
    series = torch.full_like(y, 1.000000000190015)
    for number, coefficient in enumerate(_LANCZOS, 1):
        series = series + coefficient / (y + number)
    above = y + 5.5
    value = ((y + 0.5) * torch.log(above) - above) + torch.log(math.sqrt(2 * math.pi) * series / y)
    # Gamma(x) Gamma(1 - x) = pi / sin(pi x).
    reflected = torch.log(math.pi / torch.abs(_sine_of_turns(x))) - value
    return torch.where(is_low, reflected, value)


@replaces("mvlgamma.default")
@in_binary32
def _mvlgamma(x: Tensor, p: int) -> Tensor:
    parts = sum((_lgamma(x - 0.5 * number) for number in range(1, p)), _lgamma(x))
    return parts + p * (p - 1) / 4 * math.log(math.pi)


@replaces("digamma.default")
@in_binary32
def _digamma(x: Tensor) -> Tensor:
    is_low = x < 0.5
    y = torch.where(is_low, 1.0 - x, x)
    lost = sum((1.0 / (y + number) for number in range(1, _SHIFT)), 1.0 / y)
    z = 1.0 / (y + _SHIFT)
    square = z * z
    series = _polynomial(square, (1 / 252, -1 / 120, 1 / 12)) * square
    value = ((-torch.log(z) - 0.5 * z) - series) - lost
    turn = math.pi * (x - torch.floor(x))
    reflected = value - math.pi * torch.cos(turn) / torch.sin(turn)
    return torch.where(is_low, reflected, value)


@replaces("polygamma.default")
def _polygamma(order: int, x: Tensor) -> Any:
    if order != 1:
        return NotImplemented
    return _trigamma(x)


@in_binary32
def _trigamma(x: Tensor) -> Tensor:
    is_low = x < 0.5
    y = torch.where(is_low, 1.0 - x, x)
    lost = sum((1.0 / ((y + number) * (y + number)) for number in range(1, _SHIFT)), 1.0 / (y * y))
    z = 1.0 / (y + _SHIFT)
    square = z * z
    series = _polynomial(square, (1 / 42, -1 / 30, 1 / 6)) * square * z
    value = ((z + 0.5 * square) + series) + lost
    slope = math.pi / _sine_of_turns(x)
    return torch.where(is_low, slope * slope - value, value)
