"""The base of verifier and whistleblower: replays of segments, evidence from them, and sides of disputes."""

from __future__ import annotations

from functools import cached_property

from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.claims.segment_claim import SegmentClaim
from pol.dispute.play.distance_evidence import SumEvidence
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumPlayer
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import Component, StepProgram
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.party.profile_evidence import ProfileEvidence
from pol.roles.party.role import Role
from pol.roles.party.second_look_evidence import LOOK_CHARGES, SecondLookEvidence
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_document import LoadedTask


class ReplayingParty(Role):
    """A party that replays segments. Each execution is made once, however many disputes it serves."""

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    @cached_property
    def _profile_evidence(self) -> dict[bytes, ProfileEvidence]:
        return {}

    @cached_property
    def _second_looks(self) -> dict[bytes, SecondLookEvidence]:
        return {}

    def replayer(self, task: LoadedTask, opinion: int) -> ExecutorFactory:
        """The executor of replays: the CPU kernels, whichever opinion is asked for."""
        return CpuExecutor

    def trace(self, task_id: bytes, segment: int) -> SegmentTrace:
        """This party's execution of a segment, made once.

        Raises:
            ProtocolError: the evidence in the store is bad.
            OperationalError: the node or the store failed.
        """
        if (task_id, segment) not in self._traces:
            self._traces[task_id, segment] = self.execute(task_id, segment)
        return self._traces[task_id, segment]

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """A new execution of a segment, from the solver's checkpoint on. Raises as `trace`."""
        task, proof = self.task(task_id), self.proof(task_id)
        interval, start = task.document.interval, load_checkpoint(self.store, task, proof.checkpoints[segment])
        executor = self.replayer(task, 0)(task.program, task.constants)
        return SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)

    def profile_evidence(self, task_id: bytes) -> ProfileEvidence:
        """This party's executions for disputes about the profile."""
        if task_id not in self._profile_evidence:
            task, reruns = self.task(task_id), self.market.registry.terms(task_id).rerun_count
            self._profile_evidence[task_id] = ProfileEvidence(task, reruns)
        return self._profile_evidence[task_id]

    def second_looks(self, task_id: bytes) -> SecondLookEvidence:
        """This party's own second looks at segments of a task."""
        if task_id not in self._second_looks:
            terms = self.market.registry.terms(task_id)
            self._second_looks[task_id] = SecondLookEvidence(self.task(task_id), terms)
        return self._second_looks[task_id]

    def forget(self, task_id: bytes) -> None:
        """As `Role.forget`, with all executions."""
        super().forget(task_id)
        self._profile_evidence.pop(task_id, None)
        self._second_looks.pop(task_id, None)
        for key in [key for key in self._traces if key[0] == task_id]:
            del self._traces[key]

    def disputed(self, task_id: bytes, number: int) -> tuple[SegmentClaim, ClaimCharge]:
        """The claim of a verdict that a dispute is about, and the charge against it.

        Raises:
            ProtocolError: the dispute is about no rerun of a second look of this task.
            OperationalError: the node or the store failed.
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
        if charge.kind is ClaimChargeKind.REPLAY:
            return ReplayPlayer(trace)
        if charge.kind in LOOK_CHARGES:
            return self.second_looks(task_id).player(trace, charge)
        entry = self.proof(task_id).checkpoints[claim.segment + (charge.kind is ClaimChargeKind.DISTANCE)]
        states = trace.state(trace.first_step + trace.steps), load_checkpoint(self.store, task, entry)
        return SumPlayer(SumEvidence(task.program, Component(charge.component), *states))

    def session(self, task_id: bytes, number: int) -> DisputeSession:
        """This party's side of a dispute about a verdict, rebuilt from chain and store. Raises as `disputed`."""
        claim, charge = self.disputed(task_id, number)
        program, player = self.program(task_id, charge), self.player(task_id, claim, charge)
        return DisputeSession(self.market.game, self.wallet, program, number, player, self.market.challenges)

    def profile_session(self, task_id: bytes, number: int) -> DisputeSession:
        """This party's side of a dispute about a profile. Raises as `disputed`."""
        evidence, charge = self.profile_evidence(task_id), self.market.profiles.charge(number)
        program, player = evidence.program(charge), evidence.player(charge)
        return DisputeSession(self.market.profile_game, self.wallet, program, number, player, self.market.profiles)

    def sessions(self, task_id: bytes) -> list[DisputeSession]:
        """This party's sides of all open disputes about the profile and the verdict. Raises as `disputed`.

        Ask again after every round of moves.
        """
        market, own = self.market, self.wallet.address

        def plays(number: int, about_profile: bool) -> bool:
            params = (market.profile_game if about_profile else market.game).params(number)
            return own in {params.asserter, params.challenger}

        profiles = [n for n in market.profiles.disputes(task_id) if plays(n, about_profile=True)]
        verdicts = [n for n in market.challenges.disputes(task_id) if plays(n, about_profile=False)]
        return [self.profile_session(task_id, n) for n in profiles] + [self.session(task_id, n) for n in verdicts]
