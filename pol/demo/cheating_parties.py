"""Parties that cheat, for the demo and the tests. Their cheating is drawn from a seed; nothing else is staged."""

from __future__ import annotations

from functools import cached_property
from random import Random

from pol.chain.deploy.deployment import Deployment
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.node.connection import Connection
from pol.demo.cheating_training import SkippingExecutor
from pol.demo.lying_players import Lie, LyingExecutor, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.executor import Executor
from pol.graph.node_names import ProgramNames
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import FalseClaim, Whistleblower
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_training import StepExecutor


class CheatingParty(Role):
    """A party that draws its cheating from a seeded generator."""

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


class SkippingSolver(CheatingParty, Solver):
    """Leaves out a tenth of the steps and claims all of them."""

    def executor(self, task: LoadedTask) -> StepExecutor:
        """Stock torch, except for a tenth of the steps."""
        steps = task.document.steps
        skipped = self._random.sample(range(steps), steps // 10)
        return SkippingExecutor(super().executor(task), skipped)


class LyingVerifier(CheatingParty, Verifier):
    """Flips one bit of one scalar in a backward pass of the first drawn segment, and defends the result."""

    @cached_property
    def lies(self) -> dict[int, Lie]:
        """Its lies by segment."""
        return {}

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        """Canonical, with a lie in the first segment asked for."""
        honest = super().executor(task_id, task, segment)
        if not self.lies:
            trace = super().execute(task_id, segment)
            self.lies[segment] = draw_lie(trace, backward_nodes(task.names), self._random)
        if segment not in self.lies:
            return honest
        return LyingExecutor(task.program, task.constants, honest, self.lies[segment])

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        honest = super().execute(task_id, segment)
        return LyingTrace(honest, self.lies[segment]) if segment in self.lies else honest


class BaselessWhistleblower(CheatingParty, Whistleblower):
    """Challenges any verdict, with an execution that is wrong in one bit of one scalar."""

    def check(self, task_id: bytes) -> list[FalseClaim]:
        """A baseless finding."""
        claims = self.market.verdicts.claims(task_id, self.market.registry.task(task_id).seating)
        index = self._random.randrange(len(claims))
        return [FalseClaim(ClaimCharge(index, ClaimChargeKind.REPLAY, 0), claims[index])]

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """An execution with a lie in it: without one there would be nothing to open."""
        honest = super().execute(task_id, segment)
        return LyingTrace(honest, draw_lie(honest, range(len(honest.program.nodes)), self._random))


def backward_nodes(names: ProgramNames) -> list[int]:
    """The nodes of the backward pass."""
    return [i for i, node in enumerate(names.nodes) if node.name.startswith("backward") or ".grad" in node.name]
