"""Time to prepare the moves of a dispute about one long fold, beside the replay of that fold."""

import time

import numpy as np

from lab.benchmarks.figure import Figure
from lab.disputes.dispute_match import Match, play
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import WORDS, Position, Side
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

TERMS = 1 << 26
_ID = bytes(32)
_SCALAR = TensorType(DType.F32, ())


class TimedPlayer:
    """A player, and how many seconds its moves about one element took."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.seconds = 0.0

    def open(self, position: Position) -> bytes:
        """As the player opens."""
        return self._player.open(position)

    def move(self, position: Position) -> Move:
        """As the player moves."""
        began = time.perf_counter()
        try:
            return self._player.move(position)
        finally:
            if position.level in WORDS:
                self.seconds += time.perf_counter() - began


def program(terms: int) -> StepProgram:
    """A product of two vectors of constants, the second one read from its end.

    So no chunk of its terms can be executed at once: a dispute walks down to a single one.
    """
    vector = TensorType(DType.F32, (terms,))
    x = Operand(Source.CONSTANT, 0, vector, Affine(0, (0, 1)))
    y = Operand(Source.CONSTANT, 1, vector, Affine(terms - 1, (0, -1)))
    builder = Builder(3)
    body = builder.build(builder.emit(Op.FFMA, *map(builder.input, range(3))))
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR))
    node = Node(_SCALAR, (x, y), inputs, body, fold=(terms,))
    return StepProgram((Slot(Component.PARAMETER, _SCALAR, 0),), (vector, vector), (node,))


def constants(terms: int) -> list[Words]:
    """Normal deviates."""
    random = np.random.default_rng(1)
    return [random.standard_normal(terms, np.float32).view(np.uint32) for _ in range(2)]


def disputed(honest: SegmentTrace, side: Side) -> tuple[Match, float]:
    """A dispute about a wrong bit amid the fold, with the liar on ``side``; seconds of the honest party's moves."""
    liar = LyingTrace(honest, Lie(0, 0, 0, honest.program.nodes[0].terms // 2 + 174, 0, 22))
    end = (liar if side is Side.ASSERTER else honest).state_root(1)
    commitment, words = ProgramCommitment.of(honest.program), constants_root(honest.program.constants, honest.constants)
    claim = ReplayClaim(_ID, commitment.hash, words, 0, 1, honest.state_root(0), end)
    timed = TimedPlayer(ReplayPlayer(honest))
    players: dict[Side, Player] = {side: ReplayPlayer(liar), side.other: timed}
    match = play(claim, commitment.header, players[Side.ASSERTER], players[Side.CHALLENGER])
    return match, timed.seconds


def move_figures(terms: int = TERMS) -> dict[str, Figure]:
    """All moves about one element that an honest party makes on either side of a dispute: every level, once."""
    found, words = program(terms), constants(terms)
    executor = CpuExecutor(found, words)
    replays, moves = [], 0.0
    for side in (Side.ASSERTER, Side.CHALLENGER):
        honest = SegmentTrace(found, words, executor, [np.zeros((), np.uint32)], 0, 1)
        began = time.perf_counter()
        honest.output(0, 0)
        replays.append(time.perf_counter() - began)
        match, seconds = disputed(honest, side)
        if match.winner is side:
            raise OperationalError(f"the liar won: {match.detail}")
        moves += seconds
    replay = min(replays)
    return {"move_seconds_2p26": Figure(moves, "s", "the replay of the fold", moves / replay)}
