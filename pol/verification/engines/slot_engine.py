"""An engine in this process that also keeps how far each slot of each segment is from its replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pol.arithmetic.primitives import Words
from pol.execution.device.open_device import CPU
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.training.task.task_document import LoadedTask
from pol.verification.engines.engine import ExaminedSegment, ReplayJob, forget_task, replay_segment, require_device
from pol.verification.verdict.slot_residual import slot_lengths


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
