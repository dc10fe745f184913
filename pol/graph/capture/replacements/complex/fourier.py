"""Discrete Fourier transforms as products with constant matrices: of n = a b by those of a and b (Cooley and Tukey)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.complex.pairs import Pairs, pairs_of, rule

_DIRECT = 32
"""Longest transform that is one product with a matrix, unless its length is prime."""
_LONGEST_PRIME = 1024
_NONE, _ROOT, _COUNT = 0, 1, 2
"""How a transform is scaled: not, by 1 / sqrt(n), by 1 / n."""


@lru_cache(maxsize=256)
def _turns(rows: int, columns: int, n: int) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi j k / n, j down and k across, rounded from binary64."""
    angle = 2 * math.pi / n * (np.outer(np.arange(rows), np.arange(columns)) % n)
    with _disable_current_modes():
        cos, sin = (torch.from_numpy(function(angle).astype(np.float32)) for function in (np.cos, np.sin))
    return cos, sin


def _transformed(z: Pairs, sign: int) -> Pairs:
    """sum over j of z[j] e^(sign 2 pi i j k / n) along the last dimension."""
    n = z.tensor.shape[-2]
    first = next((p for p in range(math.isqrt(n), 1, -1) if n % p == 0), 1)
    if n <= _DIRECT or first == 1:
        return _by_matrix(z, n, sign)
    second = n // first
    lead = z.tensor.shape[:-2]
    # j = second * j1 + j2, k = k1 + first * k2.
    grid = z.tensor.reshape(*lead, first, second, 2)
    inner = _transformed(Pairs(grid.transpose(-3, -2)), sign)  # over j1: (..., j2, k1)
    cos, sin = _turns(second, first, n)
    turned = _turned(inner, cos, sin, sign)
    outer = _transformed(Pairs(turned.tensor.transpose(-3, -2)), sign)  # over j2: (..., k1, k2)
    return Pairs(outer.tensor.transpose(-3, -2).reshape(*lead, n, 2))


def _turned(z: Pairs, cos: Tensor, sin: Tensor, sign: int) -> Pairs:
    """z e^(sign i a), element by element."""
    real, imag = z.real, z.imag
    if sign < 0:
        return pairs_of(real * cos + imag * sin, imag * cos - real * sin)
    return pairs_of(real * cos - imag * sin, imag * cos + real * sin)


def _by_matrix(z: Pairs, n: int, sign: int) -> Pairs:
    if n > _LONGEST_PRIME:
        raise UnsupportedError(
            f"a Fourier transform of {n} numbers, a prime, has no definition in pol: pad to a length of small factors, "
            f"such as {1 << n.bit_length()} (n=...)"
        )
    cos, sin = _turns(n, n, n)
    if z.rank == 1:
        return Pairs(_by_matrix(Pairs(z.tensor.unsqueeze(0)), n, sign).tensor.squeeze(0))
    real, imag = z.real, z.imag
    by_cos, by_sin = (real @ cos, imag @ cos), (real @ sin, imag @ sin)
    if sign < 0:
        return pairs_of(by_cos[0] + by_sin[1], by_cos[1] - by_sin[0])
    return pairs_of(by_cos[0] - by_sin[1], by_cos[1] + by_sin[0])


def _along(z: Pairs, dim: int, sign: int) -> Pairs:
    axis = z.axis(dim)
    moved = Pairs(z.tensor.transpose(axis, z.rank - 1))
    return Pairs(_transformed(moved, sign).tensor.transpose(axis, z.rank - 1))


def _scaled(tensor: Tensor, count: int, normalization: int) -> Tensor:
    factor = {_NONE: 1.0, _ROOT: 1 / math.sqrt(count), _COUNT: 1 / count}[normalization]
    return tensor if factor == 1 else tensor * factor


@rule("_fft_c2c")
def complex_to_complex(z: Pairs, dims: Sequence[int], normalization: int, forward: bool) -> Pairs:
    """Along each of the dimensions."""
    count = math.prod(z.tensor.shape[z.axis(dim)] for dim in dims)
    for dim in dims:
        z = _along(z, dim, -1 if forward else 1)
    return Pairs(_scaled(z.tensor, count, normalization))


@rule("_fft_r2c")
def real_to_complex(x: Tensor, dims: Sequence[int], normalization: int, onesided: bool) -> Pairs:
    """Of the last of the dimensions half stays, where onesided."""
    last = dims[-1] % x.dim()
    count = math.prod(x.shape[dim] for dim in dims)
    z = _along(pairs_of(x, torch.zeros_like(x)), last, -1)
    if onesided:
        z = Pairs(z.tensor.narrow(last, 0, x.shape[last] // 2 + 1))
    for dim in dims[:-1]:
        z = _along(z, dim, -1)
    return Pairs(_scaled(z.tensor, count, normalization))


@rule("_fft_c2r")
def complex_to_real(z: Pairs, dims: Sequence[int], normalization: int, last_size: int) -> Tensor:
    """The inverse of `real_to_complex`: the other half are conjugates; what imaginary parts they can't have is left."""
    last = z.axis(dims[-1])
    for dim in dims[:-1]:
        z = _along(z, dim, 1)
    half = z.tensor.narrow(last, 0, last_size // 2 + 1)
    rest = last_size - half.shape[last]
    if rest:
        mirrored = torch.flip(half.narrow(last, 1, rest), [last])
        half = torch.cat([half, pairs_of(mirrored.select(-1, 0), -mirrored.select(-1, 1)).tensor], last)
    count = math.prod([last_size, *(z.tensor.shape[z.axis(dim)] for dim in dims[:-1])])
    return _scaled(_along(Pairs(half), last, 1).real, count, normalization)
