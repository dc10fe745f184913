"""Evidence about tasks by executions on this machine: for disputes, verdicts and pages. It holds no key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pol.arithmetic.primitives import Words
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.market import Matter
from pol.chain.desks.objections import CommittedSegment
from pol.claims.segment_claim import SecondLook, SegmentClaim
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.program_hash import program_header
from pol.dispute.disputed_claim import ReceiptClaim, ReplayClaim, SumClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.play.kept_traces import KeptTraces
from pol.dispute.play.receipt_evidence import open_receipt
from pol.errors import ProtocolError
from pol.execution.executor import Executor, ExecutorFactory, ResidentExecutor
from pol.graph.step_program import Component, StepProgram
from pol.roles.party.execution_journal import ExecutionJournal
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.profile_evidence import ProfileEvidence
from pol.roles.party.second_look_evidence import LOOK_CHARGES, SecondLookEvidence
from pol.roles.party.task_reader import TaskReader
from pol.training.task.learning_proof import load_checkpoint
from pol.verification.verdict.second_look import compare_second_looks, needs_second_look
from pol.verification.verdict.segment_verification import verify_segment

STEPS = {"run", "advance", "watch", "advance_resident"}


def attentive(executors: ExecutorFactory, look: Callable[[], None]) -> ExecutorFactory:
    """Executors that look up before each step."""

    def made(program: StepProgram, constants: Sequence[Words]) -> Executor:
        executor = executors(program, constants)
        if isinstance(executor, ResidentExecutor):
            return AttentiveDevice(executor, look)
        return AttentiveExecutor(executor, look)

    return made


def _passed(name: str) -> Any:
    def method(self: AttentiveExecutor, *arguments: Any) -> Any:
        if name in STEPS:
            self.look()
        return getattr(self.executor, name)(*arguments)

    return method


@dataclass(frozen=True)
class AttentiveExecutor:
    """See `attentive`."""

    executor: Executor
    look: Callable[[], None]
    run, advance, watch = map(_passed, ("run", "advance", "watch"))

    def observing(self, nodes: Sequence[int]) -> AttentiveExecutor:
        """See Executor."""
        return replace(self, executor=self.executor.observing(nodes))


class AttentiveDevice(AttentiveExecutor):
    """One whose states stay on a device."""

    place, fetch, fetch_observed = map(_passed, ("place", "fetch", "fetch_observed"))
    advance_resident, state_root = map(_passed, ("advance_resident", "state_root"))


EXECUTIONS = frozenset({ClaimChargeKind.REPLAY, ClaimChargeKind.BEFORE, ClaimChargeKind.RECEIPT})
"""Charges that are decided by executing the task's own program."""
KEPT_BYTES = 8 << 30
"""Of executions in memory; the last is kept whatever its size. Each has some states of its segment and the outputs that
a node reads, and anybody may begin a dispute about any segment."""


