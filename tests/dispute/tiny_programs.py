"""Programs so small that every lie in them can be told: a few nodes of two elements, with a fold and a longer body."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.demo.lying_players import Lie
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import NothingToDispute, Player
from pol.dispute.position import Position
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

PAIR = TensorType(DType.F32, (2,))


def program_of(nodes: int, terms: int) -> StepProgram:
    """A chain of ``nodes``: the first one a fold of so many terms over the state, the last one the next state."""
    accumulator, first = Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0)
    whole = Operand(Source.STATE, 0, PAIR, Affine(0, (0, 1, 0)))
    adding = Builder(2)
    chain = [
        Node(
            PAIR,
            (whole,),
            (accumulator, first),
            adding.build(adding.emit(Op.FADD, *map(adding.input, (0, 1)))),
            fold=(terms,),
        )
    ]
    halving = Builder(1)
    half = halving.emit(Op.FMUL, halving.input(0), halving.f32(0.5))
    body = halving.build(halving.emit(Op.FADD, half, halving.f32(0.25)))
    for before in range(nodes - 1):
        chain.append(Node(PAIR, (Operand(Source.NODE, before, PAIR, Affine(0, (0, 1))),), (first,), body))
    slots, constants = (Slot(Component.PARAMETER, PAIR, nodes - 1),), (TensorType(DType.F32, ()),)
    return StepProgram(slots, constants, tuple(chain))


def honest_trace(nodes: int, terms: int, steps: int) -> SegmentTrace:
    """The right execution of a small program."""
    program, constants = program_of(nodes, terms), [np.zeros((), np.uint32)]
    start = [np.array([1.25, -3.5], np.float32).view(np.uint32)]
    return SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), start, 2, steps)


def every_lie(honest: SegmentTrace, bit: int = 20) -> Iterator[Lie]:
    """One in each place."""
    for step in range(honest.first_step, honest.first_step + honest.steps):
        for number, node in enumerate(honest.program.nodes):
            for element in range(node.type.numel):
                for term in range(node.terms):
                    for instruction in range(len(node.body.instructions)):
                        yield Lie(step, number, element, term, instruction, bit)


@dataclass
class Silent:
    """Plays like somebody else for some moves, and then no more."""

    player: Player
    moves: int

    def open(self, position: Position) -> bytes:
        return self.player.open(position)

    def move(self, position: Position) -> Move:
        self.moves -= 1
        if self.moves < 0:
            raise NothingToDispute("silent")
        return self.player.move(position)


@dataclass
class Contradicting:
    """Says one thing in one move and another in the next."""

    players: tuple[Player, ...]
    made: int = field(default=0)

    def open(self, position: Position) -> bytes:
        return self.players[0].open(position)

    def move(self, position: Position) -> Move:
        self.made += 1
        for i in range(len(self.players)):
            try:
                return self.players[(self.made + i) % len(self.players)].move(position)
            except NothingToDispute:
                continue
        raise NothingToDispute("whoever it plays, it has nothing to say")
