"""The verifier: profiles a task's threshold, replays drawn segments, posts distances and defends them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pol.chain.game import StartParams
from pol.commitments.log import CheckpointLog
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Player, ReplayPlayer, SumPlayer
from pol.dispute.position import Kind
from pol.dispute.sums import SumEvidence
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.roles.duel import Duel
from pol.roles.measurement import Measurement
from pol.roles.role import Role
from pol.training.learning_proof import Checkpoint, LearningProof, load_checkpoint
from pol.training.task import LoadedTask
from pol.verification.distance import INFINITE
from pol.verification.profile import Profile
from pol.verification.profiling import profile
from pol.verification.replay import Executor
from pol.verification.verdict import Claim, Outcome, Verdict, verify_segment

NO_REPLAY = b"\xff" * 32
"""Stands for a replay that can't be made: the contract takes any root but zero."""


class Verifier(Role):
    """Replays what solvers claim, and answers for it."""

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    @cached_property
    def _measurements(self) -> dict[bytes, Measurement]:
        return {}

    def join(self, task_id: bytes) -> None:
        """Take the verifier's seat of a task and stake on it.

        Raises:
            ProtocolError: the task isn't what it says, or its terms break this party's policy.
        """
        self.task(task_id)
        terms = self.market.terms(task_id)
        self.policy.require(terms)
        self.policy.require_game(self.game, terms.clock)
        self.market.join_as_verifier(self.wallet, task_id)

    def profile(self, task_id: bytes) -> Profile:
        """Measure how far honest executions part, publish the profile and post what it claims.

        Anybody may challenge it until its window is over (`profile_defences`), and nobody accepts the task before.

        Raises:
            ProtocolError: the training is exact, so there is nothing to measure.
            UnsupportedError: no threshold can tell honest work from cheating here; leave the seat.
        """
        if self.market.terms(task_id).is_exact:
            raise ProtocolError("the training of this task is exact: it needs no profile, solvers accept it at once")
        result = self.measure(task_id)
        self.store.put(result.encode())
        self.profiles.post(self.wallet, task_id, result.claim, result.digest)
        return result

    def measure(self, task_id: bytes) -> Profile:
        """What the terms ask a profile to measure."""
        terms = self.market.terms(task_id)
        return profile(self.task(task_id), CpuExecutor, terms.profiled, terms.rerun_count, terms.margin)

    def profile_defences(self, task_id: bytes) -> list[Duel]:
        """The defences in all disputes that the posted profile waits for; ask again after every round of moves."""
        measured, duels = self.measurement(task_id), []
        for number in self.profiles.disputes(task_id):
            charge = self.profiles.charge(number)
            duel = (self.profile_game, self.wallet, measured.program(charge), number, measured.player(charge))
            duels.append(Duel(*duel))
        return duels

    def measurement(self, task_id: bytes) -> Measurement:
        """This verifier's executions behind its profile: however many challenge it, each is made once."""
        if task_id not in self._measurements:
            task, reruns = self.task(task_id), self.market.terms(task_id).rerun_count
            self._measurements[task_id] = Measurement(task, reruns)
        return self._measurements[task_id]

    def verify(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments and post the verdict.

        Raises:
            ProtocolError: the evidence for a segment is bad, and nothing that could be defended can be said about it.
            OperationalError: a segment couldn't be looked at; nothing is posted, and it can be tried again.
        """
        verdicts = self.replay(task_id)
        self.post(task_id, verdicts)
        return verdicts

    def replay(self, task_id: bytes) -> list[Verdict]:
        """Let the beacon draw if it hasn't, and replay the drawn segments."""
        task, proof = self.task(task_id), self.proof(task_id)
        state = self.market.task(task_id)
        if not any(state.seed):
            self.beacon.bring(self.wallet, state.round, self.rounds)
            self.market.draw(self.wallet, task_id)
        return [
            verify_segment(self.store, task, proof, self.executor(task, proof, segment), segment, state.thresholds)
            for segment in self.market.drawn_segments(task_id)
        ]

    def post(self, task_id: bytes, verdicts: Sequence[Verdict]) -> None:
        """Answer on chain for every drawn segment.

        Raises:
            ProtocolError: the evidence for a segment is bad, and nothing that could be defended can be said about it.
            OperationalError: a segment couldn't be looked at; nothing is posted, and it can be tried again.
        """
        checkpoints = self.proof(task_id).checkpoints
        log = CheckpointLog([entry.state_root for entry in checkpoints])
        claims = [self._claim(task_id, verdict, checkpoints) for verdict in verdicts]
        paths = [(log.inclusion(claim.segment), log.inclusion(claim.segment + 1)) for claim in claims]
        self.market.post_verdict(self.wallet, task_id, claims, paths)

    def _claim(self, task_id: bytes, verdict: Verdict, checkpoints: Sequence[Checkpoint]) -> Claim:
        if verdict.claim is not None:
            return verdict.claim
        start, end = (checkpoints[verdict.segment + i].state_root for i in range(2))
        if not any(start) or not any(end):
            return reject_zero_state(verdict.segment, start, end)
        if verdict.outcome is not Outcome.REJECTED:
            raise OperationalError(f"segment {verdict.segment} can't be replayed: {verdict.detail}")
        raise ProtocolError(
            f"segment {verdict.segment} has bad evidence: {verdict.detail}. The contract has no availability challenge "
            "yet, so no claim about this segment can be defended, and nobody can leave the seat after the draw. Post "
            "nothing; unless the solver publishes what it committed to, the stake is lost by default after second "
            f"{self.market.task(task_id).deadline}"
        )

    def executor(self, task: LoadedTask, proof: LearningProof, segment: int) -> Executor:
        """What replays a segment: the canonical kernels."""
        return CpuExecutor(task.program, task.constants)

    def trace(self, task: LoadedTask, proof: LearningProof, segment: int) -> SegmentTrace:
        """This verifier's execution of a segment, for a dispute."""
        interval = task.document.interval
        start = load_checkpoint(self.store, task, proof.checkpoints[segment])
        executor = self.executor(task, proof, segment)
        return SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)

    def defences(self, task_id: bytes) -> list[Duel]:
        """The defences in all disputes that the current verdict waits for; ask again after every round of moves."""
        return [self.defend(task_id, number) for number in self.market.disputes(task_id)]

    def defend(self, task_id: bytes, dispute: int | None = None) -> Duel:
        """The defence of one of this verifier's claims, rebuilt from chain and store.

        ``dispute`` is the oldest that the verdict waits for, if it isn't given.

        Raises:
            OperationalError: nobody disputes the task now.
        """
        if dispute is None:
            disputes = self.market.disputes(task_id)
            if not disputes:
                raise OperationalError("nobody disputes this task now; there is nothing to defend")
            dispute = disputes[0]
        task = self.task(task_id)
        player = self._player(task_id, task, self.game.params(dispute))
        return Duel(self.game, self.wallet, task.program, dispute, player)

    def _player(self, task_id: bytes, task: LoadedTask, params: StartParams) -> Player:
        proof = self.proof(task_id)
        if params.kind is Kind.REPLAY:
            return ReplayPlayer(self._executed(task_id, params.first_step // task.document.interval))
        claims = self.market.claims(task_id, self.market.task(task_id).verdicts)
        claim = next(c for c in claims if c.replay == params.x and params.y in (c.start, c.end))
        other = claim.end if params.kind is Kind.DISTANCE else claim.start
        entry = next(c for c in proof.checkpoints[claim.segment :] if c.state_root == other)
        end = self._executed(task_id, claim.segment).state((claim.segment + 1) * task.document.interval)
        return SumPlayer(SumEvidence(task.program, params.component, end, load_checkpoint(self.store, task, entry)))

    def _executed(self, task_id: bytes, segment: int) -> SegmentTrace:
        """However many challenge a segment, it is executed once."""
        if (task_id, segment) not in self._traces:
            self._traces[task_id, segment] = self.trace(self.task(task_id), self.proof(task_id), segment)
        return self._traces[task_id, segment]


def reject_zero_state(segment: int, start: bytes, end: bytes) -> Claim:
    """The claim about a segment that begins or ends in a zero root: that is no state, so nothing else can be said.

    The contract rejects the segment whatever the claim says, and lets nobody challenge it.
    """
    worst = (INFINITE, INFINITE, INFINITE)
    return Claim(segment, start, end, replay=NO_REPLAY, distances=worst, references=worst)
