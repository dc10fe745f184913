"""The loop of a process: turns and waits until it is told to stop, through failures of node and store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from pol.errors import OperationalError
from pol.roles.process.party_process import DecisionResult, LoggedDecision, PartyProcess

LONGEST_BACKOFF = 300.0
"""Seconds."""


class ProcessLoop:
    """Turns of one process with waits between them.

    Args:
        process: the process.
        poll: seconds between two looks at the chain; others may move at any time.
        tell: receives failures.
        sleep: waits; returns True to end the loop.
        chance: draws the jitter of the back-off, from 0 to 1.
    """

    def __init__(
        self,
        process: PartyProcess[Any],
        poll: float,
        tell: Callable[[str], None],
        sleep: Callable[[float], bool],
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.process, self.poll = process, poll
        self._tell, self._sleep, self._chance, self._clock = tell, sleep, chance, clock
        self.failures = 0
        """Turns in a row that couldn't read the chain."""
        self.last_turn: float | None = None
        """End of the last turn that could read the chain, by ``clock``."""

    def turn(self) -> float:
        """One turn; returns the seconds until the next."""
        try:
            taken = self.process.turn()
        except OperationalError as error:
            self._tell(str(error))
            return self._failed()
        # The process itself puts off a failing task, so others don't wait for it.
        self.last_turn, self.failures = self._clock(), 0
        return self._pause(taken)

    def run(self) -> None:
        """Run turns until ``sleep`` returns True."""
        while not self._sleep(self.turn()):
            pass

    def _pause(self, taken: Sequence[LoggedDecision]) -> float:
        if self.process.is_behind or any(made.result is DecisionResult.DONE for made in taken):
            return 0
        return min([self.poll, *(left for left in self.process.left() if left > 0)])

    def _failed(self) -> float:
        """Seconds to back off: longer with every failure, with jitter, so that processes don't return together.

        Never past a known deadline; one poll if something is overdue.
        """
        self.failures += 1
        backoff = min(self.poll * 2.0 ** min(self.failures, 30), LONGEST_BACKOFF)
        return max(self.poll, min([backoff * (1 + self._chance()) / 2, *self.process.left()]))
