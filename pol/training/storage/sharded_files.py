"""Checkpoints that several processes store together (docs/spec/complete_state.md, "Files of several processes").

Each process stores one file with whole arrays and runs of rows; the checkpoint's document says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.storage import safetensors_format
from pol.training.storage.store import Store

FORM = "sharded"
NAME_TAG = b"pol/part/1"


@dataclass(frozen=True)
class Rows:
    """Rows ``first`` to ``first + count`` of an array, or the whole array if there is no count."""

    array: str
    first: int = 0
    count: int | None = None

    def form(self) -> list[Any]:
        """Its form in the document."""
        return [self.array] if self.count is None else [self.array, self.first, self.count]

    def type_in(self, whole: ArrayType) -> ArrayType:
        """The type of the rows; ProtocolError if the array has no such rows."""
        if self.count is None:
            return whole
        if not whole.shape or not 0 <= self.first <= self.first + self.count <= whole.shape[0]:
            raise ProtocolError(f"{self.array} of shape {whole.shape} has no rows {self.first} + {self.count}")
        return ArrayType(whole.element, (self.count, *whole.shape[1:]))

    def first_byte(self, whole: ArrayType) -> int:
        """The offset of the rows in the array."""
        return self.first * (whole.nbytes // whole.shape[0]) if self.count else 0


def file_name(root: bytes, pieces: Sequence[Rows]) -> str:
    """The name of the file that holds these pieces of the state with this complete root."""
    return (
        keccak256(NAME_TAG + root + canonical_json.encode({"pieces": [piece.form() for piece in pieces]})).hex()
        + ".safetensors"
    )


def write(store: Store, root: bytes, pieces: Mapping[Rows, Array]) -> None:
    """Store the file of one process."""
    store.put_file(
        file_name(root, list(pieces)), safetensors_format.pieces({rows.array: array for rows, array in pieces.items()})
    )


def describe(root: bytes, files: Iterable[Sequence[Rows]]) -> dict[str, Any]:
    """The member `data` of the checkpoint's document; a process without pieces has no file."""
    return {
        "form": FORM,
        "files": [
            {"name": file_name(root, pieces), "pieces": [piece.form() for piece in pieces]}
            for pieces in files
            if pieces
        ],
    }


def sizes(types: Mapping[str, ArrayType], data: Mapping[str, Any]) -> dict[str, int]:
    """Names and sizes of the files."""
    return {name: safetensors_format.size(_held(types, name, pieces)) for name, pieces in _files(data)}


@dataclass(frozen=True)
class Place:
    """A run of bytes of an array: the file that holds it, under the array's name."""

    file: str
    first: int
    size: int


def places(
    types: Mapping[str, ArrayType], data: Mapping[str, Any]
) -> tuple[dict[str, dict[str, ArrayType]], dict[str, list[Place]]]:
    """What each file holds, and the places of each array in the order of its bytes."""
    files: dict[str, dict[str, ArrayType]] = {}
    found: dict[str, list[Place]] = {name: [] for name in types}
    for name, pieces in _files(data):
        if name in files:
            raise ProtocolError(f"the checkpoint names the file {name} twice")
        files[name] = _held(types, name, pieces)
        for rows in pieces:
            found[rows.array].append(Place(name, rows.first_byte(types[rows.array]), files[name][rows.array].nbytes))
    for array, parts in found.items():
        parts.sort(key=lambda place: (place.first, place.size))
        _require_whole(array, parts, types[array].nbytes)
    return files, found


def are_equal_runs(types: Mapping[str, ArrayType], data: Mapping[str, Any], count: int) -> bool:
    """Whether file k of ``count`` holds the k-th of as many equal runs of rows of every array that is cut."""
    files = _files(data)
    every = [rows for _, pieces in files for rows in pieces]
    cut = {rows.array for rows in every if rows.count is not None}
    if not {rows.array for rows in every} <= types.keys():
        return False
    for number, (_, pieces) in enumerate(files):
        held = {rows.array: rows for rows in pieces}
        for name in cut:
            length = types[name].shape[0] if types[name].shape else 0
            size = -(-length // count)
            first = min(number * size, length)
            expected = Rows(name, first, min(size, length - first)) if first < length else None
            if held.get(name) != expected:
                return False
    return len(files) == count


def read_run(store: Store, types: Mapping[str, ArrayType], data: Mapping[str, Any], number: int) -> dict[str, Array]:
    """Whole arrays, and the rows in file ``number`` of all others. Nothing is checked against a root.

    Raises:
        ProtocolError: malformed, or a file whose content differs from the document.
    """
    files = _files(data)
    found: dict[str, Array] = {}
    for at in sorted({0, number}):
        name, pieces = files[at]
        with safetensors_format.open_known(store, name, _held(types, name, pieces)) as file:
            found |= {rows.array: file.array(rows.array) for rows in pieces if rows.count is None or at == number}
    for name, type_ in types.items():
        if name not in found:
            found[name] = Array(ArrayType(type_.element, (0, *type_.shape[1:])), np.empty(0, np.uint8))
    return found


def _files(data: Mapping[str, Any]) -> list[tuple[str, list[Rows]]]:
    fields = canonical_json.Fields(dict(data), "the data of the checkpoint", ["form", "files"])
    return [_file(item) for item in fields.items("files")]


def _held(types: Mapping[str, ArrayType], name: str, pieces: Sequence[Rows]) -> dict[str, ArrayType]:
    """The types of the arrays in a file."""
    for rows in pieces:
        if rows.array not in types:
            raise ProtocolError(f"file {name} holds {rows.array!r}, which isn't in the checkpoint")
    return {rows.array: rows.type_in(types[rows.array]) for rows in pieces}


def _require_whole(name: str, found: Sequence[Place], size: int) -> None:
    end = 0
    for place in found:
        if place.first != end:
            raise ProtocolError(f"the files of the checkpoint leave a gap or overlap at byte {place.first} of {name}")
        end += place.size
    if end != size:
        raise ProtocolError(f"the files of the checkpoint hold {end} of the {size} bytes of {name}")


def _file(item: object) -> tuple[str, list[Rows]]:
    fields = canonical_json.Fields(item, "a file of the checkpoint", ["name", "pieces"])
    pieces = [_rows(form) for form in fields.items("pieces")]
    if len({rows.array for rows in pieces}) != len(pieces):
        raise ProtocolError(f"file {fields.text('name')} holds an array twice")
    return fields.text("name"), pieces


def _rows(form: object) -> Rows:
    if isinstance(form, list) and form and isinstance(form[0], str):
        rest = form[1:]
        if not rest:
            return Rows(form[0])
        if len(rest) == 2 and all(type(number) is int and number >= 0 for number in rest):
            return Rows(form[0], rest[0], rest[1])
    raise ProtocolError("a piece of a file is [array] or [array, first row, rows]")
