"""The verifier: profiles a task's threshold, replays drawn segments, posts distances and defends them."""

from __future__ import annotations

from collections.abc import Sequence

from pol.chain.game import StartParams
from pol.commitments.log import CheckpointLog
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Asserter, ReplayAsserter, SumAsserter
from pol.dispute.position import Kind
from pol.dispute.sums import SumEvidence
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.roles.duel import Duel
from pol.roles.role import Role
from pol.training.learning_proof import LearningProof, load_checkpoint
from pol.training.task import LoadedTask
from pol.verification.profile import Profile, profile
from pol.verification.replay import Executor
from pol.verification.verdict import Verdict, verify_segment

PROFILE_SEEDS = tuple(range(8))
PROFILE_SEGMENTS = (0, 2)


class Verifier(Role):
    """Replays what solvers claim, and answers for it."""

    def join(self, task_id: bytes) -> None:
        """Take the verifier's seat of a task and stake on it."""
        self.task(task_id)
        self.market.join_as_verifier(self.wallet, task_id)

    def profile(self, task_id: bytes, seeds: Sequence[int] = PROFILE_SEEDS) -> Profile:
        """Measure how far honest executions part, publish the profile and post the thresholds."""
        task = self.task(task_id)
        segments = [s for s in PROFILE_SEGMENTS if s < task.document.segments]
        result = profile(task, CpuExecutor, seeds, segments)
        self.store.put(result.encode())
        self.market.post_profile(self.wallet, task_id, result.thresholds, result.digest)
        return result

    def verify(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments and post the verdict.

        Raises:
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
            self.connection.wait_for_block(state.round + 1)
            self.market.draw(self.wallet, task_id)
        return [
            verify_segment(self.store, task, proof, self.executor(task, proof, segment), segment, state.thresholds)
            for segment in self.market.drawn_segments(task_id)
        ]

    def post(self, task_id: bytes, verdicts: Sequence[Verdict]) -> None:
        """Answer on chain for every drawn segment.

        Raises:
            OperationalError: a segment couldn't be looked at; nothing is posted, and it can be tried again.
        """
        claims = [verdict.claim for verdict in verdicts if verdict.claim is not None]
        if len(claims) < len(verdicts):
            failed = next(verdict for verdict in verdicts if verdict.claim is None)
            raise OperationalError(f"segment {failed.segment} can't be replayed: {failed.detail}")
        log = CheckpointLog([entry.state_root for entry in self.proof(task_id).checkpoints])
        paths = [(log.inclusion(claim.segment), log.inclusion(claim.segment + 1)) for claim in claims]
        self.market.post_verdict(self.wallet, task_id, claims, paths)

    def executor(self, task: LoadedTask, proof: LearningProof, segment: int) -> Executor:
        """What replays a segment: the canonical kernels."""
        return CpuExecutor(task.program, task.constants)

    def trace(self, task: LoadedTask, proof: LearningProof, segment: int) -> SegmentTrace:
        """This verifier's execution of a segment, for a dispute."""
        interval = task.document.interval
        start = load_checkpoint(self.store, task, proof.checkpoints[segment])
        executor = self.executor(task, proof, segment)
        return SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)

    def defend(self, task_id: bytes, dispute: int) -> Duel:
        """The defence of one of this verifier's claims, rebuilt from chain and store."""
        task = self.task(task_id)
        params, _ = self.game.params(dispute)
        return Duel(self.game, self.wallet, task.program, dispute, self._asserter(task_id, task, params))

    def _asserter(self, task_id: bytes, task: LoadedTask, params: StartParams) -> Asserter:
        proof = self.proof(task_id)
        if params.kind is Kind.REPLAY:
            return ReplayAsserter(self.trace(task, proof, params.first_step // task.document.interval))
        claims = self.market.claims(task_id, self.market.task(task_id).verdicts)
        claim = next(c for c in claims if c.replay == params.x and params.y in (c.start, c.end))
        other = claim.end if params.kind is Kind.DISTANCE else claim.start
        entry = next(c for c in proof.checkpoints[claim.segment :] if c.state_root == other)
        end = self.trace(task, proof, claim.segment).state((claim.segment + 1) * task.document.interval)
        return SumAsserter(SumEvidence(task.program, params.component, end, load_checkpoint(self.store, task, entry)))
