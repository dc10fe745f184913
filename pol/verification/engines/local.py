"""An engine in this process: one segment after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pol.verification.engines.engine import ExaminedSegment, ReplayJob, forget_task, replay_segment


class LocalEngine:
    """Replays in this process; ``threads`` of the kernels, 0 for all that the machine has."""

    def __init__(self, threads: int = 0):
        self._threads = threads

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in the order of the jobs."""
        try:
            for job in jobs:
                yield replay_segment(job, self._threads)
        finally:
            forget_task()
