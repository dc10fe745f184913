"""Interval arithmetic of ATen operations: sums, products, powers, quotients, bounds, bits and logarithms.

A rule gives None where it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, prod
from typing import TypeAlias

import torch

from pol.graph.aten_graph import NARROW, Argument, AtenNode
from pol.graph.capture.guards.interval import ANY, LARGEST_FLOAT, Interval, KnownIntervals, Number

Rule: TypeAlias = "Callable[[KnownIntervals, AtenNode], Interval | tuple[Interval, ...] | None]"
Groups: TypeAlias = "tuple[tuple[Rule, tuple[str, ...]], ...]"
"""Rules, each with the operations that it is for."""


def argument(node: AtenNode, position: int, keyword: str, default: Argument = None) -> Argument:
    """An argument of a node, by position or by keyword."""
    if position < len(node.arguments):
        return node.arguments[position]
    return dict(node.keywords).get(keyword, default)


def _monotone(function: Callable[[Number], Number]) -> Rule:
    def rule(known: KnownIntervals, node: AtenNode) -> Interval:
        return Interval(*sorted(map(function, known.of(node.arguments[0]).corners)))

    return rule


def _two(function: Callable[[Number, Number], Number]) -> Rule:
    """A function of two numbers that is greatest and least at their ends."""

    def rule(known: KnownIntervals, node: AtenNode) -> Interval:
        left, right = known.of(node.arguments[0]), known.of(node.arguments[1])
        found = [function(a, b) for a in left.corners for b in right.corners]
        return Interval(min(found), max(found))

    return rule


def _scaled_sum(sign: int) -> Rule:
    def rule(known: KnownIntervals, node: AtenNode) -> Interval:
        alpha = argument(node, 2, "alpha", 1)
        factor = sign * (alpha if isinstance(alpha, int | float) else 1)
        left, right = known.of(node.arguments[0]), known.of(node.arguments[1])
        ends = [factor * end for end in right.corners]
        return Interval(left.low + min(ends), left.high + max(ends))

    return rule


def _terms(known: KnownIntervals, node: AtenNode, place: int = 0) -> int:
    """Operand elements per element of a result."""
    return max(1, prod(known.shape(node.arguments[0])) // max(1, prod(node.outputs[place].shape)))


def _sum(known: KnownIntervals, node: AtenNode) -> Interval:
    operand, terms = known.of(node.arguments[0]), _terms(known, node)
    return Interval(min(operand.low * terms, 0), max(operand.high * terms, 0))


def _matrix_product(known: KnownIntervals, node: AtenNode) -> Interval:
    left, right = known.of(node.arguments[0]), known.of(node.arguments[1])
    terms = known.shape(node.arguments[0])[-1]
    ends = [a * b * terms for a in left.corners for b in right.corners]
    return Interval(min(*ends, 0), max(*ends, 0))


def _cumsum(known: KnownIntervals, node: AtenNode) -> Interval:
    shape, axis = known.shape(node.arguments[0]), node.arguments[1]
    terms = shape[axis] if shape and isinstance(axis, int) else 1
    operand = known.of(node.arguments[0])
    return Interval(min(operand.low, operand.low * terms), max(operand.high, operand.high * terms))


def _cumprod(known: KnownIntervals, node: AtenNode) -> Interval | None:
    shape, axis = known.shape(node.arguments[0]), node.arguments[1]
    size = max(map(abs, known.of(node.arguments[0]).corners))
    terms = shape[axis] if shape and isinstance(axis, int) else 1
    if size > 1 and terms > 256:
        return None
    greatest = _raised(max(1, size), terms)
    return Interval(-greatest, greatest)


def _raised(size: Number, exponent: int) -> Number:
    """A power; the largest float where it overflows."""
    try:
        return size**exponent
    except OverflowError:
        return LARGEST_FLOAT


def _prod(known: KnownIntervals, node: AtenNode) -> Interval | None:
    operand, terms = known.of(node.arguments[0]), _terms(known, node)
    size = max(map(abs, operand.corners))
    if size <= 1:
        return Interval(-1 if operand.low < 0 else 0, 1)
    if terms > 256:
        return None
    greatest = _raised(size, terms)
    return Interval(-greatest if operand.low < 0 else 0, greatest)


def _power(known: KnownIntervals, node: AtenNode) -> Interval | None:
    operand, exponent = known.of(node.arguments[0]), node.arguments[1]
    if not isinstance(exponent, int) or not 0 <= exponent <= 64 or max(map(abs, operand.corners)) > 2**64:
        return None
    ends = [end**exponent for end in operand.corners]
    if exponent % 2 == 0 and operand.low < 0 < operand.high:
        ends.append(0)
    return Interval(min(ends), max(ends))


def _clamp(known: KnownIntervals, node: AtenNode) -> Interval:
    return _clamped(known, node, argument(node, 1, "min"), argument(node, 2, "max"))


def _clamp_one(least: bool) -> Rule:
    def rule(known: KnownIntervals, node: AtenNode) -> Interval:
        bound = node.arguments[1]
        return _clamped(known, node, bound if least else None, None if least else bound)

    return rule


def _clamped(known: KnownIntervals, node: AtenNode, least: Argument, most: Argument) -> Interval:
    """Numbers of the operand, or bounds in the type of the result: nothing else is rounded."""
    operand = known.of(node.arguments[0])
    found = _within(operand, known.of(least) if least is not None else ANY, known.of(most) if most is not None else ANY)
    dtype = node.outputs[0].dtype
    if dtype not in {"float32", "bfloat16"}:
        return found
    ends = [float(max(ANY.low, min(end, ANY.high))) for end in found.corners]
    low, high = torch.tensor(ends, dtype=getattr(torch, dtype)).tolist()
    return Interval(max(low, ANY.low), min(high, ANY.high))


def _within(operand: Interval, least: Interval, most: Interval) -> Interval:
    low, high = operand.corners
    if least is not ANY:
        low, high = max(low, least.low), max(high, least.high)
    if most is not ANY:
        low, high = min(low, most.low), min(high, most.high)
    return Interval(low, high)


def _divided(known: KnownIntervals, node: AtenNode) -> Interval | None:
    divisor = known.of(node.arguments[1])
    if divisor.low <= 0 <= divisor.high:
        return None
    found = [a / b for a in known.of(node.arguments[0]).corners for b in divisor.corners]
    if "int64" in {type_.dtype for type_ in node.outputs}:
        return Interval(int(min(found)) - 1, int(max(found)) + 1)
    return Interval(min(found), max(found))


def _rest(known: KnownIntervals, node: AtenNode) -> Interval:
    """A remainder: of the sign of the divisor (`fmod`: of either sign), and at most as large."""
    divisor = max(map(abs, known.of(node.arguments[1]).corners))
    return Interval(-divisor if known.of(node.arguments[1]).low < 0 or "fmod" in node.operation else 0, divisor)


def _widened(below: int, above: int) -> Rule:
    """Rounding to integers: the operand's interval, wider by these."""

    def rule(known: KnownIntervals, node: AtenNode) -> Interval:
        operand = known.of(node.arguments[0])
        return Interval(operand.low - below, operand.high + above)

    return rule


