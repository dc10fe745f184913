"""Views of selected rows that are copies here: writing into one of the two is refused where the other is used again."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows
from pol.graph.capture.tracing.provenance import current_line

_COPIED: MutableMapping[Tensor, list[list[tuple[Tensor, int]]]] = WeakTensorKeyDictionary()
"""By the tensor that owns the memory: pairs of a tensor and its copy, with their versions when it was made."""


def copied(copy: Tensor, source: SelectedRows) -> None:
    """Remember that torch has a view of the source where the program has a copy."""
    pair = [(tensor, tensor._version) for tensor in (_rows(copy), source.rows)]
    for tensor, _ in pair:
        _COPIED.setdefault(_owner(tensor), []).append(pair)


def require_unwritten(leaves: Iterable[object]) -> None:
    """Raises UnsupportedError if such a copy of selected rows, or its source, was written to since it was made."""
    for leaf in leaves:
        if isinstance(leaf, SelectedRows):
            for pair in _COPIED.get(_owner(leaf.rows), []):
                if any(tensor._version != version for tensor, version in pair):
                    raise UnsupportedError(
                        f"{current_line() or 'the step'} -- selected rows, or a view of them (a slice, a row, another "
                        "shape), were changed in place. Change them without writing: rows = rows * 2"
                    )


def _rows(tensor: Tensor) -> Tensor:
    return tensor.rows if isinstance(tensor, SelectedRows) else tensor


def _owner(tensor: Tensor) -> Tensor:
    return tensor if tensor._base is None else tensor._base
