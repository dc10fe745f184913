"""The interface of engines: one job for each segment, one result for each job, the same on every engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import Three
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.execution.device.open_device import CPU, executors_on, open_device, require_device_name
from pol.execution.executor import Executor
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType
from pol.training.storage.store import Store
from pol.training.task import published_task
from pol.training.task.learning_proof import TaskCheckpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.verdict.drift import Direction, direction
from pol.verification.verdict.second_look import LOOKS, SecondLooker
from pol.verification.verdict.segment_pairs import paired_entry, paired_task
from pol.verification.verdict.segment_verification import verify_entries
from pol.verification.verdict.slot_residual import SlotExaminer, marked, slot_lengths
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, outcome_of_failure

ATTEMPTS = 3
"""Attempts at a job whose process ends without a result."""
MAX_OBSERVED = 8
Compared: TypeAlias = Callable[[LoadedTask, Sequence[Words], Sequence[Words], Sequence[Words]], None]
"""``compared(task, start, replayed, end)``: looks at the states of a segment while they are in memory."""


@dataclass(frozen=True)
class ReplayJob:
    """One segment to verify. A worker receives names only: the store's URL, digests and roots.

    ``looks`` is how many reruns a second look has (`pol.verification.verdict.second_look`), 0 for none. ``sketched`` is
    the seed of sketches, by which drift and residuals outside of the span of reruns are found; empty: neither is. With
    ``is_pair`` the checkpoints are those around two segments, which are replayed as one
    (`pol.verification.verdict.segment_pairs`). ``memory`` is an estimate of the bytes that the replay takes.
    """

    store: str
    task: str
    start: TaskCheckpoint
    end: TaskCheckpoint
    thresholds: Three
    looks: int = LOOKS
    sketched: bytes = b""
    is_pair: bool = False
    memory: int = 0

    @property
    def segment(self) -> int:
        """The number of the segment, or of the pair."""
        return self.start.index // 2 if self.is_pair else self.start.index

    @property
    def named(self) -> str:
        """The same for people."""
        first = self.start.index
        return f"segments {first} and {first + 1}" if self.is_pair else f"segment {first}"


@dataclass(frozen=True)
class ExaminedSegment:
    """The verdict on a segment, the scalars that the replay observed, one for each step, and the residual's direction.

    ``direction`` is None if none was asked for, or nothing could be replayed.
    """

    verdict: Verdict
    observed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    direction: Direction | None = None


class Engine(Protocol):
    """Replays segments somewhere."""

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """One result for each job, in order of completion. A segment that can't be replayed is INCONCLUSIVE.

        Raises:
            OperationalError: this engine can't do these jobs at all.
        """
        ...


def replay_segment(
    job: ReplayJob, threads: int, device: str = CPU, compared: Compared | None = None
) -> ExaminedSegment:
    """Do a job in this process with ``threads`` of the kernels, 0 for all, or on a device: the bits are the same.

    ``compared`` looks at the states of a segment, not at those of a pair.
    """
    try:
        store, loaded, executor = _prepare(job.store, job.task, threads, device)
    except (ProtocolError, OperationalError, UnsupportedError, MemoryError) as error:
        outcome, reason = outcome_of_failure(error)
        return ExaminedSegment(Verdict(job.segment, outcome, (reason,), f"the task: {error}"))
    start, end = job.start, job.end
    if job.is_pair:
        loaded, start, end = paired_task(loaded), paired_entry(start), paired_entry(end)
    names = observed_scalars(loaded)
    seen: dict[str, list[float]] = {name: [] for name in names}

    def observe(step: int, words: list[Words]) -> None:
        for name, value in zip(names, words, strict=True):
            seen[name].append(float(value.reshape(-1).view(np.float32)[0]))

    found: list[Direction] = []
    states: list[tuple[Sequence[Words], Sequence[Words], Sequence[Words]]] = []
    executors = executors_on(device, threads)

    def compare(before: Sequence[Words], replayed: Sequence[Words], after: Sequence[Words]) -> None:
        if compared is not None:
            compared(loaded, before, replayed, after)
        if job.sketched:
            found.append(direction(loaded.program, replayed, after, job.sketched))
            states.append((before, replayed, after))

    again = SecondLooker(loaded, executors, job.thresholds, job.looks, seed=job.sketched)
    verdict = verify_entries(
        store,
        loaded,
        start,
        end,
        executor,
        job.thresholds,
        observe,
        again,
        compare=compare if (job.sketched or compared) and not job.is_pair else None,
        halves=job.is_pair,
    )
    if states and verdict.outcome is Outcome.ACCEPTED:
        verdict = marked(verdict, SlotExaminer(loaded, executors).unexplained(job.segment, *states[0]))
    return ExaminedSegment(verdict, {name: tuple(values) for name, values in seen.items()}, found[0] if found else None)


def forget_task() -> None:
    """Free what this process keeps between jobs: a task with its data."""
    _prepare.cache_clear()


def lost_segment(job: ReplayJob, how: str, attempts: int = ATTEMPTS) -> ExaminedSegment:
    """The result of a job whose process ended without one in every attempt."""
    detail = f"the process that replayed the segment ended {attempts} times: {how}"
    return ExaminedSegment(Verdict(job.segment, Outcome.INCONCLUSIVE, (Reason.WORKER_LOST,), detail))


def require_shared(jobs: Sequence[ReplayJob]) -> None:
    """Check that other processes can read the stores of these jobs."""
    for job in jobs:
        if job.store.startswith("memory://"):
            raise OperationalError(
                f"{job.store} is visible to this process only: use the local engine, or another store"
            )


def require_device(device: str) -> None:
    """Open the device of jobs before the first one: without it no segment can be replayed.

    Raises:
        OperationalError: there is none, or it doesn't give the defined bits.
    """
    if device != CPU:
        open_device(device)


@functools.lru_cache(maxsize=1)
def _prepare(url: str, digest: str, threads: int, device: str) -> tuple[Store, LoadedTask, Executor]:
    """Store, task and executor, which all jobs of one proof share."""
    store = Store(url)
    # A replay begins at a checkpoint, also the first one.
    loaded = published_task.let_go(published_task.load(store, digest), store)
    places = [loaded.names.observed[name] for name in observed_scalars(loaded)]
    return store, loaded, executors_on(device, threads)(loaded.program, loaded.constants).observing(places)


def observed_scalars(loaded: LoadedTask) -> list[str]:
    """Observed nodes that are one f32 each, such as the loss."""
    program: StepProgram = loaded.program
    types = {name: program.nodes[node].type for name, node in loaded.names.observed.items()}
    return [name for name, type_ in types.items() if type_.numel == 1 and type_.dtype is DType.F32][:MAX_OBSERVED]


class LocalEngine:
    """Replays in this process; ``threads`` of the kernels, 0 for all that the machine has, or on a device."""

    def __init__(self, threads: int = 0, device: str = CPU):
        self._threads, self._device = threads, require_device_name(device)

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in the order of the jobs. Raises OperationalError: the device can't be used."""
        require_device(self._device)
        try:
            for job in jobs:
                yield replay_segment(job, self._threads, self._device)
        finally:
            forget_task()


