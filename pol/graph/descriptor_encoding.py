"""Big-endian fields of descriptors; a truncated descriptor is a ProtocolError."""

from __future__ import annotations

import struct

from pol.errors import ProtocolError

U8 = struct.Struct(">B")
U32 = struct.Struct(">I")
I64 = struct.Struct(">q")


def u8(value: int) -> bytes:
    """One byte; ProtocolError if the value does not fit."""
    return _pack(U8, value)


def u32(value: int) -> bytes:
    """Four bytes, big-endian; ProtocolError if the value does not fit."""
    return _pack(U32, value)


def i64(value: int) -> bytes:
    """Eight bytes, big-endian, two's complement; ProtocolError if the value does not fit."""
    return _pack(I64, value)


def i64s(values: tuple[int, ...]) -> bytes:
    """Eight bytes for each value, as `i64` gives them."""
    try:
        return struct.pack(f">{len(values)}q", *values)
    except struct.error:
        return b"".join(map(i64, values))  # names the value


def _pack(field: struct.Struct, value: int) -> bytes:
    try:
        return field.pack(value)
    except struct.error as error:
        raise ProtocolError(f"{value!r} does not fit a field of {field.size} bytes") from error


class Reader:
    """A cursor over bytes that never reads past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)
        self._position = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes; ProtocolError if fewer are left."""
        end = self._position + count
        if count < 0 or end > len(self._data):
            raise ProtocolError(f"truncated: {count} bytes wanted at byte {self._position} of {len(self._data)}")
        piece = self._data[self._position : end]
        self._position = end
        return piece

    def u8(self) -> int:
        """The next byte as an unsigned integer."""
        return self.take(1)[0]

    def u32(self) -> int:
        """The next four bytes as an unsigned integer."""
        return int.from_bytes(self.take(4), "big")

    def i64(self) -> int:
        """The next eight bytes as a signed integer."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(len(self._data) - self._position)

    def end(self) -> None:
        """ProtocolError unless everything has been read."""
        left = len(self._data) - self._position
        if left:
            raise ProtocolError(f"{left} bytes too many after byte {self._position}")
