"""Reading packed bytes from front to back: the form of moves and openings (docs/spec/dispute.md)."""

from __future__ import annotations

from pol.dispute.moves import IllegalMove


class PackedReader:
    """A cursor over packed bytes; reading past their end raises `IllegalMove`."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        if size > len(self._rest):
            raise IllegalMove(f"the packed bytes end {size - len(self._rest)} bytes too early")
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def number(self, size: int) -> int:
        """The next big-endian integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "big")

    def hashes(self, count: int) -> tuple[bytes, ...]:
        """The next ``count`` hashes."""
        return tuple(self.take(32) for _ in range(count))

    def sized(self) -> bytes:
        """The next bytes, after their length in two bytes."""
        return self.take(self.number(2))

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(len(self._rest))

    def end(self) -> None:
        """IllegalMove unless everything has been read."""
        if self._rest:
            raise IllegalMove(f"the packed bytes have {len(self._rest)} bytes too many")