@dataclass(frozen=True)
class SlotDistance:
    """One slot at the end of a segment: L2 norms of solver's end minus replayed end, and of replayed end minus start.

    Zero for integers.
    """

    slot: str
    residual: float
    way: float


@dataclass
class SlotEngine:
    """Replays in this process, as `LocalEngine`; ``distances`` has the slots of each segment that could be replayed."""

    threads: int = 0
    device: str = CPU
    distances: dict[int, tuple[SlotDistance, ...]] = field(default_factory=dict)

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in the order of the jobs. Raises OperationalError: the device can't be used."""
        require_device(self.device)

        def keep(job: ReplayJob) -> ExaminedSegment:
            def compared(
                task: LoadedTask, start: Sequence[Words], replayed: Sequence[Words], end: Sequence[Words]
            ) -> None:
                self.distances[job.segment] = slot_distances(task.program, task.names, start, replayed, end)

            return replay_segment(job, self.threads, self.device, compared)

        try:
            for job in jobs:
                yield keep(job)
        finally:
            forget_task()


def slot_distances(
    program: StepProgram, names: ProgramNames, start: Sequence[Words], replayed: Sequence[Words], end: Sequence[Words]
) -> tuple[SlotDistance, ...]:
    """All slots of a segment, in the order of the program."""
    residuals, ways = slot_lengths(program, replayed, end), slot_lengths(program, replayed, start)
    return tuple(SlotDistance(*found) for found in zip(names.slots, residuals, ways, strict=True))
