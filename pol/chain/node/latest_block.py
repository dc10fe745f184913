"""Is what a node calls the latest block late enough to decide on?"""

from __future__ import annotations

import threading
from collections.abc import Callable

STALL_SECONDS = 300.0
"""Without a block for so long, a node isn't in step with its chain, or the chain stands still."""

_REMEMBERED = 256


class HeadWatch:
    """Follows the heads that answers show; asks nothing itself. Judges nothing before ``stall`` is set.

    Times are seconds since 1970. A shorter chain is a reorganisation where a block's hash has changed; where that
    can't be seen, it is a node that is behind, until ``stall`` seconds have passed.
    """

    def __init__(self, now: Callable[[], float], stall: float | None = None) -> None:
        self.stall = stall
        self._now = now
        self._lock = threading.Lock()
        self.forget()

    @property
    def highest(self) -> int:
        """The number of the last head; -1 before there is one."""
        return self._highest

    def forget(self) -> None:
        """Start anew: a test chain has been told to go back."""
        self._highest, self._risen = -1, 0.0
        self._hashes: dict[int, str] = {}

    def objection(self, number: int, block: str = "", timestamp: int | None = None) -> str | None:
        """Why nobody should decide on this head; None if nothing speaks against it."""
        with self._lock:
            now = self._now()
            if number < self._highest and self.stall is not None:
                known = self._hashes.get(number)
                reorganised = bool(block and known and block != known)
                if not reorganised and now - self._risen < self.stall:
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
