"""One party's executions of profiled segments, as evidence in disputes about profiles."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import Rerun
from pol.dispute.disputed_claim import ReplayClaim, SumClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.play.kept_traces import KeptTraces
from pol.errors import ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import StepProgram
from pol.graph.sum_reordering import reorder
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind
from pol.verification.profile.profile_claim import Portion

KEPT_BYTES = 2 << 30
"""Of portions in memory, and of reruns."""


class ProfileEvidence:
    """Executions of the profiled segments and of their reruns, on demand.

    Args:
        task: the profiled task.
        reruns: number of reruns of each segment (`Terms.rerun_count`).
        executors: what executes them.
    """

    def __init__(self, task: LoadedTask, reruns: int, executors: ExecutorFactory) -> None:
        self.task = task
        self.reruns = reruns
        self._executors = executors
        self._portions: KeptTraces[int] = KeptTraces(KEPT_BYTES)
        self._reruns: KeptTraces[int] = KeptTraces(KEPT_BYTES)

    def portion(self, segment: int) -> SegmentTrace:
        """The canonical execution of a segment, from the initial state on."""

        def execute() -> SegmentTrace:
            start = self.end(self.portion(segment - 1)) if segment else self.task.initial_state
            return self._trace(self.task.program, segment, start)

        return self._portions.get(segment, execute)

    def rerun(self, index: int) -> SegmentTrace:
        """A rerun, from the state before its segment."""
        segment, seed = divmod(index, self.reruns)
        return self._reruns.get(
            index, lambda: self._trace(reorder(self.task.program, seed), segment, self.start(segment))
        )

    def start(self, segment: int) -> list[Words]:
        """The state before a segment."""
        return self.portion(segment).state(segment * self.task.document.interval)

    @staticmethod
    def end(trace: SegmentTrace) -> list[Words]:
        """The state after an execution."""
        return trace.state(trace.first_step + trace.steps)

    def program(self, charge: ProfileCharge) -> StepProgram:
        """The program that a dispute about a charge executes."""
        if charge.kind is ProfileChargeKind.RERUN:
            return reorder(self.task.program, charge.index % self.reruns)
        return self.task.program

    def player(self, charge: ProfileCharge) -> Player:
        """The player that compares openings with this party's own executions."""
        if charge.kind is ProfileChargeKind.PORTION:
            return ReplayPlayer(self.portion(charge.index))
        if charge.kind is ProfileChargeKind.RERUN:
            return ReplayPlayer(self.rerun(charge.index))
        return SumPlayer(self.sums(charge))

    def sums(self, charge: ProfileCharge) -> SumEvidence:
        """The two states of a distance or a reference. Raises ProtocolError: the charge is about no sum."""
        if charge.component is None or charge.kind not in {ProfileChargeKind.DISTANCE, ProfileChargeKind.REFERENCE}:
            raise ProtocolError(f"{charge.kind.name} is no dispute about a sum")
        if charge.kind is ProfileChargeKind.DISTANCE:
            x, y = self.portion(charge.index // self.reruns), self.end(self.rerun(charge.index))
        else:
            x, y = self.portion(charge.index), self.start(charge.index)
        return SumEvidence(self.task.program, charge.component, self.end(x), y)

    def _trace(self, program: StepProgram, segment: int, start: Sequence[Words]) -> SegmentTrace:
        interval, constants = self.task.document.interval, self.task.constants
        executor = self._executors(program, constants)
        return SegmentTrace(program, constants, executor, start, segment * interval, interval)


def disputed(
    task: LoadedTask,
    portions: Sequence[Portion],
    reruns: int,
    charge: ProfileCharge,
    program: bytes,
    rerun: Rerun | None,
) -> ReplayClaim | SumClaim:
    """The part of a posted profile that a charge disputes; the contract starts the same dispute.

    ``program`` is the hash of the disputed program; ``rerun`` is that of RERUN and DISTANCE charges.
    """
    if charge.kind is ProfileChargeKind.UNDERSTATED:
        raise ProtocolError(f"{charge.kind.name} is no dispute: show the rerun (`convict_profile`)")
    document, identity = task.document, bytes(32)  # The dispute's id isn't known yet, and no opening depends on it.
    segment = (
        charge.index // reruns if charge.kind in {ProfileChargeKind.RERUN, ProfileChargeKind.DISTANCE} else charge.index
    )
    start = portions[segment - 1].end if segment else document.initial_state_root
    steps = (segment * document.interval, document.interval)
    if charge.kind is ProfileChargeKind.PORTION:
        return ReplayClaim(identity, program, document.constants_root, *steps, start, portions[segment].end)
    if charge.kind is ProfileChargeKind.RERUN and rerun is not None:
        return ReplayClaim(identity, program, document.constants_root, *steps, start, rerun.end)
    if charge.kind is ProfileChargeKind.DISTANCE and rerun is not None and charge.component is not None:
        total = rerun.distances[charge.component - 1]
        return SumClaim(identity, program, charge.component, portions[segment].end, rerun.end, total)
    if charge.kind is ProfileChargeKind.REFERENCE and charge.component is not None:
        total = portions[segment].references[charge.component - 1]
        return SumClaim(identity, program, charge.component, portions[segment].end, start, total)
    raise ProtocolError(f"{charge.kind.name} is no dispute, or its rerun is missing")