def _bits(known: KnownIntervals, node: AtenNode) -> Interval:
    """Bitwise operations: as many bits as the wider operand has."""
    ends = [end for argument in node.arguments for end in known.of(argument).corners]
    width = max(int(end if end >= 0 else ~int(end)).bit_length() for end in map(int, ends))
    return Interval(-(2**width) if min(ends) < 0 else 0, 2**width - 1)


def _masked(known: KnownIntervals, node: AtenNode) -> Interval:
    """Bitwise and: at most as large as a mask that isn't negative."""
    intervals = [known.of(argument) for argument in node.arguments]
    masks = [r.high for r in intervals if r.low >= 0]
    return Interval(0, min(masks)) if masks else _bits(known, node)


def _logarithm(known: KnownIntervals, node: AtenNode) -> Interval:
    # The logarithm of the least positive binary32 number is -104, to the base 2 -149; of zero it isn't finite.
    operand = known.of(node.arguments[0])
    if operand.high <= 0:
        return Interval(-150.0, 0.0)
    # To the base 10 it is 0.43 of the natural one, to the base 2 1.44 of it.
    low = log(operand.low) if operand.low > 0 else -104.0
    high = log(operand.high)
    return Interval(min(0.4 * low, 2 * low), max(0.4 * high, 2 * high))


