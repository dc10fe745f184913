"""Packed sequences: the steps of all texts, one below the other, of which a mask selects those of their lengths.

torch packs time by time, the longest texts first, so a packed tensor is that of the selected rows of (time, text).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.selections.functions import function_name, of_rows, refused
from pol.graph.capture.replacements.selections.selected_rows import SelectedRows, Selection, first_rows
from pol.graph.capture.replacements.table import replaces_function

_GATES: Mapping[str, Callable[..., Any]] = {
    "lstm": torch.lstm_cell,
    "gru": torch.gru_cell,
    "rnn_tanh": torch.rnn_tanh_cell,
    "rnn_relu": torch.rnn_relu_cell,
}


class Longest(int):
    """The padded length, where torch has the length of the longest text."""


class BatchSizes(Tensor):
    """How many texts have each time; `mask` says which, of shape (time, text)."""

    mask: Tensor

    @staticmethod
    def of(mask: Tensor) -> BatchSizes:
        """The numbers of a mask."""
        made = Tensor._make_subclass(BatchSizes, _NOTHING)
        made.mask = mask
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What torch's recurrent layers read: the number of texts, which all have a first time, and the longest."""
        name = function_name(func)
        if name == "__getitem__" and args[1] == 0:
            return args[0].mask.shape[1]
        if name == "size" and args[1:] == (0,):
            return Longest(args[0].mask.shape[0])
        if name in {"device", "is_cuda", "dtype"}:
            return getattr(_NOTHING, name)
        if name == "_pad_packed_sequence":
            return padded(*args, **(kwargs or {}))
        raise refused(f"{name} of a packed sequence")


_NOTHING = torch.empty(0, dtype=torch.int64)


@replaces_function(torch._VF._pack_padded_sequence)
def _packed(value: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    rows = value.transpose(0, 1) if batch_first else value
    mask = torch.arange(rows.shape[0])[:, None] < torch.as_tensor(lengths)
    return SelectedRows.chosen(rows.flatten(0, 1), 0, Selection(mask.reshape(-1), mask.shape)), BatchSizes.of(mask)


@of_rows("_pad_packed_sequence")
def _padded_rows(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return padded(*args, **kwargs)


def padded(
    value: SelectedRows, sizes: BatchSizes, batch_first: bool, number: float, total: int
) -> tuple[Tensor, Tensor]:
    """The texts below each other, and their lengths; as long as the longest, or of a given length."""
    mask = sizes.mask
    rows = value.or_else(number).unflatten(0, tuple(mask.shape))  # type: ignore[no-untyped-call]  # untyped in torch
    time, lengths = mask.shape[0], mask.to(torch.int64).sum(0)
    if total > time:
        more = rows.new_full((total - time, *rows.shape[1:]), number)
        rows = torch.cat([rows, more])
    rows = rows.transpose(0, 1) if batch_first else rows
    if not isinstance(total, Longest):
        return rows, lengths
    return SelectedRows.chosen(rows, int(batch_first), first_rows(time, lengths.amax())), lengths


@of_rows(*_GATES)
def _recurrent(
    func: Callable[..., Any],
    value: SelectedRows,
    sizes: Any,
    state: Any,
    weights: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> Any:
    """Layers of packed texts: a text keeps its state before it begins and after it ends."""
    if not isinstance(sizes, BatchSizes) or (dropout and training):
        raise refused(f"{func.__name__} with dropout" if dropout else func.__name__)
    states = list(state) if isinstance(state, tuple | list) else [state]
    directions = 2 if bidirectional else 1
    each = len(weights) // (layers * directions)
    if each != (4 if has_biases else 2):
        raise refused(f"{func.__name__} with proj_size")
    cell, mask = _GATES[func.__name__], sizes.mask
    rows: Tensor = value.rows.unflatten(0, tuple(mask.shape))  # type: ignore[no-untyped-call]  # untyped in torch
    last: list[list[Tensor]] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            now = [item[place] for item in states]
            steps: list[Any] = [None] * len(rows)
            for time in reversed(range(len(rows))) if direction else range(len(rows)):
                given = tuple(now) if len(now) > 1 else now[0]
                found = cell(rows[time], given, *weights[place * each : (place + 1) * each])
                new = list(found) if isinstance(found, tuple) else [found]
                now = [torch.where(mask[time][:, None], b, a) for a, b in zip(now, new, strict=True)]
                steps[time] = now[0]
            outputs.append(torch.stack(steps))
            last.append(now)
        rows = torch.cat(outputs, -1)
    final = [torch.stack(items) for items in zip(*last, strict=True)]
    return (SelectedRows.chosen(rows.flatten(0, 1), 0, value.selection), *final)
