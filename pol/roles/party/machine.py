"""This machine: its speed of hashing and of following a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.commitments.tensor import tensor_tree
from pol.execution.cpu import CpuElement
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

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
