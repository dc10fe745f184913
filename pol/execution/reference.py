"""The reference executor: docs/spec/program.md to the letter, in NumPy. Kernels are tested against it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import Words
from pol.execution.executor import Seen
from pol.execution.operand_sources import (
    Indices,
    Sources,
    check_observed,
    check_step,
    check_tensors,
    read_operands,
    registers,
)
from pol.graph.node import Node
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import unravel


class ReferenceExecutor:
    """Executes one step at a time; vectorized over the elements of an output, sequential over the terms of a fold.

    Raises ProtocolError if the program is invalid or the constants are not of its types.
    """

    def __init__(self, program: StepProgram, constants: Sequence[Words], observed: Sequence[int] = ()) -> None:
        program.validate()
        check_tensors("constant", program.constants, constants)
        check_observed(program, observed)
        self._program = program
        self._observed = list(observed)
        self._constants = list(constants)

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """Outputs of all nodes at this step; ProtocolError if the state is not of the program's types."""
        check_tensors("state slot", [slot.type for slot in self._program.slots], state)
        outputs: list[Words] = []
        sources = Sources(state, self._constants, outputs)
        for node in self._program.nodes:
            outputs.append(evaluate_node(node, step, sources))
        return outputs

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The next state and the observed nodes' outputs; ProtocolError if the state is not of the program's types."""
        outputs = self.run(state, step)
        return next_state(self._program, outputs), [outputs[node] for node in self._observed]

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The next state; ``seen(node, output)`` gets the output of each node."""
        outputs = self.run(state, step)
        for number, output in enumerate(outputs):
            seen(number, output)
        return next_state(self._program, outputs)

    def observing(self, nodes: Sequence[int]) -> ReferenceExecutor:
        """An executor that observes these nodes."""
        return ReferenceExecutor(self._program, self._constants, nodes)


def next_state(program: StepProgram, outputs: Sequence[Words]) -> list[Words]:
    """The state after a step, from the outputs of all its nodes."""
    return [outputs[slot.producer] for slot in program.slots]


def evaluate_node(node: Node, step: int, sources: Sources) -> Words:
    """The node's whole output, of the node's shape."""
    check_step(step)
    shape = node.type.shape
    mesh: list[Indices] = list(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True))
    accumulator: Words = np.full(shape, node.init, np.uint32)
    for term in range(node.terms):
        fold = [np.asarray(k, np.int64) for k in unravel(term, node.fold)]
        coordinates = [np.asarray(step, np.int64), *mesh, *fold]
        readings = read_operands(node, coordinates, sources)
        result = run(node.body, registers(node, coordinates, readings, accumulator))
        accumulator = np.array(np.broadcast_to(result, shape), order="C")  # ascontiguousarray would make rank 0 rank 1
    return accumulator
