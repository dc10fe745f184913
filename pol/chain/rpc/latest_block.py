"""Freshness of a node's latest block."""

from __future__ import annotations

import threading
from collections.abc import Callable

STALL_SECONDS = 300.0
"""After so long without a block, a node is behind its chain, or the chain stands still."""

_REMEMBERED = 256


class HeadWatch:
    """Follows the heads in a node's answers, without requests of its own. It objects only after ``stall`` is set.

    Times are seconds since 1970. A lower head is a reorganization if a known block's hash has changed; otherwise the
    node is taken to be behind, until ``stall`` seconds have passed.
    """

    def __init__(self, now: Callable[[], float], stall: float | None = None) -> None:
        self.stall = stall
        self._now = now
        self._lock = threading.Lock()
        self.forget()

    @property
    def highest(self) -> int:
        """Number of the last head; -1 before the first."""
        return self._highest

    def forget(self) -> None:
        """Forget all heads: a test chain was sent back."""
        self._highest, self._risen = -1, 0.0
        self._hashes: dict[int, str] = {}

    def objection(self, number: int, block: str = "", timestamp: int | None = None) -> str | None:
        """The reason not to use this head; None if it is fine."""
        with self._lock:
            now = self._now()
            if number < self._highest and self.stall is not None:
                known = self._hashes.get(number)
                reorganized = bool(block and known and block != known)
                if not reorganized and now - self._risen < self.stall:
                    return f"its head went back from block {self._highest} to {number}"
            if number != self._highest:
                self._risen = now
                self._hashes = {n: h for n, h in self._hashes.items() if number - _REMEMBERED < n < number}
            self._highest = number
            if block:
                self._hashes[number] = block
            since = self._risen if timestamp is None else min(self._risen, timestamp)
            if self.stall is not None and now - since > self.stall:
                return f"its head has been block {number} for {now - since:.0f} s"
            return None
