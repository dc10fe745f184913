"""Comparison of two sets of named tensors, from files or recorded checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pol.commitments.array import ArrayType, Bytes
from pol.training.record.recorded_run import RecordedRun, is_run, open_run, split_step
from pol.training.state.weight_entries import name_in_model
from pol.training.storage.tensor_folder import open_tensors
from pol.verification.runs.tensor_difference import BLOCK, TensorDistance, measure_difference

if TYPE_CHECKING:
    from pol.training.storage.stored_checkpoint import StoredCheckpoint

WEIGHTS = ("parameters/", "buffers/")
"""The components of a checkpoint that a model's file holds as well."""


@dataclass(frozen=True)
class NamedTensors:
    """Named tensors. ``roots`` are known for recorded ones: equal roots need no look at the tensors."""

    label: str
    types: Mapping[str, ArrayType]
    roots: Mapping[str, bytes]
    pieces: Callable[[str, int], Iterator[Bytes]]
    close: Callable[[], None]
    run: RecordedRun | None = None
    saved: StoredCheckpoint | None = None


@dataclass(frozen=True)
class TensorComparison:
    """One name. ``how``: equal, differs, another type (a distance is given if the shapes agree), missing or extra."""

    name: str
    how: str
    distance: TensorDistance | None = None


def open_named_tensors(text: str) -> NamedTensors:
    """The tensors at a path, or at ``PATH@STEP`` in a record.

    Raises:
        ProtocolError: a malformed file or record.
        UnsupportedError: a pickled checkpoint.
        OperationalError: it can't be read.
    """
    place, step = split_step(text)
    if is_run(place):
        return recorded_tensors(open_run(place), step, place)
    tensors = open_tensors(Path(text))
    return NamedTensors(text, tensors.types, {}, tensors.pieces, lambda: None)


def recorded_tensors(run: RecordedRun, step: int | None, label: str) -> NamedTensors:
    """A recorded checkpoint; each tensor is read, and compared with its root, when it is asked for."""
    checkpoint = run.checkpoint(step)
    saved = run.document(checkpoint)
    tensors = run.tensors(saved)
    roots = {entry.name: entry.content for entry in saved.entries if entry.type is not None}
    label = f"{label}@{checkpoint.step}"
    return NamedTensors(label, saved.types, roots, tensors.pieces, tensors.close, run, saved)


def aligned(a: NamedTensors, b: NamedTensors) -> tuple[NamedTensors, NamedTensors, int]:
    """Both sides with names that mean the same, and how many tensors of a record have no counterpart in any file.

    A file holds a model's weights under their own names, a checkpoint holds them as ``parameters/...``.
    """
    if (a.saved is None) == (b.saved is None):
        return a, b, 0
    if a.saved is None:
        b, a, left = aligned(b, a)
        return a, b, left
    own = {name_in_model(name): name for name in a.types if name.startswith(WEIGHTS)}
    weights = replace(
        a,
        types={name: a.types[full] for name, full in own.items()},
        roots={name: a.roots[full] for name, full in own.items()},
        pieces=lambda name, size: a.pieces(own[name], size),
    )
    return weights, b, len(a.types) - len(own)


def compare_tensors(a: NamedTensors, b: NamedTensors) -> Iterator[TensorComparison]:
    """Every tensor of both sides, in the order of names.

    Raises:
        ProtocolError: a malformed tensor.
        OperationalError: a store failed.
    """
    try:
        for name in sorted(a.types.keys() | b.types.keys(), key=str.encode):
            if name not in b.types:
                yield TensorComparison(name, "missing")
            elif name not in a.types:
                yield TensorComparison(name, "extra")
            else:
                yield _compare(a, b, name)
    finally:
        a.close()
        b.close()


def _compare(a: NamedTensors, b: NamedTensors, name: str) -> TensorComparison:
    if a.types[name].shape != b.types[name].shape:
        return TensorComparison(name, "another type")
    if name in a.roots and a.roots[name] == b.roots.get(name):
        return TensorComparison(name, "equal")
    blocks = (side.pieces(name, BLOCK * side.types[name].element.size) for side in (a, b))
    distance = measure_difference(a.types[name], b.types[name], zip(*blocks, strict=True))
    if a.types[name] != b.types[name]:
        return TensorComparison(name, "another type", distance)
    return TensorComparison(name, "differs" if distance.differing else "equal", distance)
