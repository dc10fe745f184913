"""Keeps a process going: turns until it is told to stop, whatever node and store do meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from pol.errors import OperationalError
from pol.roles.party.decisions import Mode
from pol.roles.process.party_process import Process, Result, Taken

LONGEST_BACKOFF = 300.0
"""Seconds."""


class Running:
    """Turns of one process with waits between them.

    Args:
        process: whose turns.
        poll: seconds between two looks at the chain while nothing happens; somebody else may move at any time.
        tell: is told what goes wrong.
        sleep: waits so many seconds; returns True if the process is to end.
        chance: draws the jitter of the back-off, in 0 .. 1.
    """

    def __init__(
        self,
        process: Process[Any],
        poll: float,
        tell: Callable[[str], None],
        sleep: Callable[[float], bool],
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.process, self.poll = process, poll
        self._tell, self._sleep, self._chance, self._clock = tell, sleep, chance, clock
        self.failures = 0
        """Turns in a row in which the chain couldn't be looked at."""
        self.last_turn: float | None = None
        """When the last turn ended that could look at the chain, by ``clock``."""

    def turn(self) -> float:
        """One turn; seconds until the next one."""
        try:
            if self.process.mode is not Mode.WATCH:
                # What an earlier turn or process has begun, or a reorganisation has undone, is on the chain first.
                self.process.role.wallet.outbox.resume()
            taken = self.process.turn()
        except OperationalError as error:
            self._tell(str(error))
            return self._failed()
        # What fails about one task is put off by the process: others don't wait for it.
        self.last_turn, self.failures = self._clock(), 0
        return self._pause(taken)

    def run(self) -> None:
        """Turns until ``sleep`` says that it is enough."""
        while not self._sleep(self.turn()):
            pass

    def _pause(self, taken: Sequence[Taken]) -> float:
        if any(made.result is Result.DONE for made in taken):
            return 0
        return min([self.poll, *(left for left in self.process.left() if left > 0)])

    def _failed(self) -> float:
        """Longer with every failure, with a jitter: processes that lost the same node don't come back together.

        No longer than until something is due that is known of, and no longer than the poll if it is due already.
        """
        self.failures += 1
        backoff = min(self.poll * 2.0 ** min(self.failures, 30), LONGEST_BACKOFF)
        return max(self.poll, min([backoff * (1 + self._chance()) / 2, *self.process.left()]))
