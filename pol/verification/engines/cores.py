"""An engine for all cores of this machine: one process a core, because small models don't fill threads."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from pol.execution.available_memory import available_memory
from pol.verification.engines.engine import (
    ATTEMPTS,
    ExaminedSegment,
    ReplayJob,
    lost_segment,
    replay_segment,
    require_shared,
)

OWN_BYTES = 1 << 28
"""Of a process before it has read anything."""
MOST_PLACES = 1 << 16
"""Where the free memory is unknown."""


class CoresEngine:
    """Replays in several processes with ``threads`` each; 0 divides the cores among the jobs.

    ``cores`` is the number of cores that they share; 0 takes all that this process may use.
    """

    def __init__(self, threads: int = 0, cores: int = 0):
        self._threads, self._cores = threads, cores

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in order of completion. Raises OperationalError: a store that only this process sees."""
        require_shared(jobs)
        if not jobs:
            return
        cores = self._cores or len(os.sched_getaffinity(0))
        processes = max(1, min(len(jobs), cores // (self._threads or 1), _places(max(job.memory for job in jobs))))
        threads = self._threads or max(1, cores // processes)
        left = yield from _together(jobs, processes, threads)
        # A process that ends takes the whole pool along: each job that is left gets a pool of its own.
        for job in left:
            for _ in range(ATTEMPTS - 1):
                again = yield from _together([job], 1, threads)
                if not again:
                    break
            else:
                yield lost_segment(job, "there may not be memory enough")


def _places(memory: int) -> int:
    """How many replays of so many bytes find room here at the same time."""
    free = available_memory()
    return max(1, free // (memory + OWN_BYTES)) if free is not None else MOST_PLACES


def _together(
    jobs: Sequence[ReplayJob], processes: int, threads: int
) -> Generator[ExaminedSegment, None, list[ReplayJob]]:
    """Yields results, and returns the jobs without one because a process ended."""
    broken = []
    # Spawned: a forked process would inherit threads of the kernels, of torch and of filesystems in unknown states.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(replay_segment, job, threads): job for job in jobs}
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.append(futures[future])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return broken
