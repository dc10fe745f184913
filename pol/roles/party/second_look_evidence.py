"""One party's executions of second looks, as evidence in disputes about them (docs/spec/verdict.md)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pol.chain.court.dispute_game import StartParams
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.profiles import ProvedProgram
from pol.chain.desks.task_registry import Terms
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.tensor import state_root
from pol.dispute.disputed_claim import ReplayClaim, SumClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.play.kept_traces import KeptTraces
from pol.errors import ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import Component, StepProgram
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profiling import rerun_programs
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.second_look import look_program

LOOK_CHARGES = frozenset({ClaimChargeKind.LOOK_RERUN, ClaimChargeKind.LOOK_DISTANCE})
"""Charges against a second look, not against the claim itself."""
KEPT_BYTES = 2 << 30
"""Of reruns in memory."""


class SecondLookEvidence:
    """Reruns of segments, on demand.

    Args:
        task: the task of the segments.
        terms: the number of reruns, and the log of their programs (`Terms.reruns`).
        executors: what executes them.
    """

    def __init__(self, task: LoadedTask, terms: Terms, executors: ExecutorFactory) -> None:
        self.task = task
        self.terms = terms
        self._executors = executors
        self._traces: KeptTraces[tuple[int, bytes, int]] = KeptTraces(KEPT_BYTES)
        self._programs: dict[int, StepProgram] = {}

    def program(self, index: int) -> StepProgram:
        """The program of a rerun."""
        if index not in self._programs:
            self._programs[index] = look_program(self.task.program, index)
        return self._programs[index]

    def index(self, program: bytes) -> int:
        """The rerun that executes the program of this hash. Raises ProtocolError: there is none."""
        hashes = self._hashes[self.terms.rerun_count :]
        if program not in hashes:
            raise ProtocolError(f"no rerun of a second look executes program {program.hex()}")
        return hashes.index(program)

    def proved(self, index: int) -> ProvedProgram:
        """The hash of a rerun's program, with the proof that the terms name it."""
        entry = self.terms.rerun_count + index
        return self._hashes[entry], CheckpointLog(self._hashes).inclusion(entry)

    def rerun(self, replayed: SegmentTrace, index: int) -> SegmentTrace:
        """A rerun of the segment that ``replayed`` executes canonically."""

        def execute() -> SegmentTrace:
            program, constants = self.program(index), self.task.constants
            executor, start = self._executors(program, constants), replayed.state(replayed.first_step)
            return SegmentTrace(program, constants, executor, start, replayed.first_step, replayed.steps)

        first = replayed.first_step
        return self._traces.get((first, replayed.state_root(first), index), execute)

    def look(self, replayed: SegmentTrace) -> SecondLook:
        """The second look at the segment that ``replayed`` executes canonically."""
        first, steps, reruns = replayed.first_step, replayed.steps, []
        start, last = replayed.state(first), first + steps
        for index in range(self.terms.looks):
            # Of most reruns nobody asks for more than the end.
            program = self.program(index)
            end = replay_end(program, self._executors(program, self.task.constants), start, first, steps)
            distances = component_distances(self.task.program, replayed.state(last), end)
            reruns.append(Rerun(state_root(self.task.slot_types, end), distances))
        return SecondLook(replayed.first_step // self.task.document.interval, tuple(reruns))

    def disputed(self, claim: SegmentClaim, posted: Rerun, charge: ClaimCharge) -> ReplayClaim | SumClaim:
        """The part of a posted second look that a charge disputes; the contract starts the same dispute."""
        # The dispute's id isn't known yet, and no opening depends on it.
        document, identity = self.task.document, bytes(32)
        if charge.kind is ClaimChargeKind.LOOK_RERUN:
            program, steps = self._hashes[self.terms.rerun_count + charge.rerun], document.interval
            first = claim.segment * document.interval
            return ReplayClaim(identity, program, document.constants_root, first, steps, claim.start, posted.end)
        states, total = (claim.replay, posted.end), posted.distances[charge.component - 1]
        return SumClaim(identity, document.program_hash, charge.component, *states, total)

    def charged(self, charge: ClaimCharge, params: StartParams, posted: SecondLook | None) -> ClaimCharge:
        """The charge with its rerun, which follows from the game's parameters."""
        if charge.kind is ClaimChargeKind.LOOK_RERUN:
            return replace(charge, rerun=self.index(params.program))
        if charge.kind is ClaimChargeKind.LOOK_DISTANCE and posted is not None:
            return replace(charge, rerun=[rerun.end for rerun in posted.reruns].index(params.y))
        return charge

    def player(self, replayed: SegmentTrace, charge: ClaimCharge) -> Player:
        """The player that compares openings with this party's own executions."""
        trace, last = self.rerun(replayed, charge.rerun), replayed.first_step + replayed.steps
        if charge.kind is ClaimChargeKind.LOOK_RERUN:
            return ReplayPlayer(trace)
        states = replayed.hold(last), trace.hold(last)
        return SumPlayer(SumEvidence(self.task.program, Component(charge.component), *states))

    @cached_property
    def _hashes(self) -> list[bytes]:
        return rerun_programs(self.task.program, self.terms.rerun_count, self.terms.looks)
