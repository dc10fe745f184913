"""What work takes this machine: its speeds, and its pace in each task, each measured once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.commitments.tensor import tensor_tree
from pol.dispute.dispute_needs import DisputeNeeds, Speeds
from pol.execution.cpu import CpuElement, on_all_cores
from pol.execution.executor import ExecutorFactory
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType
from pol.training.task.task_document import LoadedTask

HASHED = 1 << 22
"""Words that are hashed to measure the speed."""
FOLDED = 1 << 20
"""Terms that are followed."""
FASTEST, FASTEST_DEVICE = 10**11, 10**15
"""Work units per second that no processor thread exceeds, and no GPU."""
LONG = 1.0
"""Seconds from which work is timed only once: start-up costs don't matter any more."""


@dataclass(frozen=True)
class MachineSpeeds:
    """Speeds that don't depend on a task."""

    hashing: float
    """Bytes of tensors a second."""
    folding: float
    """Instructions of one element a second."""

    @classmethod
    def measured(cls, timer: Callable[[], float]) -> MachineSpeeds:
        """Measure by ``timer``, a clock in seconds; a tenth of a second of work."""
        words = np.arange(HASHED, dtype=np.uint32)
        vector = TensorType(DType.F32, (FOLDED,))
        builder = Builder(2)
        # Slower than one instruction, twice: an accumulator that goes through several has no kernel of its own.
        product = builder.emit(Op.FMUL, builder.input(0), builder.input(1))
        body = builder.build(builder.emit(Op.FADD, product, builder.input(0)))
        operand = Operand(Source.CONSTANT, 0, vector, Affine(0, (0, 1)))
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.ACCUMULATOR))
        element = CpuElement(Node(TensorType(DType.F32, ()), (operand,), inputs, body, fold=(FOLDED,)), 0)
        sources = Sources([], [words[:FOLDED]], [])
        hashing = time_work(lambda: tensor_tree(words), timer)
        folding = time_work(lambda: element.accumulators(0, sources, [FOLDED]), timer)
        return cls(words.nbytes / hashing, len(body.instructions) * FOLDED / folding)


def time_work(work: Callable[[], object], timer: Callable[[], float]) -> float:
    """The seconds that work takes. What is short is done twice, as the first time includes start-up costs."""
    least = float("inf")
    for _ in range(2):
        began = timer()
        work()
        least = min(least, timer() - began)
        if least >= LONG:
            break
    return least


class WorkTimes:
    """Seconds of work by task; nothing is measured before somebody asks.

    Args:
        executors: what executes steps.
        timer: a clock in seconds.
    """

    def __init__(
        self, executors: ExecutorFactory = on_all_cores, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self.executors, self.timer = executors, timer
        self.paces: dict[bytes, float] = {}
        """Seconds of a canonical step."""
        self.machine: MachineSpeeds | None = None
        self.sides: dict[tuple[bytes, int], float] = {}
        """Of all moves of one side, by task and by the steps before the first one (`pol.roles.process.defence`)."""
        self._needs: dict[tuple[bytes, int], DisputeNeeds] = {}

    @property
    def fastest(self) -> int:
        """Work units per second that no machine of this kind exceeds."""
        return FASTEST if self.executors is on_all_cores else FASTEST_DEVICE

    def pace(self, task_id: bytes, task: LoadedTask) -> float:
        """Seconds of a step as a dispute executes it: a replay that looks at no node takes less."""
        if task_id not in self.paces:
            executor, first = self.executors(task.program, task.constants), task.initial_state
            self.paces[task_id] = time_work(lambda: executor.watch(first, 0, lambda number, output: None), self.timer)
        return self.paces[task_id]

    def speeds(self, pace: float) -> Speeds:
        """The speeds of this machine, which takes ``pace`` seconds for a step."""
        if self.machine is None:
            self.machine = MachineSpeeds.measured(self.timer)
        return Speeds(pace, self.machine.hashing, self.machine.folding)

    def needs(self, task_id: bytes, task: LoadedTask, bits: int) -> DisputeNeeds:
        """The needs of a dispute about a segment of a task whose moves open ``bits`` levels."""
        if (task_id, bits) not in self._needs:
            self._needs[task_id, bits] = DisputeNeeds(task.program, task.document.interval, bits)
        return self._needs[task_id, bits]

    def let_go(self, task_id: bytes) -> None:
        """Let go of what is as large as the task."""
        self._needs = {key: needs for key, needs in self._needs.items() if key[0] != task_id}
