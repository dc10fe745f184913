"""One process: one segment after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pol.verification.replay.engines.engine import Examined, Job, examine, forget


class LocalEngine:
    """Replays in this process; ``threads`` of the kernels, 0 for all that the machine has."""

    def __init__(self, threads: int = 0):
        self._threads = threads

    def run(self, jobs: Sequence[Job]) -> Iterator[Examined]:
        """The results, in the order of the jobs."""
        try:
            for job in jobs:
                yield examine(job, self._threads)
        finally:
            forget()
