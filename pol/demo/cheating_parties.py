"""Parties that cheat, for the demo and the tests. Their cheating is drawn from a seed; nothing else is staged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from random import Random

from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.node.connection import Connection
from pol.demo.lying_players import JumpingTrace, Lie, LyingExecutor, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Executor
from pol.graph.node_names import ProgramNames
from pol.graph.tensor_type import DType
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.role import Role
from pol.roles.party.trace_publications import TracePublications
from pol.roles.solver.solver import OnCheckpoint, Solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import FalseClaim, Whistleblower
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import StepExecutor, environment
from pol.verification.replay.canonical_replay import replay_end


class SkippingExecutor:
    """Claims to train every step and skips some, whose state stays unchanged.

    The last honest loss is reported in their place.
    """

    def __init__(self, executor: StepExecutor, skipped: Collection[int]):
        self._executor = executor
        self._skipped = frozenset(skipped)
        self._observed: Mapping[str, Tensor] = {}

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        """Train the step, or pretend to."""
        if step in self._skipped:
            return state, self._observed
        state, self._observed = self._executor.run(state, constants, step)
        return state, self._observed


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

    @cached_property
    def published_traces(self) -> TracePublications:
        """Nobody's: whoever will lose is in no hurry."""
        return TracePublications(Store("memory://nothing-is-published-here"))


class SkippingSolver(CheatingParty, Solver):
    """Leaves out a tenth of the steps and claims all of them."""

    def executor(self, task: LoadedTask) -> StepExecutor:
        """Stock torch, except for a tenth of the steps."""
        steps = task.document.steps
        skipped = self._random.sample(range(steps), steps // 10)
        return SkippingExecutor(super().executor(task), skipped)


class JumpingSolver(CheatingParty, Solver):
    """Trains canonically, but for one segment: there all weights become zero, and what follows costs nearly nothing.

    Every other segment is true, so that a verdict rejects only if it draws the one that isn't. The solver defends it by
    an execution that computes honestly, and puts out the zeros in the end.
    """

    @cached_property
    def jump(self) -> int:
        """The segment; not the last, or nobody would believe the model."""
        return self._random.randrange(4, 9)

    def train(
        self, task_id: bytes, on_checkpoint: OnCheckpoint | None = None, progress_every: int = 4
    ) -> LearningProof:
        """Record the canonical segments, and zeros after the jump."""
        task = self.task(task_id)
        recorder, state = TaskRecorder(self.store, task), task.initial_state
        recorder(0, state)
        for segment in range(task.document.segments):
            state = self._end(task, state, segment)
            recorder(segment + 1, state)
            if on_checkpoint is not None:
                on_checkpoint(segment + 1, task.document.segments)
        return self.commit(task_id, recorder.publish(environment(exact=True))[0])

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the jump belongs to."""
        honest = super().execute(task_id, segment)
        if segment != self.jump:
            return honest
        end = load_checkpoint(self.store, self.task(task_id), self.proof(task_id).checkpoints[segment + 1])
        return JumpingTrace(honest, end)

    def _end(self, task: LoadedTask, start: list[Words], segment: int) -> list[Words]:
        executor, interval = CpuExecutor(task.program, task.constants), task.document.interval
        end = [words.copy() for words in replay_end(task.program, executor, start, segment * interval, interval)]
        if segment == self.jump:
            for slot, words in zip(task.program.slots, end, strict=True):
                if slot.type.dtype is DType.F32:
                    words[...] = 0
        return end


class LyingVerifier(CheatingParty, Verifier):
    """Flips one bit of one scalar in a backward pass of the first drawn segment, and defends the result."""

    @cached_property
    def lies(self) -> dict[tuple[bytes, int], Lie]:
        """Its lies by task and segment."""
        return {}

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        """Canonical, with a lie in the first segment asked for."""
        honest = super().executor(task_id, task, segment)
        if all(about != task_id for about, _ in self.lies):
            trace = super().execute(task_id, segment)
            self.lies[task_id, segment] = draw_lie(trace, backward_nodes(task.names), self._random)
        if (task_id, segment) not in self.lies:
            return honest
        return LyingExecutor(task.program, task.constants, honest, self.lies[task_id, segment])

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        honest = super().execute(task_id, segment)
        lie = self.lies.get((task_id, segment))
        return honest if lie is None else LyingTrace(honest, lie)


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
