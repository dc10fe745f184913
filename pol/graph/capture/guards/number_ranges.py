"""Proves that every integer of a step fits in 32 bits, for the given data, first state and number of steps.

Torch computes integers in 64 bits, words have 32: a sum or product that wraps would silently be another training. So
interval arithmetic runs over the graph, from the data forward. An integer that is not proved to fit is refused with
its line.

Numbers that aren't finite have no interval: torch's conversion of NaN or an infinity to an integer is undefined.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.aten_graph import NARROW, AtenGraph, AtenNode, InputRole, Ref
from pol.graph.capture.guards.interval import (
    ANY,
    BOOLEAN,
    I32_GREATEST,
    I32_LEAST,
    Interval,
    KnownIntervals,
    Number,
    interval_of,
)
from pol.graph.capture.guards.interval_rules import EXACT, RULES
from pol.graph.capture.tracing.step_inputs import ORDER
from pol.graph.refusals import Report, refuse
from pol.graph.step_program import MAX_STEPS

_CONVERSION = "aten._to_copy.default"


def require_integers_fit(
    graph: AtenGraph,
    constants: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    steps: int | None = None,
    report: Report = refuse,
) -> None:
    """Check every integer of the step. `constants` and `state` are the tensors of the graph's inputs by name.

    An integer slot that changes may grow in each step of the task by as much as in the first.

    Raises:
        UnsupportedError: 32 bits may not hold an integer; names the user's line.
    """
    if steps is None:
        steps = len(constants[ORDER]) if ORDER in constants else MAX_STEPS
    fixed = {name: interval_of(tensor) for name, tensor in constants.items()}
    require_intervals_fit(graph, fixed, {name: interval_of(tensor) for name, tensor in state.items()}, steps, report)


def require_intervals_fit(
    graph: AtenGraph,
    constants: Mapping[str, Interval],
    slots: Mapping[str, Interval],
    steps: int,
    report: Report = refuse,
) -> None:
    """As `require_integers_fit`, for all constants and first states within these intervals.

    Raises:
        UnsupportedError: as `require_integers_fit`.
    """
    inputs = {**constants, **slots}
    after = _next_state(graph, inputs, steps, report)
    grown = {name: _grown(slots[name], after[name], steps) for name in slots}
    if grown != slots:
        # A step must not add more to a slot that has grown: else the growth of the first step bounds nothing.
        again = _next_state(graph, {**inputs, **grown}, steps, report)
        for slot in graph.slots:
            first, last = _added(slots[slot.name], after[slot.name]), _added(grown[slot.name], again[slot.name])
            exceeds = last[0] < min(first[0], 0) or last[1] > max(first[1], 0)
            if slot.type.dtype == "int64" and (exceeds or not grown[slot.name].fits()):
                report(
                    UnsupportedError(
                        f"{slot.name} holds integers that may leave 32 bits within {steps} steps, and the program "
                        "computes in 32 bits: bound it (torch.clamp, or a remainder) in the step, or keep it as a float"
                    )
                )


def _grown(before: Interval, after: Interval, steps: int) -> Interval:
    down, up = _added(before, after)
    if not all(map(isfinite, (down, up))) or ANY in (before, after):
        return ANY
    return Interval(before.low + min(down, 0) * steps, before.high + max(up, 0) * steps)


def _added(before: Interval, after: Interval) -> tuple[Number, Number]:
    return after.low - before.low, after.high - before.high


def _next_state(graph: AtenGraph, inputs: Mapping[str, Interval], steps: int, report: Report) -> dict[str, Interval]:
    """The intervals of the slots after one pass over the graph."""
    step = Interval(0, steps)
    known = KnownIntervals(graph, [step if e.role is InputRole.STEP else inputs[e.name] for e in graph.inputs])
    for node in graph.nodes:
        known.values.append(_results(known, node, report))
    return {slot.name: known.of(ref) for slot, ref in zip(graph.slots, graph.next_state, strict=True)}


def _results(known: KnownIntervals, node: AtenNode, report: Report) -> tuple[Interval, ...]:
    rule = RULES.get(node.operation)
    found = rule(known, node) if rule is not None else None
    exact = node.operation in EXACT
    results = [_rounded(type_.dtype, found, place, exact) for place, type_ in enumerate(node.outputs)]
    for type_, result in zip(node.outputs, results, strict=True):
        if type_.dtype == "int64" and not (result or ANY).fits():
            report(UnsupportedError(f"{node.source} -- {_reason(node, result)}"))
    for type_ in node.outputs:
        if type_.dtype in NARROW and node.operation == _CONVERSION:
            _require_in_range(known, node, type_.dtype, report)
    return tuple(result or ANY for result in results)


def _require_in_range(known: KnownIntervals, node: AtenNode, dtype: str, report: Report) -> None:
    """Torch doesn't define a float beyond the range of the integers that it becomes."""
    operand, (least, greatest) = known.of(node.arguments[0]), NARROW[dtype]
    source = node.arguments[0]
    is_float = isinstance(source, Ref) and known.graph.type_of(source).dtype in {"float32", "bfloat16"}
    if is_float and not least - 1 < operand.low <= operand.high < greatest + 1:
        report(
            UnsupportedError(
                f"{node.source} -- floats become {dtype}, and nothing shows that they are in {least} .. {greatest}: "
                f"bound them first, x.clamp({least}, {greatest}).to(torch.{dtype})"
            )
        )


def _rounded(dtype: str, found: Interval | tuple[Interval, ...] | None, place: int, exact: bool) -> Interval | None:
    """The interval of one output, after its dtype has rounded or wrapped it."""
    result = found[place] if isinstance(found, tuple) else found
    if dtype == "bool":
        return BOOLEAN
    if dtype == "int32":
        # Torch wraps these at 32 bits as well.
        return result if result is not None and result.fits() else Interval(I32_LEAST, I32_GREATEST)
    if dtype in NARROW:
        least, greatest = NARROW[dtype]
        stays = result is not None and least <= result.low <= result.high <= greatest
        return result if stays else Interval(least, greatest)
    if result is None or dtype == "int64" or exact:
        return result
    # One rounding, up to a part in 2^7 for bfloat16.
    wider = 1 + 2.0**-6
    low = result.low * wider if result.low < 0 else result.low / wider
    high = result.high * wider if result.high > 0 else result.high / wider
    return Interval(max(float(low), ANY.low), min(float(high), ANY.high))


def _reason(node: AtenNode, result: Interval | None) -> str:
    operation = node.operation.removeprefix("aten.")
    if operation.startswith("_to_copy"):
        shown = "any size" if result is None or result == ANY else f"{result.low:.6g} to {result.high:.6g}"
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
