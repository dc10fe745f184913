"""A checkpoint that several processes stored (docs/spec/complete_state.md, "Files of several processes").

Each process stores one file with whole arrays and runs of rows; the checkpoint's document says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pol.commitments.array import Array, ArrayType, Bytes
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training import canonical_json
from pol.training.state import tensor_file
from pol.training.store import Store

FORM = "sharded"
NAME_TAG = b"pol/part/1"


@dataclass(frozen=True)
class Rows:
    """Rows ``first`` to ``first + count`` of an array, or the whole array if there is no count."""

    array: str
    first: int = 0
    count: int | None = None

    def form(self) -> list[Any]:
        """As the document writes it."""
        return [self.array] if self.count is None else [self.array, self.first, self.count]

    def type_in(self, whole: ArrayType) -> ArrayType:
        """The type of the rows; ProtocolError if the array hasn't got them."""
        if self.count is None:
            return whole
        if not whole.shape or not 0 <= self.first <= self.first + self.count <= whole.shape[0]:
            raise ProtocolError(f"{self.array} of shape {whole.shape} has no rows {self.first} + {self.count}")
        return ArrayType(whole.element, (self.count, *whole.shape[1:]))

    def first_byte(self, whole: ArrayType) -> int:
        """Where the rows begin in the array."""
        return self.first * (whole.nbytes // whole.shape[0]) if self.count else 0


def file_name(root: bytes, pieces: Sequence[Rows]) -> str:
    """The name of the file that holds these pieces of the state with this complete root."""
    return (
        keccak256(NAME_TAG + root + canonical_json.encode({"pieces": [piece.form() for piece in pieces]})).hex()
        + ".safetensors"
    )


def write(store: Store, root: bytes, pieces: Mapping[Rows, Array]) -> None:
    """Store the file of one process.

    Raises:
        OperationalError: the store failed.
    """
    store.put_file(
        file_name(root, list(pieces)), tensor_file.pieces({rows.array: array for rows, array in pieces.items()})
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


def names(data: Mapping[str, Any]) -> list[str]:
    """The names of the files.

    Raises:
        ProtocolError: malformed.
    """
    fields = canonical_json.Fields(dict(data), "the data of the checkpoint", ["form", "files"])
    return [_file(item)[0] for item in fields.items("files")]


def read(store: Store, types: Mapping[str, ArrayType], data: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays put together from all files. Their roots are still to be checked.

    Raises:
        ProtocolError: malformed, a file with another content than the document says, or rows that are missing.
        OperationalError: the store failed.
    """
    fields = canonical_json.Fields(dict(data), "the data of the checkpoint", ["form", "files"])
    files = [_file(item) for item in fields.items("files")]
    ranges: dict[str, list[tuple[int, int]]] = {name: [] for name in types}
    for name, pieces in files:
        for rows in pieces:
            if rows.array not in types:
                raise ProtocolError(f"file {name} holds {rows.array!r}, which isn't in the checkpoint")
            first = rows.first_byte(types[rows.array])
            ranges[rows.array].append((first, first + rows.type_in(types[rows.array]).nbytes))
    for name, found in ranges.items():
        _require_whole(name, sorted(found), types[name].nbytes)
    wholes: dict[str, Bytes] = {}
    for name, pieces in files:
        held = {rows.array: rows.type_in(types[rows.array]) for rows in pieces}
        with store.open_file(name) as file:
            if file.size != (size := tensor_file.size(held)):
                # Compared before memory is taken for what a document says.
                raise ProtocolError(f"checkpoint file {name} has {file.size} bytes, not {size}")
            arrays = tensor_file.read(file, held, f"checkpoint file {name}")
        for rows in pieces:
            first, part = rows.first_byte(types[rows.array]), arrays[rows.array].data
            if rows.array not in wholes:
                wholes[rows.array] = np.empty(types[rows.array].nbytes, np.uint8)
            wholes[rows.array][first : first + part.size] = part
    return {name: Array(type_, wholes.get(name, np.empty(0, np.uint8))) for name, type_ in types.items()}


def _require_whole(name: str, ranges: list[tuple[int, int]], size: int) -> None:
    end = 0
    for first, last in ranges:
        if first != end:
            raise ProtocolError(f"the files of the checkpoint leave a gap or overlap at byte {first} of {name}")
        end = last
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
