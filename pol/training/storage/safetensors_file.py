"""Safetensors files of strangers: a header parsed strictly, data read through a memory map.

Files that a recorder writes have one possible header (`pol.training.state.tensor_file`); anybody else's has any.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, Bytes, ElementType
from pol.commitments.complete_state import encode_name
from pol.errors import OperationalError, ProtocolError

HEADER_LIMIT = 1 << 25
"""Bytes of a header at most: 200,000 tensors with names of 80 letters. The safetensors package takes 100 MB."""
METADATA = "__metadata__"
_LENGTH = 8


class SafetensorsFile:
    """A safetensors file. The tensors are views of the file: its content must not change while they are used.

    Raises:
        ProtocolError: not a valid safetensors file; the message says where.
        OperationalError: the file can't be read.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                if size < _LENGTH:
                    raise ProtocolError(f"{path} has {size} bytes, a safetensors file has at least {_LENGTH}")
                # Not closed by hand: views of it may outlive this object, and the last one frees it.
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise OperationalError(f"can't read {path}: {error}") from error
        length = int.from_bytes(self._map[:_LENGTH], "little")
        if length > min(HEADER_LIMIT, len(self._map) - _LENGTH):
            raise ProtocolError(
                f"{path} isn't a safetensors file: it states a header of {length} bytes, in a file of {len(self._map)}"
            )
        self._begin = _LENGTH + length
        header = self._map[_LENGTH : self._begin]
        self.types, self._offsets, self.metadata = parse_header(header, len(self._map) - self._begin, str(path))
        self._bytes: Bytes = np.frombuffer(self._map, np.uint8)

    def array(self, name: str) -> Array:
        """A tensor, without a copy.

        Raises:
            ProtocolError: a boolean that is neither 0 nor 1.
        """
        begin, end = self._offsets[name]
        try:
            return Array(self.types[name], self._bytes[self._begin + begin : self._begin + end])
        except ProtocolError as error:
            raise ProtocolError(f"{self.path}, tensor {name}: {error}") from error

    def release(self, name: str, first: int = 0, size: int | None = None) -> None:
        """Say that a tensor, or ``size`` bytes of it from ``first`` on, isn't needed for now.

        The system may take the memory back; it reads the file again if it is needed after all.
        """
        begin, end = (self._begin + offset for offset in self._offsets[name])
        begin += first
        end = end if size is None else min(end, begin + size)
        begin -= begin % mmap.PAGESIZE
        if hasattr(self._map, "madvise") and end > begin:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)


Header = tuple[dict[str, ArrayType], dict[str, tuple[int, int]], dict[str, str]]


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
