"""Arithmetic of complex numbers on pairs of reals."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.complex.pairs import RULES, Operand, Pairs, Rule, as_pairs, pairs_of, parts_of, rule

_MOST_FACTORS = 8
"""Greatest exponent that is a product; others go through size and angle."""


@rule("real")
def _real(z: Operand) -> Any:
    return parts_of(z)[0]


@rule("imag")
def _imag(z: Pairs) -> Tensor:
    return z.imag


@rule("complex")
def _complex(real: Tensor, imag: Tensor) -> Pairs:
    return pairs_of(real, imag)


@rule("polar")
def _polar(size: Tensor, angle: Tensor) -> Pairs:
    return pairs_of(size * torch.cos(angle), size * torch.sin(angle))


@rule("_conj", "_conj_physical", "conj_physical", "conj")
def _conj(z: Pairs | complex) -> Any:
    return z.conjugate() if isinstance(z, complex) else pairs_of(z.real, -z.imag)


def _sum(a: Operand, b: Operand, alpha: Any, sign: int) -> Any:
    factor = sign if alpha == 1 else sign * alpha
    if factor != 1:
        b = _product(b, factor)
    return _added(a, b)


def _added(a: Operand, b: Operand) -> Pairs:
    (ra, ia), (rb, ib) = parts_of(a), parts_of(b)
    real = ra + rb
    imag = ia + ib if ia is not None and ib is not None else (ib if ia is None else ia)
    return pairs_of(real, imag if isinstance(imag, Tensor) else torch.full_like(real, imag or 0.0))


@rule("add.Tensor", "add.Scalar")
def _add(a: Operand, b: Operand, alpha: Any = 1) -> Any:
    return _sum(a, b, alpha, 1)


@rule("sub.Tensor", "sub.Scalar")
def _sub(a: Operand, b: Operand, alpha: Any = 1) -> Any:
    return _sum(a, b, alpha, -1)


@rule("rsub.Tensor", "rsub.Scalar")
def _rsub(a: Operand, b: Operand, alpha: Any = 1) -> Any:
    return _sum(b, a, alpha, -1)


def _product(a: Operand, b: Operand) -> Any:
    (ra, ia), (rb, ib) = parts_of(a), parts_of(b)
    if ia is None and ib is None:
        return ra * rb
    if ia is None:
        return pairs_of(_wide(ra * rb, a, b), _wide(ra * ib, a, b))
    if ib is None:
        return pairs_of(_wide(ra * rb, a, b), _wide(ia * rb, a, b))
    return pairs_of(ra * rb - ia * ib, ra * ib + ia * rb)


def _wide(value: Any, *operands: Operand) -> Tensor:
    if isinstance(value, Tensor):
        return value
    like = next(parts_of(item)[0] for item in operands if isinstance(parts_of(item)[0], Tensor))
    return torch.full_like(like, value)


@rule("mul.Tensor", "mul.Scalar")
def _mul(a: Operand, b: Operand) -> Any:
    return _product(a, b)


@rule("reciprocal")
def _reciprocal(z: Pairs) -> Pairs:
    size = z.real * z.real + z.imag * z.imag
    return pairs_of(z.real / size, -z.imag / size)


@rule("div.Tensor", "div.Scalar")
def _div(a: Operand, b: Operand) -> Any:
    if isinstance(b, Pairs):
        return _product(a, _reciprocal(b))
    if isinstance(b, complex):
        return _product(a, 1 / b)
    return pairs_of(*(part / b for part in parts_of(a)))


@rule("addcmul")
def _addcmul(start: Operand, a: Operand, b: Operand, value: Any = 1) -> Any:
    return _sum(start, _product(a, b), value, 1)


@rule("abs")
def _abs(z: Pairs) -> Tensor:
    return torch.sqrt(z.real * z.real + z.imag * z.imag)


@rule("linalg_vector_norm")
def _norm(z: Pairs, *arguments: Any, **options: Any) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(_abs(z), *arguments, **options)
    return size


@rule("angle")
def _angle(z: Pairs) -> Tensor:
    return torch.atan2(z.imag, z.real)


@rule("sgn")
def _sgn(z: Pairs) -> Pairs:
    size = _abs(z)
    return pairs_of(*(torch.where(size == 0, 0.0, part / size) for part in (z.real, z.imag)))


@rule("exp")
def _exp(z: Pairs) -> Pairs:
    return _polar(torch.exp(z.real), z.imag)


@rule("log")
def _log(z: Pairs) -> Pairs:
    return pairs_of(0.5 * torch.log(z.real * z.real + z.imag * z.imag), _angle(z))


@rule("tanh")
def _tanh(z: Pairs) -> Pairs:
    # (sinh 2a + i sin 2b) / (cosh 2a + cos 2b).
    a, b = 2.0 * z.real, 2.0 * z.imag
    size = torch.cosh(a) + torch.cos(b)
    return pairs_of(torch.sinh(a) / size, torch.sin(b) / size)


@rule("sqrt")
def _sqrt(z: Pairs) -> Pairs:
    size = _abs(z)
    imag = torch.sqrt(torch.clamp(0.5 * (size - z.real), min=0.0))
    real = torch.sqrt(torch.clamp(0.5 * (size + z.real), min=0.0))
    return pairs_of(real, torch.where(z.imag < 0, -imag, imag))


@rule("pow.Tensor_Scalar")
def _pow(z: Pairs, exponent: Any) -> Any:
    if not isinstance(exponent, int | float):
        return NotImplemented
    if exponent < 0:
        return _pow(_reciprocal(z), -exponent)
    if exponent == 0:
        return pairs_of(torch.ones_like(z.real), torch.zeros_like(z.real))
    if exponent != int(exponent) or exponent > _MOST_FACTORS:
        return _polar(torch.pow(_abs(z), exponent), _angle(z) * exponent)
    result: Any = z
    for _ in range(int(exponent) - 1):
        result = _product(result, z)
    return result


@rule("eq.Tensor", "eq.Scalar")
def _eq(a: Operand, b: Operand) -> Tensor:
    like = next(item.real for item in (a, b) if isinstance(item, Pairs))
    first, second = as_pairs(a, like), as_pairs(b, like)
    return (first.real == second.real) & (first.imag == second.imag)


@rule("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(condition: Tensor, a: Operand, b: Operand) -> Pairs:
    like = next(item.real for item in (a, b) if isinstance(item, Pairs))
    return Pairs(torch.where(condition.unsqueeze(-1), as_pairs(a, like).tensor, as_pairs(b, like).tensor))


@rule("masked_fill.Scalar")
def _masked_fill(z: Pairs, mask: Tensor, value: Any) -> Pairs:
    return _where(mask, value, z)


@rule("mm", "bmm")
def _matrix_product(a: Operand, b: Operand) -> Pairs:
    (ra, ia), (rb, ib) = parts_of(a), parts_of(b)
    if ib is None:
        return pairs_of(ra @ rb, ia @ rb)
    if ia is None:
        return pairs_of(ra @ rb, ra @ ib)
    return pairs_of(ra @ rb - ia @ ib, ra @ ib + ia @ rb)


def _in_place(function: Rule) -> Rule:
    def written(target: Pairs, *arguments: Any, **options: Any) -> Pairs:
        target.tensor.copy_(function(target, *arguments, **options).tensor)
        return target

    return written


for _operation, _function in (("add_", _add), ("sub_", _sub), ("mul_", _mul), ("div_", _div)):
    for _overload in ("Tensor", "Scalar"):
        RULES[f"{_operation}.{_overload}"] = _in_place(_function)
RULES["masked_fill_.Scalar"] = _in_place(_masked_fill)
