"""Adversaries: one that lies in one bit of one scalar, one that lies about a sum, one that plays at random.

The demo and the tests play them against the honest players; nothing honest imports this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from pol.arithmetic.primitives import Words, apply
from pol.commitments.array import LEAF_SIZE
from pol.commitments.program_hash import ProgramCommitment
from pol.dispute.moves import Answer, Describe, IllegalMove, Move, OpenBody, Unfold
from pol.dispute.play.distance_evidence import SumEvidence
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import NothingToDispute
from pol.dispute.position import TREES, Level, Position
from pol.dispute.rules import answered, described, opened_body, unfolded
from pol.execution.cpu import CpuNode
from pol.execution.element import accumulators, body_values
from pol.execution.executor import Executor
from pol.execution.operand_reads import read_operands, registers
from pol.execution.operand_sources import Sources
from pol.execution.reference import next_state
from pol.graph.node import Node
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import LEAF_WORDS, unravel


@dataclass(frozen=True)
class Lie:
    """One flipped bit: in the result of an instruction, at a term of the fold of an element of a node at a step."""

    step: int
    node: int
    element: int
    term: int
    instruction: int
    bit: int


class LyingExecutor:
    """Executes a program, wrong in one place; everything that follows from the wrong scalar is computed honestly."""

    def __init__(
        self, program: StepProgram, constants: Sequence[Words], executor: Executor, lie: Lie, threads: int = 1
    ) -> None:
        self.lie = lie
        self._program = program
        self._constants = list(constants)
        self._executor = executor
        self._threads = threads

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """The outputs of all nodes at ``step``."""
        if step != self.lie.step:
            return self._executor.run(state, step)
        outputs: list[Words] = []
        sources = Sources(state, self._constants, outputs)
        for number, node in enumerate(self._program.nodes):
            outputs.append(CpuNode(node, self._threads).run(step, sources))
            if number == self.lie.node:
                outputs[-1].reshape(-1)[self.lie.element] = lied_accumulators(node, self.lie, sources)[-1]
        return outputs

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The state after ``step``; nothing is observed."""
        return next_state(self._program, self.run(state, step)), []


class LyingTrace(SegmentTrace):
    """An execution that is wrong in one place and consistent with itself everywhere else."""

    def __init__(self, honest: SegmentTrace, lie: Lie, threads: int = 1) -> None:
        executor = LyingExecutor(honest.program, honest.constants, honest.executor, lie, threads)
        start = honest.state(honest.first_step)
        super().__init__(honest.program, honest.constants, executor, start, honest.first_step, honest.steps)
        self.lie = lie

    def accumulators(self, step: int, node: int, element: int) -> Words:
        """As claimed: honest before the lie, and what follows from the lie after it."""
        if (step, node, element) != (self.lie.step, self.lie.node, self.lie.element):
            return super().accumulators(step, node, element)
        return lied_accumulators(self.program.nodes[node], self.lie, self.sources(step))

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        """As claimed: with the flipped bit where the lie is."""
        here = (self.lie.step, self.lie.node, self.lie.element, self.lie.term)
        if (step, node, element, term) != here:
            return super().body(step, node, element, term, accumulator)
        return lied_body(self.program.nodes[node], self.lie, accumulator, self.sources(step))


def lied_accumulators(node: Node, lie: Lie, sources: Sources) -> Words:
    """The accumulators of the element that the lie is in."""
    values = [int(word) for word in accumulators(node, lie.step, lie.element, sources)[: lie.term + 1]]
    values.append(lied_body(node, lie, values[-1], sources)[-1])
    for term in range(lie.term + 1, node.terms):
        values.append(body_values(node, lie.step, lie.element, term, values[-1], sources)[-1])
    return np.array(values, np.uint32)


def lied_body(node: Node, lie: Lie, accumulator: int, sources: Sources) -> list[int]:
    """The results of all instructions at the term that the lie is in."""
    place = (lie.step, *unravel(lie.element, node.type.shape), *unravel(lie.term, node.fold))
    coordinates = [np.asarray(c, np.int64) for c in place]
    readings = read_operands(node, coordinates, sources)
    file = list(registers(node, coordinates, readings, np.asarray(accumulator, np.uint32)))
    file += [np.asarray(c, np.uint32) for c in node.body.constants]
    first = len(file)
    for index, instruction in enumerate(node.body.instructions):
        result = apply(instruction.op, *(file[r] for r in instruction.operands))
        file.append(result ^ np.uint32(1 << lie.bit) if index == lie.instruction else result)
    return [int(v) for v in file[first:]]


def draw_lie(trace: SegmentTrace, nodes: Sequence[int], random: Random) -> Lie:
    """A lie in one of ``nodes`` that changes the state at the end of the segment (most low bits are rounded away)."""
    honest = trace.state_root(trace.first_step + trace.steps)
    while True:
        index = random.choice(list(nodes))
        node = trace.program.nodes[index]
        lie = Lie(
            step=trace.first_step + random.randrange(trace.steps),
            node=index,
            element=random.randrange(node.type.numel),
            term=random.randrange(node.terms),
            instruction=random.randrange(len(node.body.instructions)),
            bit=random.randrange(23),
        )
        if LyingTrace(trace, lie).state_root(trace.first_step + trace.steps) != honest:
            return lie


class LyingSums(SumEvidence):
    """A distance that is wrong in one leaf."""

    def __init__(self, honest: SumEvidence, slot: int, leaf: int, excess: int) -> None:
        super().__init__(honest.program, honest.component, *honest.states)
        self._lie = (slot, leaf, excess)

    def leaf_sums(self, slot: int) -> list[int]:
        """As claimed."""
        sums = super().leaf_sums(slot)
        if slot == self._lie[0]:
            sums[self._lie[1]] += self._lie[2]
        return sums


@dataclass(frozen=True)
class RandomPlayer:
    """Picks any part and opens any bytes: knows nothing but the rules."""

    random: Random
    program: StepProgram

    def open(self, position: Position) -> bytes:
        """Bytes of the right length; zeros where a leaf must have them."""
        payload = self.random.randbytes(position.expected_bytes)
        if position.level is not Level.LEAF:
            return payload
        words = min(LEAF_WORDS, position.count - LEAF_WORDS * position.lo)
        return payload[: 4 * words].ljust(LEAF_SIZE, b"\0")

    def move(self, position: Position) -> Move:
        """Any move but a proof.

        Raises:
            NothingToDispute: only a proof is left.
        """
        p, commitment = position, ProgramCommitment.of(self.program)
        index = self.random.randrange(len(p.items))
        if p.level is Level.LEAF:
            index %= min(LEAF_WORDS, p.count - LEAF_WORDS * p.lo)
        leaves = p.level in TREES and p.opened_height == p.height
        if p.level is Level.NODES and leaves:
            number = p.lo + index
            descriptor, branch = self.program.nodes[number].encode(), tuple(commitment.node_branch(number))
            return Describe(index, commitment.header, branch, descriptor, self.open(described(p, index, descriptor)))
        try:
            if p.level is Level.LEAF:
                return Unfold(index, self.open(unfolded(p, index)))
            if p.level is Level.TERMS and p.boundaries[index + 1] - p.boundaries[index] == 1:
                return OpenBody(index, self.open(opened_body(p, index)))
            return Answer(index, self.open(answered(p, index)))
        except IllegalMove as error:
            raise NothingToDispute("only a proof is left") from error
