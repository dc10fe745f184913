"""An adversary that flips one bit of one scalar and computes everything else honestly.

The demo and the tests play it against the honest players; nothing honest imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from pol.arithmetic.primitives import Words, apply
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuElement, CpuNode
from pol.execution.executor import Executor, Seen
from pol.execution.operand_sources import Sources, read_operands, registers
from pol.execution.reference import next_state
from pol.graph.node import Node, Source
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import unravel


@dataclass(frozen=True)
class Lie:
    """One flipped bit, in the result of one instruction of one term of one element."""

    step: int
    node: int
    element: int
    term: int
    instruction: int
    bit: int


class LyingExecutor:
    """Executes a program with one wrong scalar; everything after it is computed honestly."""

    def __init__(
        self,
        program: StepProgram,
        constants: Sequence[Words],
        executor: Executor,
        lie: Lie,
        threads: int = 1,
        observed: Sequence[int] = (),
    ) -> None:
        self.lie = lie
        self._observed = list(observed)
        self._program = program
        self._constants = list(constants)
        self._executor = executor
        self._threads = threads

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """The outputs of all nodes at ``step``."""
        if step != self.lie.step:
            return self._executor.run(state, step)
        outputs: list[Words] = []
        self._lied(state, step, lambda number, output: outputs.append(output))
        return outputs

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The state after ``step``, and the outputs of the observed nodes."""
        observed = dict[int, Words]()

        def see(number: int, output: Words) -> None:
            if number in self._observed:
                observed[number] = output.copy()

        after = self.watch(state, step, see)
        return after, [observed[node] for node in self._observed]

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The state after ``step``; ``seen(node, output)`` gets the output of each node."""
        if step != self.lie.step:
            return self._executor.watch(state, step, seen)
        return self._lied(state, step, seen)

    def _lied(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The state after the step with the lie; an output is dropped when its last reader is done."""
        nodes, blank = self._program.nodes, np.empty(0, np.uint32)
        reads = [{each.index for each in node.operands if each.source is Source.NODE} for node in nodes]
        last = {read: number for number, of_node in enumerate(reads) for read in of_node}
        last |= {slot.producer: len(nodes) for slot in self._program.slots}
        outputs: list[Words] = []
        sources = Sources(state, self._constants, outputs)
        for number, node in enumerate(nodes):
            outputs.append(CpuNode(node, self._threads).run(step, sources))
            if number == self.lie.node:
                outputs[-1].reshape(-1)[self.lie.element] = lied_result(node, self.lie, sources)
            seen(number, outputs[-1])
            for done in {number, *reads[number]}:
                if last.get(done, number) == number:
                    outputs[done] = blank
        return next_state(self._program, outputs)

    def observing(self, nodes: Sequence[int]) -> LyingExecutor:
        """A liar that observes these nodes."""
        return LyingExecutor(self._program, self._constants, self._executor, self.lie, self._threads, nodes)


class LyingTrace(SegmentTrace):
    """An execution with one wrong scalar, consistent with itself everywhere else."""

    def __init__(self, honest: SegmentTrace, lie: Lie, threads: int = 1) -> None:
        executor = LyingExecutor(honest.program, honest.constants, honest.executor, lie, threads)
        start = honest.state(honest.first_step)
        super().__init__(honest.program, honest.constants, executor, start, honest.first_step, honest.steps)
        self.lie = lie

    def accumulators(self, step: int, node: int, element: int, terms: Sequence[int]) -> list[int]:
        """As claimed: honest before the lie, and consistent with it afterwards."""
        if (step, node, element) != (self.lie.step, self.lie.node, self.lie.element):
            return super().accumulators(step, node, element, terms)
        return lied_accumulators(self.program.nodes[node], self.lie, self.sources(step, node), terms)

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        """As claimed: with the flipped bit where the lie is."""
        here = (self.lie.step, self.lie.node, self.lie.element, self.lie.term)
        if (step, node, element, term) != here:
            return super().body(step, node, element, term, accumulator)
        return lied_body(self.program.nodes[node], self.lie, accumulator, self.sources(step, node))


class JumpingTrace(SegmentTrace):
    """An execution that ends in a state of its author's choice: the producers of its slots have put it out.

    Whatever lies before them is computed honestly, and so is what an element is made of, up to the last result.
    """

    def __init__(self, honest: SegmentTrace, end: Sequence[Words]) -> None:
        start = honest.state(honest.first_step)
        super().__init__(honest.program, honest.constants, honest.executor, start, honest.first_step, honest.steps)
        self._end = {slot.producer: words for slot, words in zip(honest.program.slots, end, strict=True)}

    def accumulators(self, step: int, node: int, element: int, terms: Sequence[int]) -> list[int]:
        """As claimed: the last one is the word of the state that is claimed."""
        values = super().accumulators(step, node, element, terms)
        if not self._jumps(step, node):
            return values
        claimed, end = int(self._end[node].reshape(-1)[element]), self.program.nodes[node].terms
        return [claimed if term == end else value for term, value in zip(terms, values, strict=True)]

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        """As claimed: the last result of the last term is the word of the state that is claimed."""
        values = super().body(step, node, element, term, accumulator)
        if self._jumps(step, node) and term == self.program.nodes[node].terms - 1:
            values[-1] = int(self._end[node].reshape(-1)[element])
        return values

    def _watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        jumps = step == self.first_step + self.steps - 1
        end = self._end if jumps else {}
        after = super()._watch(state, step, lambda number, output: seen(number, end.get(number, output)))
        return [self._end[slot.producer] for slot in self.program.slots] if jumps else after

    def _jumps(self, step: int, node: int) -> bool:
        return step == self.first_step + self.steps - 1 and node in self._end


def lied_accumulators(node: Node, lie: Lie, sources: Sources, terms: Sequence[int]) -> list[int]:
    """The accumulator before each of ``terms``, ascending, of the element that holds the lie."""
    element = CpuElement(node, lie.element)
    agreed = [term for term in terms if term <= lie.term]
    *values, before = element.accumulators(lie.step, sources, [*agreed, lie.term])
    lied = lied_body(node, lie, before, sources)[-1]
    return values + element.accumulators(lie.step, sources, terms[len(agreed) :], lie.term + 1, lied)


def lied_result(node: Node, lie: Lie, sources: Sources) -> int:
    """The element that holds the lie."""
    return lied_accumulators(node, lie, sources, [node.terms])[-1]


def lied_body(node: Node, lie: Lie, accumulator: int, sources: Sources) -> list[int]:
    """The results of all instructions of the term that holds the lie."""
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
