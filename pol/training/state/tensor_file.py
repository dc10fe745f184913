"""Safetensors files in one possible encoding, written and read piece by piece (docs/spec/complete_state.md, "Files").

Names and types say what every byte before the data must be. A reader knows them from a document whose digest it has
checked, so it compares the header and never parses a stranger's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from pol.commitments.array import Array, ArrayType, Bytes
from pol.errors import ProtocolError

ALIGNMENT = 8


class Readable(Protocol):
    """A file open for reading; fsspec's and Python's are."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, fewer only at the end."""
        ...


def order(types: Mapping[str, ArrayType]) -> list[str]:
    """Names in the order of their data: great elements first, so that every array is aligned, then by name."""
    return sorted(types, key=lambda name: (-types[name].element.size, name.encode()))


def header(types: Mapping[str, ArrayType]) -> bytes:
    """Everything before the data."""
    content, offset = {}, 0
    for name in order(types):
        type_, end = types[name], offset + types[name].nbytes
        content[name] = {"dtype": type_.element.name, "shape": list(type_.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // ALIGNMENT) * ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def size(types: Mapping[str, ArrayType]) -> int:
    """Bytes of the whole file."""
    return len(header(types)) + sum(type_.nbytes for type_ in types.values())


def pieces(arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """The file of these arrays, piece by piece; nothing but the header is copied."""
    types = {name: array.type for name, array in arrays.items()}
    yield header(types)
    for name in order(types):
        if types[name].nbytes:
            yield arrays[name].data.data


def read(file: Readable, types: Mapping[str, ArrayType], what: str) -> dict[str, Array]:
    """The arrays of a file of these names and types; ``what`` names it in errors. Their roots are still to be checked.

    Raises:
        ProtocolError: another header, too few bytes or too many, or a boolean that is neither 0 nor 1.
    """
    expected = header(types)
    if _take(file, len(expected), f"the header of {what}") != expected:
        raise ProtocolError(f"{what} has another header than its names and types give: other tensors, or metadata")
    arrays = {}
    for name in order(types):
        data = np.empty(types[name].nbytes, np.uint8)
        _fill(file, data, f"{what}, tensor {name}")
        try:
            arrays[name] = Array(types[name], data)
        except ProtocolError as error:
            raise ProtocolError(f"{what}, tensor {name}: {error}") from error
    if file.read(1):
        raise ProtocolError(f"{what} goes on after its last tensor")
    return arrays


_PIECE = 1 << 24


def _fill(file: Readable, target: Bytes, what: str) -> None:
    for first in range(0, target.size, _PIECE):
        piece = target[first : first + _PIECE]
        piece[:] = np.frombuffer(_take(file, piece.size, what), np.uint8)


def _take(file: Readable, count: int, what: str) -> bytes:
    found = file.read(count)
    while len(found) < count and (more := file.read(count - len(found))):
        found += more
    if len(found) != count:
        raise ProtocolError(f"{what} is truncated: {len(found)} of {count} bytes are there")
    return found
