"""The interval of the result of each ATen operation, from those of the operands.

Floats are rounded outward by the caller, except for operations in EXACT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from pol.graph.aten_graph import AtenNode, references
from pol.graph.capture.guards.interval import UNIT, ZERO, Interval, KnownIntervals
from pol.graph.capture.guards.interval_arithmetic import ARITHMETIC, Groups, Rule, argument


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
