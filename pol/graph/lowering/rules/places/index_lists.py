"""Lists of indices, one for each of some dimensions, as `tensor[first, :, second]` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pol.arithmetic.registers import Word, select
from pol.graph.aten_graph import Ref
from pol.graph.lowering.call import Call
from pol.graph.lowering.values import Value, View, expand
from pol.graph.tensor_type import DType


def wrapped(call: Call, index: Value, size: int, part: str) -> View:
    """The index as a node; below zero it counts from the end."""
    return call.emitter.map(index.shape, DType.I32, [index], lambda index: counted_from_the_end(index, size), part)


def counted_from_the_end(index: Word, size: Word | int) -> Word:
    """The index, or the size more where it is below zero."""
    return select(index < 0, index + size, index)


def indices_of(call: Call, table: Value) -> dict[int, Value]:
    """Which dimensions are indexed, and by what; all of one shape."""
    given = call.argument(1)
    if not isinstance(given, tuple) or len(given) > len(table.shape):
        raise call.unsupported("a list of indices is needed")
    found: dict[int, Value] = {}
    for place, item in enumerate(given):
        if isinstance(item, Ref):
            if call.types[item].dtype not in {"int64", "int32"}:
                raise call.unsupported("an index must be integers; instead of a mask use torch.where")
            found[place] = call.values[item]
    if not found:
        raise call.unsupported("no index")
    shape = _broadcast([index.shape for index in found.values()])
    return {place: expand(index, shape) for place, index in found.items()}


def common_shape(indices: Mapping[int, Value]) -> tuple[int, ...]:
    """The shape of all indices."""
    return next(iter(indices.values())).shape


def dimensions_before(indices: Mapping[int, Value]) -> int:
    """How many other dimensions come before those of the indices: none if something stands between the indexed ones."""
    places = sorted(indices)
    return places[0] if places == list(range(places[0], places[0] + len(places))) else 0


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))