class Evidence(TaskReader):
    """Executions of segments. Each is made once, however many disputes it serves."""

    between: Callable[[], None] = staticmethod(lambda: None)
    """Called between the steps of what it executes (`attentively`)."""

    @property
    def attentive(self) -> ExecutorFactory:
        """This party's executors, which look up between two steps."""

        def look() -> None:
            self.between()  # what that is by then

        return attentive(self.times.executors, look)

    @cached_property
    def _traces(self) -> KeptTraces[tuple[bytes, int, bytes]]:
        """By task, segment and the root of its first state: a task may be trained again by another solver."""
        return KeptTraces(KEPT_BYTES)

    @cached_property
    def _profile_evidence(self) -> dict[bytes, ProfileEvidence]:
        return {}

    @cached_property
    def _second_looks(self) -> dict[bytes, SecondLookEvidence]:
        return {}

    def replayer(self, task_id: bytes, opinion: int) -> ExecutorFactory:
        """The executor of replays: this party's own, whichever opinion is asked for."""
        return self.attentive

    def trace(self, task_id: bytes, segment: int) -> SegmentTrace:
        """This party's execution of a segment, made once for as long as few others are asked for.

        Raises:
            ProtocolError: the evidence in the store is bad.
        """
        start = self.proof(task_id).checkpoints[segment].state_root
        return self._traces.get((task_id, segment, start), lambda: self.execute(task_id, segment))

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """A new execution of a segment, from the solver's checkpoint on. Raises as `trace`."""
        task, proof = self.task(task_id), self.proof(task_id)
        interval, executor = task.document.interval, self.replayer(task_id, 0)(task.program, task.constants)
        entry = proof.checkpoints[segment]

        def load() -> list[Words]:
            return load_checkpoint(self.store, task, entry)

        about, steps = (task.program, task.constants, executor), (segment * interval, interval)
        journal = None
        if isinstance(self.store, KeptStore):
            journal = ExecutionJournal(self.store.database, task_id, segment, entry.state_root)
        # A segment with a journal has been read and checked before.
        start = None if journal is not None and journal.roots() else load()
        if not self.store.keeps:
            # The solver's file may vanish.
            return SegmentTrace(*about, start or load(), *steps)
        return SegmentTrace(*about, start, *steps, load=load, journal=journal)

    def receipt_seed(self, task_id: bytes, segment: int) -> bytes | None:
        """What draws the nodes of a segment's receipt; None where claims have none.

        Raises:
            Reverted: nothing is drawn yet.
        """
        if not self.market.registry.terms(task_id).is_exact:
            return None
        return self.market.proofs.receipt_seed(task_id, segment)

    def committed_segment(self, task_id: bytes, segment: int) -> CommittedSegment:
        """A segment as the solver has committed to it.

        Raises:
            ProtocolError: there is no such segment, or the published proof isn't the committed one.
        """
        checkpoints = self.proof(task_id).checkpoints
        if not 0 <= segment < len(checkpoints) - 1:
            raise ProtocolError(f"no segment {segment}: the task has {len(checkpoints) - 1}, from 0")
        log = CheckpointLog([entry.state_root for entry in checkpoints])
        start, end = (checkpoints[segment + i].state_root for i in range(2))
        return CommittedSegment(segment, start, end, (log.inclusion(segment), log.inclusion(segment + 1)))

    def own_claim(
        self, task_id: bytes, segment: int, opinion: int = 0, receipt_seed: bytes | None = None
    ) -> SegmentClaim | None:
        """What a verdict would have to say about a segment, by this party's replay; None if it can't be replayed."""
        task, proof, thresholds = self.task(task_id), self.proof(task_id), self.thresholds(task_id)
        executor = self.replayer(task_id, opinion)(task.program, task.constants)
        return verify_segment(self.store, task, proof, executor, segment, thresholds, receipt_seed=receipt_seed).claim

    def own_look(self, task_id: bytes, own: SegmentClaim) -> SecondLook | None:
        """This party's second look at a segment, where the rule of the task asks for one."""
        due = self.market.registry.terms(task_id).looks and needs_second_look(own, self.thresholds(task_id))
        return self.second_looks(task_id).look(self.trace(task_id, own.segment)) if due else None

    def profile_evidence(self, task_id: bytes) -> ProfileEvidence:
        """This party's executions for disputes about the profile."""
        if task_id not in self._profile_evidence:
            task, reruns = self.task(task_id), self.market.registry.terms(task_id).rerun_count
            self._profile_evidence[task_id] = ProfileEvidence(task, reruns, self.attentive)
        return self._profile_evidence[task_id]

    def second_looks(self, task_id: bytes) -> SecondLookEvidence:
        """This party's own second looks at segments of a task."""
        if task_id not in self._second_looks:
            terms = self.market.registry.terms(task_id)
            self._second_looks[task_id] = SecondLookEvidence(self.task(task_id), terms, self.attentive)
        return self._second_looks[task_id]

    def _let_go(self, task_id: bytes) -> None:
        super()._let_go(task_id)
        if not self._is_in_dispute(task_id):  # a move needs what holds on to the task
            self._profile_evidence.pop(task_id, None)
            self._second_looks.pop(task_id, None)

    def _is_in_dispute(self, task_id: bytes) -> bool:
        """Whether a dispute of whoever holds the evidence may ask for it."""
        return False

    def forget(self, task_id: bytes) -> None:
        """As `TaskReader.forget`, with all executions."""
        super().forget(task_id)
        self._profile_evidence.pop(task_id, None)
        self._second_looks.pop(task_id, None)
        self._traces.forget(lambda key: key[0] == task_id)

    def disputed(self, task_id: bytes, number: int) -> tuple[SegmentClaim, ClaimCharge]:
        """The claim of a verdict that a dispute is about, and the charge against it.

        Raises:
            ProtocolError: the dispute is about no rerun of a second look of this task.
        """
        challenges, verdicts = self.market.challenges, self.market.verdicts
        seating, charge = challenges.dispute(number).subject, challenges.charge(number)
        if charge.kind in LOOK_CHARGES:
            posted = verdicts.looks(task_id, seating).get(charge.index)
            charge = self.second_looks(task_id).charged(charge, self.market.game.params(number), posted)
        return verdicts.claims(task_id, seating)[charge.index], charge

    def program(self, task_id: bytes, charge: ClaimCharge) -> StepProgram:
        """The program that a dispute about a charge executes."""
        if charge.kind is ClaimChargeKind.LOOK_RERUN:
            return self.second_looks(task_id).program(charge.rerun)
        return self.task(task_id).program

    def player(self, task_id: bytes, claim: SegmentClaim, charge: ClaimCharge) -> Player:
        """The player of this party's side: it compares openings with this party's own executions."""
        task, trace = self.task(task_id), self.trace(task_id, claim.segment)
        if charge.kind in EXECUTIONS:
            return ReplayPlayer(trace)
        if charge.kind in LOOK_CHARGES:
            return self.second_looks(task_id).player(trace, charge)
        entry = self.proof(task_id).checkpoints[claim.segment + (charge.kind is ClaimChargeKind.DISTANCE)]
        states = trace.hold(trace.first_step + trace.steps), load_checkpoint(self.store, task, entry)
        return SumPlayer(SumEvidence(task.program, Component(charge.component), *states))

    def charges(
        self, task_id: bytes, index: int, claim: SegmentClaim, own: SegmentClaim, posted: SecondLook | None
    ) -> list[ClaimCharge]:
        """The false parts of a claim by this party's own one, most basic first; ``posted`` is its second look."""
        executed = (
            (ClaimChargeKind.REPLAY, own.replay != claim.replay),
            (ClaimChargeKind.BEFORE, own.before != claim.before),
            # A receipt is of a step from the state that is claimed.
            (ClaimChargeKind.RECEIPT, own.before == claim.before and own.receipt != claim.receipt),
        )
        if any(is_false for _, is_false in executed):
            return [ClaimCharge(index, kind, 0) for kind, is_false in executed if is_false]
        rows = (
            (ClaimChargeKind.DISTANCE, own.distances, claim.distances),
            (ClaimChargeKind.REFERENCE, own.references, claim.references),
        )
        found = [
            ClaimCharge(index, kind, int(c))
            for kind, mine, theirs in rows
            for c in Component
            if mine[c - 1] != theirs[c - 1]
        ]
        if posted is None:
            return found
        wrong = compare_second_looks(self.second_looks(task_id).look(self.trace(task_id, claim.segment)), posted)
        return found + [ClaimCharge(index, ClaimChargeKind(kind), c or 0, rerun) for kind, rerun, c in wrong]

    def disputed_claim(
        self, task_id: bytes, claim: SegmentClaim, charge: ClaimCharge, look: SecondLook | None
    ) -> ReplayClaim | ReceiptClaim | SumClaim:
        """What a charge against a claim, or against its second look, disputes; the contract starts the same dispute."""
        if look is not None:
            return self.second_looks(task_id).disputed(claim, look.reruns[charge.rerun], charge)
        # The dispute's id isn't known yet, and no opening depends on it.
        document, identity = self.task(task_id).document, bytes(32)
        program = (document.program_hash, document.constants_root)
        if charge.kind is ClaimChargeKind.REPLAY:
            steps = (claim.segment * document.interval, document.interval)
            return ReplayClaim(identity, *program, *steps, claim.start, claim.replay)
        if charge.kind is ClaimChargeKind.BEFORE:
            steps = (claim.segment * document.interval, document.interval - 1)
            return ReplayClaim(identity, *program, *steps, claim.start, claim.before)
        if charge.kind is ClaimChargeKind.RECEIPT:
            last, seed = (claim.segment + 1) * document.interval - 1, self.receipt_seed(task_id, claim.segment)
            assert seed is not None, "only claims of exact tasks have receipts"
            return ReceiptClaim(identity, *program, last, claim.before, claim.receipt, seed)
        other, sums = (claim.end, claim.distances)
        if charge.kind is ClaimChargeKind.REFERENCE:
            other, sums = claim.start, claim.references
        total = sums[charge.component - 1]
        return SumClaim(identity, document.program_hash, charge.component, claim.replay, other, total)

    def opening_against(
        self, task_id: bytes, claim: SegmentClaim, charge: ClaimCharge, look: SecondLook | None, bits: int
    ) -> tuple[bytes, bytes]:
        """The header of the disputed program, and this party's own version of the charged part: its first move."""
        header = program_header(self.program(task_id, charge))
        disputed = self.disputed_claim(task_id, claim, charge, look)
        if isinstance(disputed, ReceiptClaim):
            return header, open_receipt(self.trace(task_id, claim.segment), disputed, bits)
        return header, self.player(task_id, claim, charge).open(disputed.first(header, bits))

    def evidence_in(self, task_id: bytes, number: int, matter: Matter) -> tuple[StepProgram, Player]:
        """The program that a dispute executes, and the player with this party's execution. Raises as `disputed`."""
        program = self.program_in(task_id, number, matter)
        if matter is Matter.PROFILE:
            return program, self.profile_evidence(task_id).player(self.market.profiles.charge(number))
        if matter is Matter.OBJECTION:
            return program, ReplayPlayer(self.trace(task_id, self.market.objections.segment(number)))
        return program, self.player(task_id, *self._claimed(task_id, number, matter))

    def program_in(self, task_id: bytes, number: int, matter: Matter) -> StepProgram:
        """The program that a dispute executes. Raises as `disputed`."""
        if matter is Matter.PROFILE:
            return self.profile_evidence(task_id).program(self.market.profiles.charge(number))
        if matter is Matter.OBJECTION:
            return self.task(task_id).program
        return self.program(task_id, self._claimed(task_id, number, matter)[1])

    def _claimed(self, task_id: bytes, number: int, matter: Matter) -> tuple[SegmentClaim, ClaimCharge]:
        """The claim that a dispute is about, of a verdict or of an objector, and the charge against it."""
        if matter is Matter.VERDICT:
            return self.disputed(task_id, number)
        desk = self.market.counterclaims
        return desk.said(desk.dispute(number).subject).claim, desk.charge(number)
