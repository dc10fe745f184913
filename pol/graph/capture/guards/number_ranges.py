"""Proves that every integer of a step fits in 32 bits, for the given data, first state and number of steps.

Torch computes integers in 64 bits, words have 32: a sum or product that wraps would silently be another training. So
interval arithmetic runs over the graph, from the data forward. An integer that is not proved to fit is refused with
its line.

Numbers that aren't finite have no interval: torch's conversion of NaN or an infinity to an integer is undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, prod

from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.aten_graph import NARROW, AtenGraph, AtenNode, InputRole, Ref, references
from pol.graph.capture.guards.interval import (
    ANY,
    BOOLEAN,
    I32_GREATEST,
    I32_LEAST,
    UNIT,
    ZERO,
    Interval,
    KnownIntervals,
    Number,
    interval_of,
)
from pol.graph.capture.guards.interval_arithmetic import ARITHMETIC, Groups, Rule, argument
from pol.graph.capture.tracing.step_inputs import ORDER
from pol.graph.refusals import Report, refuse
from pol.graph.step_program import MAX_STEPS


def _first(known: KnownIntervals, node: AtenNode) -> Interval:
    """The same numbers, or some of them."""
    return known.of(node.arguments[0])


def _all(known: KnownIntervals, node: AtenNode) -> Interval:
    """Numbers of any operand, or zeros."""
    numbers = [known.of(a) for a in node.arguments if isinstance(a, int | float) and not isinstance(a, bool)]
    return _hull([*_operands(known, node), *numbers])


def _operands(known: KnownIntervals, node: AtenNode) -> list[Interval]:
    return [known.of(reference) for reference in references(node.arguments)]


def _placed(known: KnownIntervals, node: AtenNode) -> Interval:
    """Numbers of any operand, or zeros; other arguments are places."""
    return _hull(_operands(known, node))


def _hull(intervals: Sequence[Interval]) -> Interval:
    """All intervals, and zero."""
    return Interval(min(r.low for r in (*intervals, ZERO)), max(r.high for r in (*intervals, ZERO)))


def _place_among(known: KnownIntervals, node: AtenNode) -> Interval:
    """A number of boundaries."""
    boundaries = node.arguments[1 if "bucketize" in node.operation else 0]
    return Interval(0, known.shape(boundaries)[-1])


def _arange(known: KnownIntervals, node: AtenNode) -> Interval:
    numbers = [a for a in node.arguments if isinstance(a, int | float) and not isinstance(a, bool)]
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return Interval(min(start, end), max(start, end))


def _always(interval: Interval) -> Rule:
    return lambda known, node: interval


def _filled(position: int, keyword: str) -> Rule:
    return lambda known, node: known.of(argument(node, position, keyword, 0))


def _with_places(known: KnownIntervals, node: AtenNode) -> tuple[Interval, Interval]:
    """Values and their indices."""
    return _first(known, node), _place(known, node)


def _place(known: KnownIntervals, node: AtenNode) -> Interval:
    """An index: below the number of elements of the operand."""
    return Interval(0, max(0, prod(known.shape(node.arguments[0])) - 1))


def _added_rows(known: KnownIntervals, node: AtenNode) -> Interval:
    """self + any number of source rows at one index."""
    given = list(references(node.arguments))
    operand, source = known.of(given[0]), known.of(given[-1])
    terms = max(prod(known.shape(reference)) for reference in given)
    return Interval(operand.low + min(source.low * terms, 0), operand.high + max(source.high * terms, 0))


def _reduced_rows(known: KnownIntervals, node: AtenNode) -> Interval | None:
    """self joined with any number of source words at one index."""
    kind = node.arguments[4]
    if kind == "sum":
        return _added_rows(known, node)
    return None if kind == "prod" else known.of(node.arguments[0]) | known.of(node.arguments[3])


def _selected(known: KnownIntervals, node: AtenNode) -> Interval:
    return known.of(node.arguments[1]) | known.of(node.arguments[2])


def _drawn(known: KnownIntervals, node: AtenNode) -> Interval:
    return known.of(node.arguments[4]) | known.of(node.arguments[5])


def _normal(known: KnownIntervals, node: AtenNode) -> Interval:
    # Of 32 random bits no number is more than seven deviations away.
    mean, deviation = known.of(node.arguments[4]).high, abs(known.of(node.arguments[5]).high)
    return Interval(mean - 8 * deviation, mean + 8 * deviation)


_KEEPS = (
    "view.default", "_unsafe_view.default", "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims",
    "permute.default", "transpose.int", "expand.default", "clone.default", "alias.default", "detach.default",
    "select.int", "slice.Tensor", "diagonal.default", "flip.default", "repeat.default", "roll.default", "split.Tensor",
    "split_with_sizes.default", "unsafe_split.Tensor", "lift_fresh_copy.default", "amax.default", "amin.default",
    "max.default", "min.default", "mean.default", "mean.dim", "pixel_shuffle.default", "pixel_unshuffle.default",
    "avg_pool2d.default", "reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default",
    "upsample_nearest1d.default", "upsample_nearest2d.default", "unfold.default", "as_strided.default",
)  # fmt: skip
_MIXES = (
    "cat.default", "constant_pad_nd.default", "tril.default", "triu.default", "scatter.src", "scatter.value",
    "index_copy.default",
)  # fmt: skip
_PLACES = ("slice_scatter.default", "select_scatter.default", "select_backward.default", "slice_backward.default")
"""Operations whose numbers among the arguments are places."""
_ROWS = ("index.Tensor", "index_select.default", "gather.default", "embedding.default")


def _row(known: KnownIntervals, node: AtenNode) -> Interval:
    """Rows of a table, or zeros where an index is out of range."""
    return known.of(node.arguments[0]) | ZERO


_GROUPS: Groups = (
    *ARITHMETIC,
    (_first, (*_KEEPS, "trunc.default")),
    (_all, _MIXES),
    (_placed, _PLACES),
    (_row, _ROWS),
    (lambda known, node: known.of(node.arguments[1]), ("copy.default",)),
    (_place_among, ("searchsorted.Tensor", "bucketize.Tensor")),
    (_all, ("bitwise_right_shift.Tensor",)),
    (_arange, ("arange.default", "arange.start", "arange.start_step")),
    (_filled(1, "fill_value"), ("full.default", "full_like.default")),
    (_filled(0, "s"), ("scalar_tensor.default",)),
    (_always(ZERO), ("zeros.default",)),
    (_always(Interval(1, 1)), ("ones.default",)),
    (_place, ("argmax.default", "argmin.default")),
    (
        _with_places,
        (
            "max.dim", "min.dim", "cummax.default", "cummin.default", "topk.default",
            "sort.default", "sort.stable", "max_pool2d_with_indices.default",
            "max_pool3d_with_indices.default",
        ),
    ),
    (_added_rows, ("index_add.default", "index_put.default", "scatter_add.default")),
    (_reduced_rows, ("scatter_reduce.two",)),
    (_selected, ("where.self", "where.Scalar", "where.ScalarOther", "where.ScalarSelf")),
    (
        _always(Interval(-1.0, 1.0)),
        ("sign.default", "sgn.default", "tanh.default", "erf.default", "sin.default", "cos.default"),
    ),
    (_always(UNIT), ("sigmoid.default", "_softmax.default", "_safe_softmax.default")),
)  # fmt: skip
RULES: Mapping[str, Rule] = {
    **{f"aten.{name}": rule for rule, names in _GROUPS for name in names},
    **dict.fromkeys(("pol.integers.default", "pol.uniform.default"), _drawn),
    "pol.normal.default": _normal,
}
"""By operation. An operation without a rule gives any number."""
_CLAMPS = (
    "clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor"
)  # fmt: skip
EXACT = {
    f"aten.{name}"
    for name in (*_KEEPS, *_MIXES, *_PLACES, *_ROWS, *_CLAMPS, "copy.default", "relu.default", "neg.default")
} - {"aten.mean.default", "aten.mean.dim"}
"""Operations whose results are numbers of their operands, or negated ones: nothing is rounded."""


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
