"""Executions that differ from the right one in one thing: what a step is, what it reads, or what follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from pol.arithmetic import philox
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Seen
from pol.execution.operand_sources import Sources
from pol.graph.node import Node
from pol.graph.step_program import StepProgram


@dataclass(frozen=True)
class Other:
    """What is executed at one step instead of what was agreed."""

    what: str
    program: StepProgram
    constants: Sequence[Words]
    step: int


class TamperedTrace(SegmentTrace):
    """Executes something else at step ``at``, and says that it was the agreed program on the agreed constants."""

    def __init__(self, honest: SegmentTrace, at: int, other: Other) -> None:
        super().__init__(
            honest.program,
            honest.constants,
            honest.executor,
            honest.state(honest.first_step),
            honest.first_step,
            honest.steps,
        )
        self.at, self.other = at, other
        self._other = SegmentTrace(
            other.program,
            other.constants,
            CpuExecutor(other.program, other.constants, threads=1),
            honest.state(at),
            other.step,
            1,
        )

    def _watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        if step != self.at:
            return super()._watch(state, step, seen)
        return self._other.executor.watch(state, self.other.step, seen)

    def sources(self, step: int, node: int) -> Sources:
        return self._other.sources(self.other.step, node) if step == self.at else super().sources(step, node)

    def accumulators(self, step: int, node: int, element: int, terms: Sequence[int]) -> list[int]:
        if step == self.at:
            return self._other.accumulators(self.other.step, node, element, terms)
        return super().accumulators(step, node, element, terms)

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        if step == self.at:
            return self._other.body(self.other.step, node, element, term, accumulator)
        return super().body(step, node, element, term, accumulator)


class TamperedState(SegmentTrace):
    """Executes step ``at`` honestly, but flips a bit of the state that follows."""

    def __init__(self, honest: SegmentTrace, at: int, slot: int, element: int, bit: int) -> None:
        super().__init__(
            honest.program,
            honest.constants,
            honest.executor,
            honest.state(honest.first_step),
            honest.first_step,
            honest.steps,
        )
        tampered = [words.copy() for words in honest.state(at + 1)]
        tampered[slot].reshape(-1)[element] ^= np.uint32(1 << bit)
        self._states.replace(at + 1, tampered)


def other_op(program: StepProgram, random: Random) -> StepProgram:
    """One instruction of one node is another one of the same arity."""
    number = random.randrange(len(program.nodes))
    node = program.nodes[number]
    index = random.randrange(len(node.body.instructions))
    found = node.body.instructions[index]
    same = [op for op in Op if ARITY[op] == ARITY[found.op] and op is not found.op]
    instructions = list(node.body.instructions)
    instructions[index] = replace(found, op=random.choice(same))
    return _with_body(program, number, replace(node.body, instructions=tuple(instructions)))


def other_number(program: StepProgram, random: Random) -> StepProgram | None:
    """A constant of a node's body is another one: a learning rate, a seed of a draw, a size; None if there is none."""
    numbers = [i for i, node in enumerate(program.nodes) if node.body.constants]
    if not numbers:
        return None
    number = random.choice(numbers)
    body = program.nodes[number].body
    constants = list(body.constants)
    constants[random.randrange(len(constants))] ^= 1 << random.randrange(32)
    return _with_body(program, number, replace(body, constants=tuple(constants)))


def other_fill(program: StepProgram, random: Random) -> StepProgram | None:
    """An accumulator starts with another value, or an operand yields another word outside of its bounds."""
    places = [(i, -1) for i, node in enumerate(program.nodes) if node.fold]
    places += [
        (i, j) for i, node in enumerate(program.nodes) for j, operand in enumerate(node.operands) if operand.bounds
    ]
    if not places:
        return None
    number, at = random.choice(places)
    node, bit = program.nodes[number], random.choice([0x3F000000, 0x3F800000, 1])
    if at < 0:
        return _with_node(program, number, replace(node, init=node.init ^ bit))
    operands = list(node.operands)
    operands[at] = replace(operands[at], fill=operands[at].fill ^ bit)
    return _with_node(program, number, replace(node, operands=tuple(operands)))


def _with_body(program: StepProgram, number: int, body: ScalarProgram) -> StepProgram:
    return _with_node(program, number, replace(program.nodes[number], body=body))


def _with_node(program: StepProgram, number: int, node: Node) -> StepProgram:
    nodes = list(program.nodes)
    nodes[number] = node
    return replace(program, nodes=tuple(nodes))


def other_constants(constants: Sequence[Words], random: Random) -> list[Words]:
    """One word of the constants is another one: a pixel, a label, an entry of the order of samples, a schedule."""
    result = [words.copy() for words in constants]
    words = random.choice([w for w in result if w.size]).reshape(-1)
    at = random.randrange(words.size)
    # Small changes too: another valid index rather than one out of bounds.
    words[at] ^= np.uint32(1 << (random.randrange(3) if random.random() < 0.5 else random.randrange(32)))
    return result


def draws(program: StepProgram) -> list[int]:
    """The nodes that draw random numbers: their bodies multiply by what Philox multiplies by."""
    multipliers = set(philox.MULTIPLIERS)
    return [i for i, node in enumerate(program.nodes) if multipliers <= set(node.body.constants)]


KINDS = ("scalar", "op", "number", "fill", "constants", "step", "state")
"""What is tampered with: a scalar, an operation, a number of a body (a rate, a draw's seed), an initial value, a word
of the data or of its order, the step, a slot of the state."""
DRAW = "draw"
"""A scalar of a random draw, in programs that draw."""


def tampered(honest: SegmentTrace, kind: str, random: Random) -> SegmentTrace | None:
    """An execution that is wrong in one thing; None if what was drawn changes nothing that is claimed."""
    first, steps, program = honest.first_step, honest.steps, honest.program
    at = first + random.randrange(steps)
    if kind in ("scalar", DRAW):
        places = draws(program) if kind == DRAW else range(len(program.nodes))
        if not places:
            return None
        node = program.nodes[number := random.choice(places)]
        found: SegmentTrace = LyingTrace(
            honest,
            Lie(
                at,
                number,
                random.randrange(node.type.numel),
                random.randrange(node.terms),
                random.randrange(len(node.body.instructions)),
                random.randrange(32),
            ),
        )
    elif kind == "state":
        slot = random.randrange(len(program.slots))
        element = random.randrange(program.slots[slot].type.numel)
        found = TamperedState(honest, at, slot, element, random.randrange(32))
    elif kind == "step":
        found = TamperedTrace(
            honest, at, Other(kind, program, honest.constants, max(0, at + random.choice([-1, 1, 2])))
        )
    elif kind == "constants":
        found = TamperedTrace(honest, at, Other(kind, program, other_constants(honest.constants, random), at))
    else:
        changed = {"op": other_op, "number": other_number, "fill": other_fill}[kind](program, random)
        if changed is None:
            return None
        found = TamperedTrace(honest, at, Other(kind, changed, honest.constants, at))
    end = first + steps
    return found if found.state_root(end) != honest.state_root(end) else None
