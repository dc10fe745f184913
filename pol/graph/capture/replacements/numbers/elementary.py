"""Small functions of numbers: signs, NaN, steps, bits, logits."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import in_binary32, replaces


def _is_negative(x: Tensor) -> Tensor:
    """The sign bit, also of -0."""
    return (torch.where(x == 0, 1.0 / x, x) < 0) if x.is_floating_point() else x < 0


@replaces("copysign.Tensor")
@in_binary32
def _copysign(size: Tensor, sign: Tensor) -> Tensor:
    size = torch.abs(size)
    return torch.where(_is_negative(sign), -size, size)


@replaces("copysign.Scalar")
@in_binary32
def _copysign_of_number(size: Tensor, sign: float) -> Tensor:
    size = torch.abs(size)
    return -size if math.copysign(1.0, sign) < 0 else size


@replaces("relu.default")
def _relu_of_integers(x: Tensor) -> Any:
    return NotImplemented if x.is_floating_point() else torch.clamp(x, min=0)


@replaces("signbit.default")
def _signbit(x: Tensor) -> Tensor:
    return _is_negative(x)


@replaces("frac.default")
def _frac(x: Tensor) -> Tensor:
    return x - torch.trunc(x)


@replaces("deg2rad.default")
@in_binary32
def _radians(x: Tensor) -> Tensor:
    return x * (math.pi / 180)


@replaces("rad2deg.default")
@in_binary32
def _degrees(x: Tensor) -> Tensor:
    return x * (180 / math.pi)


@replaces("ldexp.Tensor")
@in_binary32
def _ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    return x * torch.pow(2.0, exponent)


@replaces("round.decimals")
def _rounded(x: Tensor, *, decimals: int) -> Tensor:
    if not decimals or not x.is_floating_point():
        return torch.round(x)
    power = 10.0 ** abs(decimals)
    return torch.round(x * power) / power if decimals > 0 else torch.round(x / power) * power


@replaces("sinc.default")
@in_binary32
def _sinc(x: Tensor) -> Tensor:
    turn = x * math.pi
    return torch.where(x == 0, 1.0, torch.sin(turn) / turn)


@replaces("heaviside.default")
def _heaviside(x: Tensor, values: Tensor) -> Tensor:
    return torch.where(x == 0, values, (x > 0).to(values.dtype))


@replaces("fmax.default")
def _fmax(a: Tensor, b: Tensor) -> Tensor:
    return _without_nan(a, b, torch.maximum(a, b))


@replaces("fmin.default")
def _fmin(a: Tensor, b: Tensor) -> Tensor:
    return _without_nan(a, b, torch.minimum(a, b))


def _without_nan(a: Tensor, b: Tensor, chosen: Tensor) -> Tensor:
    if not chosen.is_floating_point():
        return chosen
    a, b = a.to(chosen.dtype), b.to(chosen.dtype)
    return torch.where(torch.isnan(a), b, torch.where(torch.isnan(b), a, chosen))


@replaces("isposinf.default")
def _isposinf(x: Tensor) -> Tensor:
    return x == math.inf


@replaces("isneginf.default")
def _isneginf(x: Tensor) -> Tensor:
    return x == -math.inf


@replaces("nan_to_num.default")
def _nan_to_num(
    x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.is_floating_point():
        return x.clone()
    most = torch.finfo(x.dtype).max
    x = torch.where(torch.isnan(x), 0.0 if nan is None else nan, x)
    x = torch.where(x == math.inf, most if posinf is None else posinf, x)
    return torch.where(x == -math.inf, -most if neginf is None else neginf, x)


@replaces("logit.default")
@in_binary32
def _logit(x: Tensor, eps: float | None = None) -> Tensor:
    inner = x if eps is None else torch.clamp(x, eps, 1.0 - eps)
    return torch.log(inner / (1.0 - inner))


@replaces("logit_backward.default")
@in_binary32
def _logit_backward(gradient: Tensor, x: Tensor, eps: float | None = None) -> Tensor:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    slope = gradient / (x * (1.0 - x))
    return torch.where((x >= low) & (x <= 1.0 - low), slope, outside)


@replaces("hypot.default")
@in_binary32
def _hypot(a: Tensor, b: Tensor) -> Tensor:
    # Divided by the greater one, no square overflows.
    a, b = torch.abs(a), torch.abs(b)
    most, least = torch.maximum(a, b), torch.minimum(a, b)
    ratio = torch.where(most == 0, 0.0, least / most)
    length = most * torch.sqrt(ratio * ratio + 1.0)
    return torch.where((a == math.inf) | (b == math.inf), math.inf, length)


@replaces("special_xlog1py.default")
@in_binary32
def _xlog1py(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(torch.isnan(y), math.nan, torch.where(x == 0, 0.0, x * torch.log1p(y)))


@replaces("special_entr.default")
@in_binary32
def _entropy(x: Tensor) -> Tensor:
    inner = torch.where(x == 0, 0.0, -x * torch.log(x))
    return torch.where(x < 0, -math.inf, inner)


@replaces("fmod.Scalar")
def _fmod_of_integers(x: Tensor, divisor: float) -> Any:
    if x.is_floating_point() or not isinstance(divisor, int) or divisor == 0:
        return NotImplemented
    rest = torch.remainder(torch.abs(x), abs(divisor))
    return torch.where(x < 0, -rest, rest)


@replaces("remainder.Scalar_Tensor")
def _remainder_of_number(number: float, divisor: Tensor) -> Tensor:
    return torch.remainder(torch.full_like(divisor, number), divisor)


@replaces("bitwise_xor.Scalar")
def _xor_with_number(x: Tensor, number: int) -> Tensor:
    return torch.bitwise_xor(x, torch.full_like(x, number))


@replaces("__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar")
def _shifted_left(x: Tensor, count: int) -> Any:
    if x.is_floating_point() or not 0 <= count < 31:
        return NotImplemented
    return x * (1 << count)


@replaces("__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar")
def _shifted_right(x: Tensor, count: int) -> Any:
    if x.is_floating_point() or not 0 <= count < 31:
        return NotImplemented
    return torch.floor_divide(x, 1 << count)


@replaces("__lshift__.Tensor")
def _shifted_left_by_tensor(x: Tensor, count: Tensor) -> Tensor:
    return torch.bitwise_left_shift(x, count)


@replaces("__rshift__.Tensor")
def _shifted_right_by_tensor(x: Tensor, count: Tensor) -> Tensor:
    return torch.bitwise_right_shift(x, count)


@replaces("pow.Scalar")
def _power_of_two(base: float, exponent: Tensor) -> Any:
    if exponent.is_floating_point() or type(base) is not int or base != 2:
        return NotImplemented
    return torch.bitwise_left_shift(torch.full_like(exponent, 1), exponent)
