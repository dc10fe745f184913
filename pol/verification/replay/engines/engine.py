"""What every engine gets and gives: one job for each segment, one result for each job, the same whatever the engine."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import Three
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType
from pol.training.storage.store import Store
from pol.training.task import published_task
from pol.training.task.learning_proof import TaskCheckpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.verdict.second_look import LOOKS, SecondLooker
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, judge, verify_entries

ATTEMPTS = 3
"""How often a job is begun whose process ends before it has an answer."""
MAX_OBSERVED = 8


@dataclass(frozen=True)
class Job:
    """One segment to verify. All that travels to a worker are names: the store's URL, digests and roots.

    ``looks`` is how many reruns a second look has (`pol.verification.verdict.second_look`), 0 for none.
    """

    store: str
    task: str
    start: TaskCheckpoint
    end: TaskCheckpoint
    thresholds: Three
    looks: int = LOOKS


@dataclass(frozen=True)
class Examined:
    """The verdict on a segment, and the scalars that the replay observed, one number for each step."""

    verdict: Verdict
    observed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


class Engine(Protocol):
    """Replays segments somewhere."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Examined]:
        """One result for each job, as they come. What keeps a segment from being replayed makes it INCONCLUSIVE.

        Raises:
            OperationalError: this engine can't do these jobs at all.
        """
        ...


def examine(job: Job, threads: int) -> Examined:
    """Do a job in this process; ``threads`` of the kernels change no bit, 0 takes all that the machine has."""
    try:
        store, loaded, executor = _prepare(job.store, job.task, threads)
    except (ProtocolError, OperationalError, UnsupportedError, MemoryError) as error:
        outcome, reason = judge(error)
        return Examined(Verdict(job.start.index, outcome, (reason,), f"the task: {error}"))
    names = _scalars(loaded)
    seen: dict[str, list[float]] = {name: [] for name in names}

    def observe(step: int, words: list[Words]) -> None:
        for name, value in zip(names, words, strict=True):
            seen[name].append(float(value.reshape(-1).view(np.float32)[0]))

    again = SecondLooker(loaded, functools.partial(CpuExecutor, threads=threads), job.thresholds, job.looks)
    verdict = verify_entries(store, loaded, job.start, job.end, executor, job.thresholds, observe, again)
    return Examined(verdict, {name: tuple(values) for name, values in seen.items()})


def forget() -> None:
    """Let go of what this process keeps from one job to the next: a task with its data."""
    _prepare.cache_clear()


def lost(job: Job, how: str) -> Examined:
    """The result of a job whose process ended without one, however often it was begun."""
    detail = f"the process that replayed the segment ended {ATTEMPTS} times: {how}"
    return Examined(Verdict(job.start.index, Outcome.INCONCLUSIVE, (Reason.WORKER_LOST,), detail))


def require_shared(jobs: Sequence[Job]) -> None:
    """Check that other processes can read the stores of these jobs.

    Raises:
        OperationalError: one is in the memory of this process.
    """
    for job in jobs:
        if job.store.startswith("memory://"):
            raise OperationalError(f"{job.store} is seen by this process alone: use the local engine, or another store")


@functools.lru_cache(maxsize=1)
def _prepare(url: str, digest: str, threads: int) -> tuple[Store, LoadedTask, CpuExecutor]:
    """What the jobs of one proof share; a process does many of them."""
    store = Store(url)
    loaded = published_task.load(store, digest)
    places = [loaded.names.observed[name] for name in _scalars(loaded)]
    return store, loaded, CpuExecutor(loaded.program, loaded.constants, threads, places)


def _scalars(loaded: LoadedTask) -> list[str]:
    """Observed nodes that are one f32 each, such as the loss."""
    program: StepProgram = loaded.program
    types = {name: program.nodes[node].type for name, node in loaded.names.observed.items()}
    return [name for name, type_ in types.items() if type_.numel == 1 and type_.dtype is DType.F32][:MAX_OBSERVED]
