"""Proves that every integer of a step fits in 32 bits, for the given data, first state and number of steps.

Torch computes integers in 64 bits, words have 32: a sum or product that wraps would be another training, silently. So
each value of the graph gets an interval, from the data forward. What can't be shown to fit is refused with its line.

Numbers that aren't finite have no interval: torch's conversion of NaN or an infinity to an integer is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, isfinite, log, prod
from typing import TypeAlias

import torch
from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode, InputRole, Ref, references

Number: TypeAlias = "int | float"
LEAST, GREATEST = -(2**31), 2**31 - 1
LARGEST_FLOAT = 3.4028234663852886e38
MOST_STEPS = 2**32 - 1


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``; integers exactly, binary32 numbers up to their own rounding."""

    low: Number
    high: Number

    def __or__(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def corners(self) -> tuple[Number, Number]:
        """Both ends."""
        return self.low, self.high

    def fits(self) -> bool:
        """Whether every number is an i32."""
        return self.low >= LEAST and self.high <= GREATEST


ANY = Range(-LARGEST_FLOAT, LARGEST_FLOAT)
BOOLEAN, UNIT = Range(0, 1), Range(0.0, 1.0)


def require_integers_fit(graph: AtenGraph, constants: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Raises UnsupportedError for an integer of the step that 32 bits may not hold, with the user's line.

    `constants` and `state` are the tensors of the graph's inputs by name. A slot of integers that changes may grow by
    what one step adds, as often as the task has steps.
    """
    slots = {name: _of(tensor) for name, tensor in state.items()}
    steps = len(constants["order"]) if "order" in constants else MOST_STEPS
    inputs = {**{name: _of(tensor) for name, tensor in constants.items()}, **slots}
    after = _Walk(graph, inputs, steps).next_state()
    grown = {name: _grown(slots[name], after[name], steps) for name in slots}
    if grown != slots:
        # What a step adds must not depend on what was added before: else the growth of the first step bounds nothing.
        again = _Walk(graph, {**inputs, **grown}, steps).next_state()
        for slot in graph.slots:
            first, last = _added(slots[slot.name], after[slot.name]), _added(grown[slot.name], again[slot.name])
            exceeds = last[0] < min(first[0], 0) or last[1] > max(first[1], 0)
            if slot.type.dtype == "int64" and (exceeds or not grown[slot.name].fits()):
                raise UnsupportedError(
                    f"{slot.name} holds integers that may leave 32 bits within {steps} steps, and the program computes "
                    "in 32 bits: bound it (torch.clamp, or a remainder) in the step, or keep it as a float"
                )


def _grown(before: Range, after: Range, steps: int) -> Range:
    down, up = _added(before, after)
    if not all(map(isfinite, (down, up))) or ANY in (before, after):
        return ANY
    return Range(before.low + min(down, 0) * steps, before.high + max(up, 0) * steps)


def _added(before: Range, after: Range) -> tuple[Number, Number]:
    return after.low - before.low, after.high - before.high


def _of(tensor: Tensor) -> Range:
    tensor = tensor.detach()
    if not tensor.numel():
        return Range(0, 0)
    if tensor.is_floating_point():
        finite = tensor[tensor.isfinite()]
        return Range(float(finite.min()), float(finite.max())) if finite.numel() else Range(0, 0)
    return Range(int(tensor.min()), int(tensor.max()))


class _Walk:
    """One pass over the graph."""

    def __init__(self, graph: AtenGraph, inputs: Mapping[str, Range], steps: int) -> None:
        self.graph = graph
        self.values: list[tuple[Range, ...]] = [
            (Range(0, steps) if entry.role is InputRole.STEP else inputs[entry.name],) for entry in graph.inputs
        ]
        for node in graph.nodes:
            self.values.append(self._results(node))

    def next_state(self) -> dict[str, Range]:
        """Ranges of the slots after the step."""
        return {
            slot.name: self.of(reference)
            for slot, reference in zip(self.graph.slots, self.graph.next_state, strict=True)
        }

    def of(self, argument: Argument) -> Range:
        """The range of an argument: a value, a number, or all of a list."""
        if isinstance(argument, Ref):
            return self.values[argument.value][argument.output]
        if isinstance(argument, bool | int | float):
            return Range(argument, argument) if isfinite(argument) else Range(0, 0)
        if isinstance(argument, tuple) and argument:
            ranges = [self.of(item) for item in argument]
            return Range(min(r.low for r in ranges), max(r.high for r in ranges))
        return Range(0, 0)

    def shape(self, argument: Argument) -> tuple[int, ...]:
        """The shape of a value; of a number, none."""
        return self.graph.type_of(argument).shape if isinstance(argument, Ref) else ()

    def _results(self, node: AtenNode) -> tuple[Range, ...]:
        rule = _RULES.get(node.operation)
        found = rule(self, node) if rule is not None else None
        exact = node.operation in _EXACT
        results = [_typed(type_.dtype, found, place, exact) for place, type_ in enumerate(node.outputs)]
        for type_, result in zip(node.outputs, results, strict=True):
            if type_.dtype == "int64" and not (result or ANY).fits():
                raise UnsupportedError(f"{node.source} -- {_reason(node, result)}")
        return tuple(result or ANY for result in results)


def _typed(dtype: str, found: Range | tuple[Range, ...] | None, place: int, exact: bool) -> Range | None:
    result = found[place] if isinstance(found, tuple) else found
    if dtype == "bool":
        return BOOLEAN
    if dtype == "int32":
        # Torch wraps these at 32 bits as well.
        return result if result is not None and result.fits() else Range(LEAST, GREATEST)
    if result is None or dtype == "int64" or exact:
        return result
    # One rounding, up to a part in 2^7 for bfloat16.
    wider = 1 + 2.0**-6
    low = result.low * wider if result.low < 0 else result.low / wider
    high = result.high * wider if result.high > 0 else result.high / wider
    return Range(max(float(low), ANY.low), min(float(high), ANY.high))


def _reason(node: AtenNode, result: Range | None) -> str:
    operation = node.operation.removeprefix("aten.")
    if operation.startswith("_to_copy"):
        shown = "any size" if result in {None, ANY} or result is None else f"{result.low:.6g} to {result.high:.6g}"
        return (
            f"numbers of {shown} become 64-bit integers, and the program computes in 32 bits: bound them first, "
            "for example x.clamp(0, 1000).long()"
        )
    if result is None or result == ANY:
        return f"{operation} gives 64-bit integers of which nothing shows that they fit in 32 bits: bound its operands"
    return (
        f"{operation} gives 64-bit integers from {result.low} to {result.high}, and the program computes in 32 bits: "
        "keep them below 2^31 (reduce the operands by a remainder first), or compute in floats"
    )


Rule: TypeAlias = "Callable[[_Walk, AtenNode], Range | tuple[Range, ...] | None]"


def _argument(node: AtenNode, position: int, keyword: str, default: Argument = None) -> Argument:
    if position < len(node.arguments):
        return node.arguments[position]
    return dict(node.keywords).get(keyword, default)


def _first(walk: _Walk, node: AtenNode) -> Range:
    """The same numbers, or some of them."""
    return walk.of(node.arguments[0])


def _all(walk: _Walk, node: AtenNode) -> Range:
    """Numbers of any operand, or zeros."""
    ranges = [walk.of(reference) for reference in references(node.arguments)] or [Range(0, 0)]
    numbers = [walk.of(a) for a in node.arguments if isinstance(a, int | float) and not isinstance(a, bool)]
    ends = [*ranges, *numbers, Range(0, 0)]
    return Range(min(r.low for r in ends), max(r.high for r in ends))


def _monotone(function: Callable[[Number], Number]) -> Rule:
    def rule(walk: _Walk, node: AtenNode) -> Range:
        return Range(*map(function, walk.of(node.arguments[0]).corners))

    return rule


def _two(function: Callable[[Number, Number], Number]) -> Rule:
    """A function of two numbers that is greatest and least at their ends."""

    def rule(walk: _Walk, node: AtenNode) -> Range:
        left, right = walk.of(node.arguments[0]), walk.of(node.arguments[1])
        found = [function(a, b) for a in left.corners for b in right.corners]
        return Range(min(found), max(found))

    return rule


def _scaled_sum(sign: int) -> Rule:
    def rule(walk: _Walk, node: AtenNode) -> Range:
        alpha = _argument(node, 2, "alpha", 1)
        factor = sign * (alpha if isinstance(alpha, int | float) else 1)
        left, right = walk.of(node.arguments[0]), walk.of(node.arguments[1])
        ends = [factor * end for end in right.corners]
        return Range(left.low + min(ends), left.high + max(ends))

    return rule


def _terms(walk: _Walk, node: AtenNode, place: int = 0) -> int:
    """Of how many numbers a result is made: those of the operand, over those of the results."""
    return max(1, prod(walk.shape(node.arguments[0])) // max(1, prod(node.outputs[place].shape)))


def _sum(walk: _Walk, node: AtenNode) -> Range:
    operand, terms = walk.of(node.arguments[0]), _terms(walk, node)
    return Range(min(operand.low * terms, 0), max(operand.high * terms, 0))


def _cumsum(walk: _Walk, node: AtenNode) -> Range:
    shape, axis = walk.shape(node.arguments[0]), node.arguments[1]
    terms = shape[axis] if shape and isinstance(axis, int) else 1
    operand = walk.of(node.arguments[0])
    return Range(min(operand.low, operand.low * terms), max(operand.high, operand.high * terms))


def _prod(walk: _Walk, node: AtenNode) -> Range | None:
    operand, terms = walk.of(node.arguments[0]), _terms(walk, node)
    size = max(map(abs, operand.corners))
    if size <= 1:
        return Range(-1 if operand.low < 0 else 0, 1)
    if terms > 256:
        return None
    greatest = size**terms
    return Range(-greatest if operand.low < 0 else 0, greatest)


def _power(walk: _Walk, node: AtenNode) -> Range | None:
    operand, exponent = walk.of(node.arguments[0]), node.arguments[1]
    if not isinstance(exponent, int) or not 0 <= exponent <= 64 or max(map(abs, operand.corners)) > 2**64:
        return None
    ends = [end**exponent for end in operand.corners]
    if exponent % 2 == 0 and operand.low < 0 < operand.high:
        ends.append(0)
    return Range(min(ends), max(ends))


def _clamp(walk: _Walk, node: AtenNode) -> Range:
    return _clamped(walk, node, _argument(node, 1, "min"), _argument(node, 2, "max"))


def _clamp_one(least: bool) -> Rule:
    def rule(walk: _Walk, node: AtenNode) -> Range:
        bound = node.arguments[1]
        return _clamped(walk, node, bound if least else None, None if least else bound)

    return rule


def _clamped(walk: _Walk, node: AtenNode, least: Argument, most: Argument) -> Range:
    """Numbers of the operand or a bound, which are numbers of the result's type: nothing else is rounded."""
    operand = walk.of(node.arguments[0])
    found = _within(operand, walk.of(least) if least is not None else ANY, walk.of(most) if most is not None else ANY)
    dtype = node.outputs[0].dtype
    if dtype not in {"float32", "bfloat16"}:
        return found
    ends = [float(max(ANY.low, min(end, ANY.high))) for end in found.corners]
    low, high = torch.tensor(ends, dtype=getattr(torch, dtype)).tolist()
    return Range(max(low, ANY.low), min(high, ANY.high))


def _within(operand: Range, least: Range, most: Range) -> Range:
    low, high = operand.corners
    if least is not ANY:
        low, high = max(low, least.low), max(high, least.high)
    if most is not ANY:
        low, high = min(low, most.low), min(high, most.high)
    return Range(low, high)


def _divided(walk: _Walk, node: AtenNode) -> Range | None:
    divisor = walk.of(node.arguments[1])
    if divisor.low <= 0 <= divisor.high:
        return None
    found = [a / b for a in walk.of(node.arguments[0]).corners for b in divisor.corners]
    if "int64" in {type_.dtype for type_ in node.outputs}:
        return Range(int(min(found)) - 1, int(max(found)) + 1)
    return Range(min(found), max(found))


def _rest(walk: _Walk, node: AtenNode) -> Range:
    """As the divisor, whose sign it has (`fmod`: of either sign), and not greater than the dividend."""
    divisor = max(map(abs, walk.of(node.arguments[1]).corners))
    return Range(-divisor if walk.of(node.arguments[1]).low < 0 or "fmod" in node.operation else 0, divisor)


def _arange(walk: _Walk, node: AtenNode) -> Range:
    numbers = [a for a in node.arguments if isinstance(a, int | float) and not isinstance(a, bool)]
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return Range(min(start, end), max(start, end))


def _filled(position: int, keyword: str) -> Rule:
    return lambda walk, node: walk.of(_argument(node, position, keyword, 0))


def _with_places(axis: int) -> Rule:
    """Numbers, and their places along a dimension, or in all that there are."""

    def rule(walk: _Walk, node: AtenNode) -> tuple[Range, Range]:
        return walk.of(node.arguments[0]), Range(0, max(0, prod(walk.shape(node.arguments[axis])) - 1))

    return rule


def _place(walk: _Walk, node: AtenNode) -> Range:
    return Range(0, max(0, prod(walk.shape(node.arguments[0])) - 1))


def _added_rows(walk: _Walk, node: AtenNode) -> Range:
    """self + any number of source rows at a place."""
    operand, source = walk.of(node.arguments[0]), walk.of(node.arguments[-1])
    terms = max([prod(walk.shape(reference)) for reference in references(node.arguments)], default=1)
    return Range(operand.low + min(source.low * terms, 0), operand.high + max(source.high * terms, 0))


def _selected(walk: _Walk, node: AtenNode) -> Range:
    return walk.of(node.arguments[1]) | walk.of(node.arguments[2])


def _bits(walk: _Walk, node: AtenNode) -> Range:
    """As many bits as the wider operand has."""
    ends = [end for argument in node.arguments for end in walk.of(argument).corners]
    width = max(int(end if end >= 0 else ~int(end)).bit_length() for end in map(int, ends))
    return Range(-(2**width) if min(ends) < 0 else 0, 2**width - 1)


def _masked(walk: _Walk, node: AtenNode) -> Range:
    """Bits that both have: not more than a mask that isn't negative."""
    ranges = [walk.of(argument) for argument in node.arguments]
    masks = [r.high for r in ranges if r.low >= 0]
    return Range(0, min(masks)) if masks else _bits(walk, node)


def _drawn(walk: _Walk, node: AtenNode) -> Range:
    return walk.of(node.arguments[4]) | walk.of(node.arguments[5])


def _normal(walk: _Walk, node: AtenNode) -> Range:
    # Of 32 random bits no number is more than seven deviations away.
    mean, deviation = walk.of(node.arguments[4]).high, abs(walk.of(node.arguments[5]).high)
    return Range(mean - 8 * deviation, mean + 8 * deviation)


def _logarithm(walk: _Walk, node: AtenNode) -> Range:
    # The logarithm of the least positive binary32 number is -104, to the base 2 -149; of zero it isn't finite.
    operand = walk.of(node.arguments[0])
    if operand.high <= 0:
        return Range(-150.0, 0.0)
    low = log(operand.low) if operand.low > 0 else -104.0
    return Range(min(2 * low, 0.0), max(2 * log(operand.high), 0.0))


def _exponential(walk: _Walk, node: AtenNode) -> Range:
    ends = walk.of(node.arguments[0]).corners
    return Range(*(exp(end) if end < 88 else LARGEST_FLOAT for end in ends))


def _converted(walk: _Walk, node: AtenNode) -> Range:
    operand = walk.of(node.arguments[0])
    if operand == ANY or not any(type_.dtype in {"int64", "int32"} for type_ in node.outputs):
        return operand
    return Range(int(operand.low), int(operand.high))


def _signs(walk: _Walk, node: AtenNode) -> Range:
    return Range(-1.0, 1.0)


def _absolute(walk: _Walk, node: AtenNode) -> Range:
    low, high = walk.of(node.arguments[0]).corners
    return Range(0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))


def _unit(walk: _Walk, node: AtenNode) -> Range:
    return UNIT


_KEEPS = (
    "view.default", "_unsafe_view.default", "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims",
    "permute.default", "transpose.int", "expand.default", "clone.default", "alias.default", "detach.default",
    "select.int", "slice.Tensor", "flip.default", "repeat.default", "roll.default", "split.Tensor",
    "split_with_sizes.default", "unsafe_split.Tensor", "lift_fresh_copy.default", "amax.default", "amin.default",
    "max.default", "min.default", "mean.default", "mean.dim", "pixel_shuffle.default", "pixel_unshuffle.default",
    "avg_pool2d.default", "reflection_pad1d.default", "reflection_pad2d.default", "upsample_nearest1d.default",
    "upsample_nearest2d.default",
)  # fmt: skip
_MIXES = (
    "cat.default", "constant_pad_nd.default", "tril.default", "triu.default", "scatter.src", "scatter.value",
    "slice_scatter.default", "select_scatter.default", "index_copy.default", "select_backward.default",
    "slice_backward.default",
)  # fmt: skip
_ROWS = ("index.Tensor", "index_select.default", "gather.default", "embedding.default")


def _row(walk: _Walk, node: AtenNode) -> Range:
    """Rows of a table, or zeros where there are none."""
    return walk.of(node.arguments[0]) | Range(0, 0)


_RULES: dict[str, Rule] = {
    f"aten.{name}": rule
    for name, rule in (
        *((name, _first) for name in _KEEPS),
        *((name, _all) for name in _MIXES),
        *((name, _row) for name in _ROWS),
        ("copy.default", lambda walk, node: walk.of(node.arguments[1])),
        ("_to_copy.default", _converted),
        ("add.Tensor", _scaled_sum(1)),
        ("add.Scalar", _scaled_sum(1)),
        ("sub.Tensor", _scaled_sum(-1)),
        ("sub.Scalar", _scaled_sum(-1)),
        ("mul.Tensor", _two(lambda a, b: a * b)),
        ("mul.Scalar", _two(lambda a, b: a * b)),
        ("maximum.default", _two(max)),
        ("minimum.default", _two(min)),
        ("neg.default", lambda walk, node: Range(*(-end for end in reversed(walk.of(node.arguments[0]).corners)))),
        ("abs.default", _absolute),
        ("relu.default", _monotone(lambda x: max(x, 0))),
        ("clamp.default", _clamp),
        ("clamp.Tensor", _clamp),
        ("clamp_min.default", _clamp_one(least=True)),
        ("clamp_min.Tensor", _clamp_one(least=True)),
        ("clamp_max.default", _clamp_one(least=False)),
        ("clamp_max.Tensor", _clamp_one(least=False)),
        ("sum.default", _sum),
        ("sum.dim_IntList", _sum),
        ("cumsum.default", _cumsum),
        ("prod.default", _prod),
        ("prod.dim_int", _prod),
        ("pow.Tensor_Scalar", _power),
        ("floor_divide.default", _divided),
        ("div.Tensor_mode", _divided),
        ("div.Scalar_mode", _divided),
        ("div.Tensor", _divided),
        ("div.Scalar", _divided),
        ("remainder.Scalar", _rest),
        ("remainder.Tensor", _rest),
        ("fmod.Scalar", _rest),
        ("fmod.Tensor", _rest),
        ("arange.default", _arange),
        ("arange.start", _arange),
        ("arange.start_step", _arange),
        ("full.default", _filled(1, "fill_value")),
        ("full_like.default", _filled(1, "fill_value")),
        ("scalar_tensor.default", _filled(0, "s")),
        ("zeros.default", lambda walk, node: Range(0, 0)),
        ("ones.default", lambda walk, node: Range(1, 1)),
        ("argmax.default", _place),
        ("argmin.default", _place),
        ("max.dim", _with_places(0)),
        ("min.dim", _with_places(0)),
        ("topk.default", _with_places(0)),
        ("sort.default", _with_places(0)),
        ("sort.stable", _with_places(0)),
        ("max_pool2d_with_indices.default", _with_places(0)),
        ("max_pool3d_with_indices.default", _with_places(0)),
        ("index_add.default", _added_rows),
        ("index_put.default", _added_rows),
        ("scatter_add.default", _added_rows),
        ("where.self", _selected),
        ("where.Scalar", _selected),
        ("where.ScalarOther", _selected),
        ("where.ScalarSelf", _selected),
        ("bitwise_and.Tensor", _masked),
        ("bitwise_and.Scalar", _masked),
        ("bitwise_or.Tensor", _bits),
        ("bitwise_or.Scalar", _bits),
        ("bitwise_xor.Tensor", _bits),
        ("bitwise_not.default", lambda walk, node: Range(*(-1 - end for end in reversed(_first(walk, node).corners)))),
        ("sign.default", _signs),
        ("sgn.default", _signs),
        ("tanh.default", _signs),
        ("erf.default", _signs),
        ("sin.default", _signs),
        ("cos.default", _signs),
        ("sigmoid.default", _unit),
        ("_softmax.default", _unit),
        ("_safe_softmax.default", _unit),
        ("exp.default", _exponential),
        ("log.default", _logarithm),
        ("log2.default", _logarithm),
        ("log10.default", _logarithm),
        ("log1p.default", lambda walk, node: Range(-104.0, max(0.0, log(1 + max(0.0, _first(walk, node).high))))),
        ("sqrt.default", _monotone(lambda x: max(float(x), 0.0) ** 0.5)),
        ("floor.default", lambda walk, node: Range(_first(walk, node).low - 1, _first(walk, node).high)),
        ("ceil.default", lambda walk, node: Range(_first(walk, node).low, _first(walk, node).high + 1)),
        ("round.default", lambda walk, node: Range(_first(walk, node).low - 1, _first(walk, node).high + 1)),
        ("trunc.default", _first),
    )
} | {
    "pol.integers.default": _drawn,
    "pol.uniform.default": _drawn,
    "pol.normal.default": _normal,
}
_CLAMPS = (
    "clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor"
)  # fmt: skip
_EXACT = {
    f"aten.{name}" for name in (*_KEEPS, *_MIXES, *_ROWS, *_CLAMPS, "copy.default", "relu.default", "neg.default")
} - {
    "aten.mean.default",
    "aten.mean.dim",
}
"""What gives numbers that there were before: nothing is rounded."""
