"""Checkpoints as compressed differences from the one before (docs/spec/complete_state.md, "Updates").

A step changes most weights by little: sign, exponent and the first bits of the fraction stay. So an array is combined
with its base by exclusive or, bytes of equal significance are grouped, and runs of zeros compress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, Bytes
from pol.errors import ProtocolError

RAW, XOR = "raw", "xor"
PIECE = 1 << 20
"""Bytes of an array that are grouped by significance at a time; a multiple of every element's size."""
MAX_WINDOW = 1 << 23
_LEVEL = 1
_MAX_RATIO = 1 << 16
"""More than zstandard reaches: a block of at most 2^17 bytes takes at least 4."""


@dataclass(frozen=True)
class UpdatePart:
    """The bytes of one array in an update object: their coding and their number."""

    name: str
    coding: str
    size: int

    def to_json(self) -> dict[str, Any]:
        """Its form in the checkpoint's document."""
        return {"name": self.name, "coding": self.coding, "bytes": self.size}

    @classmethod
    def of_json(cls, item: object) -> UpdatePart:
        """The part in such a form; ProtocolError if it holds none."""
        fields = canonical_json.Fields(item, "an array of an update", ["name", "coding", "bytes"])
        coding = fields.text("coding")
        if coding not in (RAW, XOR):
            raise ProtocolError(f"{fields.text('name')!r} has the unknown coding {coding!r} in an update")
        return cls(fields.text("name"), coding, fields.integer("bytes"))


def encode(
    arrays: Mapping[str, Array], base: Mapping[str, Array], names: Iterable[str]
) -> Iterator[tuple[UpdatePart, bytes | memoryview]]:
    """The parts of the update object that holds these arrays against those of the base, and the bytes of each."""
    for name in names:
        array, data = arrays[name], bytearray()
        # A small array isn't worth a frame; one that grows is written as it is.
        for piece in _compress(array, _base_of(array.type, base.get(name))):
            data += piece
            if len(data) >= array.type.nbytes:
                yield UpdatePart(name, RAW, array.type.nbytes), array.data.data
                break
        else:
            yield UpdatePart(name, XOR, len(data)), memoryview(data)


def offsets(parts: Iterable[UpdatePart], types: Mapping[str, ArrayType]) -> dict[str, tuple[int, UpdatePart]]:
    """Where each part begins in the update object; ``types`` are those of the checkpoint."""
    found: dict[str, tuple[int, UpdatePart]] = {}
    begin = 0
    for part in parts:
        if part.name not in types or part.name in found:
            raise ProtocolError(f"the update holds {part.name!r} twice, or the checkpoint has no such tensor")
        found[part.name], begin = (begin, part), begin + part.size
    return found


def decode(content: bytes, part: UpdatePart, type_: ArrayType, base: Array | None) -> Array:
    """The array in the bytes of its part of an update object; its root is still to be checked.

    Memory is bounded by the type.
    """
    if part.coding == RAW:
        if part.size != type_.nbytes:
            raise ProtocolError(f"tensor {part.name} has {type_.nbytes} bytes, the update holds {part.size}")
        values = np.frombuffer(content, np.uint8)
    else:
        values = _decompress(content, type_, _base_of(type_, base), part.name)
    try:
        return Array(type_, values)
    except ProtocolError as error:
        raise ProtocolError(f"tensor {part.name} of the update: {error}") from error


def _base_of(type_: ArrayType, base: Array | None) -> Bytes | None:
    """The bytes to combine with: those of the base's array if it has the same type, else none, for zeros."""
    return base.data if base is not None and base.type == type_ else None


def _compress(array: Array, base: Bytes | None) -> Iterator[bytes]:
    """One frame that states its size: pieces of the array, each xor its base, its bytes grouped by significance."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=array.type.nbytes)
    for first in range(0, array.type.nbytes, PIECE):
        piece = array.data[first : first + PIECE]
        if base is not None:
            piece = piece ^ base[first : first + PIECE]
        yield compressor.compress(np.ascontiguousarray(piece.reshape(-1, array.type.element.size).T).data)
    yield compressor.flush()


def _decompress(content: bytes, type_: ArrayType, base: Bytes | None, name: str) -> Bytes:
    try:
        if zstandard.get_frame_parameters(content).content_size != type_.nbytes:
            raise ProtocolError(f"tensor {name} of the update isn't one frame of {type_.nbytes} bytes")
        if type_.nbytes > len(content) * _MAX_RATIO:
            # Checked before memory is taken for the size that a document states.
            raise ProtocolError(f"tensor {name} of the update can't be {type_.nbytes} bytes: {len(content)} are there")
        values = np.empty(type_.nbytes, np.uint8)
        reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(content)
        for first in range(0, type_.nbytes, PIECE):
            target = values[first : first + PIECE]
            planes = reader.read(target.size)
            if len(planes) != target.size:
                raise ProtocolError(f"tensor {name} of the update is truncated")
            target[:] = np.frombuffer(planes, np.uint8).reshape(type_.element.size, -1).T.reshape(-1)
            if base is not None:
                target ^= base[first : first + PIECE]
        if reader.read(1):
            raise ProtocolError(f"tensor {name} of the update goes on after its last element")
    except zstandard.ZstdError as error:
        raise ProtocolError(f"tensor {name} of the update isn't compressed as it should be: {error}") from error
    return values
