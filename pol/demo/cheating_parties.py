"""Parties that cheat, for the demo and the tests.

What they do is drawn from a seed; nothing else about them is staged.
"""

from __future__ import annotations

from functools import cached_property
from random import Random

from pol.chain.deploy.deployment import Deployment
from pol.chain.desks.challenges import ClaimChargeKind
from pol.chain.node.connection import Connection
from pol.demo.cheating_training import SkippingExecutor
from pol.demo.lying_players import Lie, LyingExecutor, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Executor
from pol.graph.node_names import ProgramNames
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import Finding, Whistleblower
from pol.training.task.learning_proof import LearningProof, load_checkpoint
from pol.training.task.task import LoadedTask
from pol.training.task.task_training import StepExecutor


class Schemer(Role):
    """A party that draws what it does from a source of randomness."""

    def __init__(
        self,
        connection: Connection,
        deployment: Deployment,
        key: bytes,
        store_url: str,
        random: Random,
        policy: Policy = PUBLIC_CHAIN,
    ) -> None:
        super().__init__(connection, deployment, key, store_url, policy)
        self._random = random


class SkippingSolver(Schemer, Solver):
    """Leaves out a tenth of the steps and claims all of them."""

    def executor(self, task: LoadedTask) -> StepExecutor:
        """Stock torch, except for a tenth of the steps."""
        steps = task.document.steps
        skipped = self._random.sample(range(steps), steps // 10)
        return SkippingExecutor(super().executor(task), skipped)


class LyingVerifier(Schemer, Verifier):
    """Flips one bit of one scalar in a backward pass of the first drawn segment, and defends the result."""

    @cached_property
    def lies(self) -> dict[int, Lie]:
        """What it lies about, by segment."""
        return {}

    def executor(self, task: LoadedTask, proof: LearningProof, segment: int) -> Executor:
        """Canonical, with a lie in the first segment asked for."""
        honest = super().executor(task, proof, segment)
        if not self.lies:
            self.lies[segment] = draw_lie(self._honest(task, proof, segment), backward_nodes(task.names), self._random)
        if segment not in self.lies:
            return honest
        return LyingExecutor(task.program, task.constants, honest, self.lies[segment])

    def trace(self, task: LoadedTask, proof: LearningProof, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        honest = self._honest(task, proof, segment)
        return LyingTrace(honest, self.lies[segment]) if segment in self.lies else honest

    def _honest(self, task: LoadedTask, proof: LearningProof, segment: int) -> SegmentTrace:
        interval = task.document.interval
        start = load_checkpoint(self.store, task, proof.checkpoints[segment])
        executor = CpuExecutor(task.program, task.constants)
        return SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)


class BaselessWhistleblower(Schemer, Whistleblower):
    """Challenges whatever it sees, right or wrong, with an execution that is wrong in one bit of one scalar."""

    def check(self, task_id: bytes) -> list[Finding]:
        """A finding without any ground."""
        claims = self.market.verdicts.claims(task_id, self.market.registry.task(task_id).seating)
        index = self._random.randrange(len(claims))
        return [Finding(index, claims[index], ClaimChargeKind.REPLAY, 0)]

    def trace(self, task_id: bytes, segment: int) -> SegmentTrace:
        """An execution with a lie in it: without one there would be nothing to open."""
        if (task_id, segment) not in self._lying:
            honest = super().trace(task_id, segment)
            lie = draw_lie(honest, range(len(honest.program.nodes)), self._random)
            self._lying[task_id, segment] = LyingTrace(honest, lie)
        return self._lying[task_id, segment]

    @cached_property
    def _lying(self) -> dict[tuple[bytes, int], LyingTrace]:
        return {}


def backward_nodes(names: ProgramNames) -> list[int]:
    """The nodes of the backward pass."""
    return [i for i, node in enumerate(names.nodes) if node.name.startswith("backward") or ".grad" in node.name]
