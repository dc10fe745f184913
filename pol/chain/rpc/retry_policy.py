"""Retries of requests: how many, and after how long."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RetryPolicy:
    """A doubling back-off with jitter, so that many bots don't return at once; seconds.

    Equal seeds wait equally long. ``sleep`` takes seconds, ``now`` returns seconds since 1970.
    """

    attempts: int = 6
    first: float = 0.25
    longest: float = 8.0
    total: float = 60.0
    """Longest sum of waits: the caller's own clock may be running."""
    seed: int | None = None
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_random", random.Random(self.seed))

    def rounds(self, least: Callable[[], float]) -> Iterator[int]:
        """Numbers of the attempts; before each but the first it waits ``least()`` seconds or more."""
        waited = 0.0
        for attempt in range(self.attempts):
            if attempt:
                backoff = min(self.longest, self.first * 2 ** (attempt - 1))
                wait = max(backoff * self._random.uniform(0.5, 1.0), least())
                if waited + wait > self.total:
                    return
                self.sleep(wait)
                waited += wait
            yield attempt
