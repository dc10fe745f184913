"""The safetensors format: the one writer and the two readers (docs/spec/complete_state.md, "Files").

Names, types and an order of the tensors give one possible header. A reader that knows them compares it with what it
finds. The header of an unknown file is parsed strictly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, Bytes, ElementType
from pol.commitments.complete_state import encode_name
from pol.errors import ProtocolError
from pol.training.storage.store import OpenFile, ReadableFile, Store, read_up_to

Types: TypeAlias = Mapping[str, ArrayType]
Order: TypeAlias = Callable[[Types], list[str]]
Header: TypeAlias = tuple[dict[str, ArrayType], dict[str, tuple[int, int]], dict[str, str]]
"""Types, places in the data (begin and end) and metadata."""

ALIGNMENT = 8
LENGTH_SIZE = 8
HEADER_LIMIT = 1 << 25
"""Bytes of a parsed header at most: 200,000 tensors with names of 80 letters. The safetensors package takes 100 MB."""
METADATA = "__metadata__"
PIECE = 1 << 24
"""Bytes that are read or written at a time; whole leaves, and whole elements of every type."""


def by_size(types: Types) -> list[str]:
    """Names by falling element size, so that every array is aligned, then by name."""
    return sorted(types, key=lambda name: (-types[name].element.size, name.encode()))


def header(types: Types, order: Order = by_size) -> bytes:
    """All bytes before the data. Raises ProtocolError: a name isn't valid Unicode."""
    content, offset = {}, 0
    try:
        for name in order(types):
            type_, end = types[name], offset + types[name].nbytes
            content[name] = {"dtype": type_.element.name, "shape": list(type_.shape), "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(f"the name of a tensor isn't valid Unicode: {error}") from error
    text = text.ljust(-(-len(text) // ALIGNMENT) * ALIGNMENT)
    return len(text).to_bytes(LENGTH_SIZE, "little") + text


def size(types: Types) -> int:
    """Bytes of the whole file."""
    return len(header(types)) + sum(type_.nbytes for type_ in types.values())


def pieces(arrays: Mapping[str, Array], order: Order = by_size) -> Iterator[bytes | memoryview]:
    """The file of these arrays, piece by piece; only the header is copied."""
    types = {name: array.type for name, array in arrays.items()}
    yield header(types, order)
    for name in order(types):
        data = arrays[name].data
        # A filesystem over a network holds each piece in memory until it is sent.
        yield from (data[first : first + PIECE].data for first in range(0, data.size, PIECE))


class KnownFile:
    """An open file of tensors whose names and types are known: each one, or a piece of it, is read by its place.

    ``what`` names it in errors. Roots are still to be checked.
    """

    def __init__(self, file: OpenFile, types: Types, what: str):
        expected = header(types)
        self._file, self._types, self._what = file, types, what
        self._begin, end = {}, len(expected)
        for name in by_size(types):
            self._begin[name] = end
            end += types[name].nbytes
        if file.size != end:
            # Compared before memory is taken for the sizes that a document states.
            kind = "is truncated" if file.size < end else "goes on after its last tensor"
            raise ProtocolError(f"{what} {kind}: it has {file.size} bytes, not {end}")
        if _take(file, len(expected), f"the header of {what}") != expected:
            raise ProtocolError(f"{what} has another header than its names and types give: other tensors, or metadata")

    def read(self, name: str, first: int, size: int) -> Bytes:
        """``size`` bytes of a tensor from ``first`` on. Raises ProtocolError: the file ends before them."""
        self._file.seek(self._begin[name] + first)
        return np.frombuffer(_take(self._file, size, f"{self._what}, tensor {name}"), np.uint8)

    def array(self, name: str) -> Array:
        """A whole tensor. Raises ProtocolError: the file ends before it, or a boolean is neither 0 nor 1."""
        try:
            return Array(self._types[name], self.read(name, 0, self._types[name].nbytes))
        except ProtocolError as error:
            raise ProtocolError(f"{self._what}, tensor {name}: {error}") from error


@contextmanager
def open_known(store: Store, name: str, types: Types) -> Iterator[KnownFile]:
    """A file of a store that holds tensors of these names and types."""
    with store.open_file(name) as file:
        yield KnownFile(file, types, f"checkpoint file {name}")


def split(data: bytes | memoryview, what: str) -> tuple[int, Header]:
    """Where the data of a whole file begins, and its parsed header."""
    if len(data) < LENGTH_SIZE:
        raise ProtocolError(f"{what} has {len(data)} bytes, a safetensors file has at least {LENGTH_SIZE}")
    length = int.from_bytes(data[:LENGTH_SIZE], "little")
    if length > min(HEADER_LIMIT, len(data) - LENGTH_SIZE):
        raise ProtocolError(
            f"{what} isn't a safetensors file: it states a header of {length} bytes, in a file of {len(data)}"
        )
    begin = LENGTH_SIZE + length
    return begin, parse_header(bytes(data[LENGTH_SIZE:begin]), len(data) - begin, what)


def parse_header(header: bytes, data_size: int, what: str) -> Header:
    """Types and places of the tensors, and the metadata, of a header before ``data_size`` bytes of data.

    Raises:
        ProtocolError: not JSON, a key twice, a malformed tensor, or data that isn't covered exactly once.
    """
    if header[:1] != b"{":
        raise ProtocolError(f"the header of {what} doesn't begin with '{{': not a safetensors file")
    document = canonical_json.parse(header, f"the header of {what}", unique=True)
    metadata = document.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ProtocolError(f"the metadata of {what} isn't an object of texts")
    types, offsets = {}, {}
    for name, item in document.items():
        encode_name(name)
        types[name], offsets[name] = _tensor(item, f"tensor {name[:200]} of {what}")
    _require_cover(offsets, data_size, what)
    return types, offsets, metadata


def _tensor(item: object, what: str) -> tuple[ArrayType, tuple[int, int]]:
    fields = canonical_json.Fields(item, what, ["dtype", "shape", "data_offsets"])
    element, shape, offsets = fields.text("dtype"), fields.integers("shape"), fields.integers("data_offsets")
    try:
        type_ = ArrayType(ElementType.of_name(element), tuple(shape))
    except ProtocolError as error:
        raise ProtocolError(f"{what}: {error}") from error
    if len(offsets) != 2 or not 0 <= offsets[0] <= offsets[1]:
        raise ProtocolError(f"{what} has the offsets {offsets[:4]}, expected where it begins and where it ends")
    if offsets[1] - offsets[0] != type_.nbytes:
        raise ProtocolError(f"{what} has {type_.nbytes} bytes by its type, {offsets[1] - offsets[0]} by its offsets")
    return type_, (offsets[0], offsets[1])


def _require_cover(offsets: Mapping[str, tuple[int, int]], data_size: int, what: str) -> None:
    """Every byte of the data belongs to one tensor: nothing is hidden between them, and nothing is read twice."""
    reached = 0
    for name, (begin, end) in sorted(offsets.items(), key=lambda item: item[1]):
        if begin != reached:
            problem = "a hole before" if begin > reached else "an overlap at"
            raise ProtocolError(f"{what} has {problem} tensor {name[:200]}: it begins at {begin}, not at {reached}")
        reached = end
    if reached != data_size:
        raise ProtocolError(f"the tensors of {what} end at byte {reached} of {data_size} bytes of data")


def _take(file: ReadableFile, count: int, what: str) -> bytes:
    found = read_up_to(file, count)
    if len(found) != count:
        raise ProtocolError(f"{what} is truncated: {len(found)} of {count} bytes are there")
    return found