def _log1p(known: KnownIntervals, node: AtenNode) -> Interval:
    return Interval(-104.0, max(0.0, log(1 + max(0.0, known.of(node.arguments[0]).high))))


def _converted(known: KnownIntervals, node: AtenNode) -> Interval:
    operand = known.of(node.arguments[0])
    if operand == ANY or not any(type_.dtype in {"int64", "int32", *NARROW} for type_ in node.outputs):
        return operand
    return Interval(int(operand.low), int(operand.high))


def _absolute(known: KnownIntervals, node: AtenNode) -> Interval:
    low, high = known.of(node.arguments[0]).corners
    return Interval(0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))


ARITHMETIC: Groups = (
    (_converted, ("_to_copy.default",)),
    (_scaled_sum(1), ("add.Tensor", "add.Scalar")),
    (_scaled_sum(-1), ("sub.Tensor", "sub.Scalar")),
    (_two(lambda a, b: a * b), ("mul.Tensor", "mul.Scalar")),
    (_two(max), ("maximum.default",)),
    (_two(min), ("minimum.default",)),
    (_monotone(lambda x: -x), ("neg.default",)),
    (_monotone(lambda x: max(x, 0)), ("relu.default",)),
    (_monotone(lambda x: -1 - x), ("bitwise_not.default",)),
    (_monotone(lambda x: exp(x) if x < 88 else LARGEST_FLOAT), ("exp.default",)),
    (_monotone(lambda x: max(float(x), 0.0) ** 0.5), ("sqrt.default",)),
    (_absolute, ("abs.default",)),
    (_clamp, ("clamp.default", "clamp.Tensor")),
    (_clamp_one(least=True), ("clamp_min.default", "clamp_min.Tensor")),
    (_clamp_one(least=False), ("clamp_max.default", "clamp_max.Tensor")),
    (_sum, ("sum.default", "sum.dim_IntList")),
    (_cumsum, ("cumsum.default",)),
    (_matrix_product, ("mm.default", "bmm.default", "_int_mm.default")),
    (_cumprod, ("cumprod.default",)),
    (_two(lambda a, b: a * 2**b if 0 <= b <= 64 else LARGEST_FLOAT), ("bitwise_left_shift.Tensor",)),
    (_prod, ("prod.default", "prod.dim_int")),
    (_power, ("pow.Tensor_Scalar",)),
    (_divided, ("floor_divide.default", "div.Tensor_mode", "div.Scalar_mode", "div.Tensor", "div.Scalar")),
    (_rest, ("remainder.Scalar", "remainder.Tensor", "fmod.Scalar", "fmod.Tensor")),
    (_masked, ("bitwise_and.Tensor", "bitwise_and.Scalar")),
    (_bits, ("bitwise_or.Tensor", "bitwise_or.Scalar", "bitwise_xor.Tensor")),
    (_logarithm, ("log.default", "log2.default", "log10.default")),
    (_log1p, ("log1p.default",)),
    (_widened(1, 0), ("floor.default",)),
    (_widened(0, 1), ("ceil.default",)),
    (_widened(1, 1), ("round.default",)),
)  # fmt: skip
