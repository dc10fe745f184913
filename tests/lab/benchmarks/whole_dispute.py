"""A whole dispute on a local node, as large as real training: 1,000 steps, 1,000 nodes, 2^24 elements, 4,096 terms.

And the time to prepare the moves of a dispute about one long fold, beside the replay of that fold.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from eth_abi.abi import encode as abi_encode
from web3 import Web3

from anvil_node import anvil_node
from dispute_harness import PARAMS, Played, params_of
from lab.benchmarks.figure import Figure
from lab.disputes.dispute_match import KnownTraces, Match, play
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.chain.contract_abi import artifact
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import HASH_BITS, WORDS, Position, Side
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

STEPS, NODES = 1000, 1000
STEP, PRODUCT = 617, 704
"""The disputed step, and the node that multiplies two matrices."""
SCALAR = TensorType(DType.F32, ())
ZERO = bytes(32)
GRACES = (3600, 600)


@dataclass(frozen=True)
class Size:
    """Of the product: rows by columns, each a sum over ``terms``; slots of the state, which only make its tree deep."""

    rows: int
    columns: int
    terms: int
    slots: int
    strided: bool = False
    """Whether a column of the second matrix lies apart: no chunk of its terms can be executed at once."""


REAL = Size(4096, 4096, 4096, 150)
"""2^24 elements of 4,096 terms."""
TWENTY = Size(16, 16, 4096, 1000)
"""Operands of 2^10 leaves in lists of 1,000: each is opened under 20 siblings."""


def program(size: Size) -> StepProgram:
    """A product of two matrices among nodes that only make the trees as deep as they are."""
    accumulator, first, second = Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)
    adding, passing, chained = Builder(2), Builder(1), Builder(3)
    add = adding.build(adding.emit(Op.FADD, adding.input(0), adding.input(1)))
    move = passing.build(passing.emit(Op.MOV, passing.input(0)))
    fma = chained.build(chained.emit(Op.FFMA, *map(chained.input, range(3))))
    left, right = matrices(size)
    counter = (Operand(Source.STATE, 2, SCALAR, Affine(0, (0,))), Operand(Source.CONSTANT, 0, SCALAR, Affine(0, (0,))))
    nodes = [Node(SCALAR, counter, (first, second), add)]
    while len(nodes) < NODES:
        if len(nodes) == PRODUCT - 1:
            nodes.append(Node(left, (Operand(Source.STATE, 0, left, Affine(0, (0, size.terms, 1))),), (first,), move))
        elif len(nodes) == PRODUCT:
            x = Operand(Source.NODE, PRODUCT - 1, left, Affine(0, (0, size.terms, 0, 1)))
            strides = (0, 0, 1, size.columns) if size.strided else (0, 0, size.terms, 1)
            w = Operand(Source.STATE, 1, right, Affine(0, strides))
            product = TensorType(DType.F32, (size.rows, size.columns))
            nodes.append(Node(product, (x, w), (first, second, accumulator), fma, fold=(size.terms,)))
        else:
            nodes.append(Node(SCALAR, (Operand(Source.NODE, 0, SCALAR, Affine(0, (0,))),), (first,), move))
    weights = Operand(Source.STATE, 1, right, Affine(0, (0, right.shape[1], 1)))
    nodes[-1] = Node(right, (weights,), (first,), move)
    slots = [Slot(Component.PARAMETER, left, PRODUCT - 1), Slot(Component.PARAMETER, right, NODES - 1)]
    slots += [Slot(Component.BUFFER, SCALAR, 0) for _ in range(size.slots - 2)]
    return StepProgram(tuple(slots), (SCALAR,), tuple(nodes))


def matrices(size: Size) -> tuple[TensorType, TensorType]:
    """The types of the factors."""
    right = (size.terms, size.columns) if size.strided else (size.columns, size.terms)
    return TensorType(DType.F32, (size.rows, size.terms)), TensorType(DType.F32, right)


class FarTrace(SegmentTrace):
    """Executes one step really; of all others it knows no more than a root, which nobody looks below."""

    def __init__(self, honest: SegmentTrace, name: bytes) -> None:
        super().__init__(honest.program, honest.constants, honest.executor, honest.state(STEP), STEP, 1)
        self.name = name

    def state_root(self, step: int) -> bytes:
        if step == STEP:
            return super().state_root(step)
        return keccak256((self.name if step > STEP else b"") + step.to_bytes(8, "big"))


class FarLiar(LyingTrace):
    """The same with a lie in the product."""

    def state_root(self, step: int) -> bytes:
        if step == STEP:
            return super().state_root(step)
        return keccak256((b"liar" if step > STEP else b"") + step.to_bytes(8, "big"))


def dispute_figures() -> dict[str, Figure]:
    """Gas and transactions of whole disputes, of their dearest answer and of their proofs, by the rules of Osaka.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    found: dict[str, float] = {}
    with anvil_node(hardfork="osaka") as url:
        for bits, prefix in ((4, ""), (5, "wide_")):
            court = Court(url, bits)
            parties = _parties(REAL)
            found |= _figures(_dispute(court, *parties), prefix)
            for with_leaves, name in ((False, "published"), (True, "published_leaves")):
                played = _dispute(court, *parties, KnownTraces(*parties, with_leaves=with_leaves))
                found[f"{prefix}{name}_dispute_gas"] = played.start_gas + sum(played.gas)
                found[f"{prefix}{name}_dispute_moves"] = played.match.transactions
        court = Court(url, HASH_BITS)
        found["chunk_step_gas"] = _dispute(court, *_parties(TWENTY)).gas[-1]
        found["one_step_gas"] = _dispute(court, *_parties(replace(TWENTY, strided=True))).gas[-1]
    return {n: Figure(value, "transactions" if n.endswith("moves") else "gas") for n, value in found.items()}


def _parties(size: Size) -> tuple[FarTrace, FarLiar]:
    """Two executions, of which the second one lies about the product."""
    disputed, random = program(size), np.random.default_rng(1)
    state = [random.standard_normal(type_.shape, np.float32).view(np.uint32) for type_ in matrices(size)]
    state += [np.array(number, np.float32).view(np.uint32) for number in range(size.slots - 2)]
    constants = [np.array(1, np.float32).view(np.uint32)]
    executor = CpuExecutor(disputed, constants)
    honest = FarTrace(SegmentTrace(disputed, constants, executor, state, STEP, 1), b"honest")
    element = 2 * size.rows * size.columns // 3
    return honest, FarLiar(honest, Lie(STEP, PRODUCT, element, size.terms // 2 + 174, 0, 20))


def _dispute(court: Court, honest: FarTrace, liar: FarLiar, published: KnownTraces | None = None) -> Played:
    """About the product, with the liar on the side on which the other one proves."""
    header = ProgramCommitment.of(honest.program).header
    for side in Side.ASSERTER, Side.CHALLENGER:
        asserted = liar if side is Side.ASSERTER else honest
        claim = _claim(honest, asserted.state_root(STEPS))
        players = {side: ReplayPlayer(liar, published), side.other: ReplayPlayer(honest, published)}
        played = court.play(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER])
        if played.match.refuted:
            return played
    raise OperationalError("no proof decides the benchmark's dispute")


def _figures(played: Played, prefix: str) -> dict[str, float]:
    kinds = [type(move).__name__ for _, move, _ in played.match.record.walk()]
    answers = [gas for kind, gas in zip(kinds, played.gas, strict=True) if kind == "Answer"]
    return {
        f"{prefix}dispute_gas": played.start_gas + sum(played.gas),
        f"{prefix}dispute_moves": played.match.transactions,
        f"{prefix}move_gas": max(answers),
        f"{prefix}start_gas": played.start_gas,
        f"{prefix}describe_gas": played.gas[kinds.index("Describe")],
        f"{prefix}unfold_gas": played.gas[kinds.index("Unfold")],
        f"{prefix}proof_gas": played.gas[-1],
    }


def _claim(honest: SegmentTrace, end: bytes) -> ReplayClaim:
    constants = constants_root(honest.program.constants, honest.constants)
    program_hash = ProgramCommitment.of(honest.program).hash
    return ReplayClaim(ZERO, program_hash, constants, 0, STEPS, honest.state_root(0), end)


class Court:
    """The game's contracts on a local node. The market is a contract that does nothing; disputes start in its name."""

    def __init__(self, url: str, bits: int) -> None:
        self.web3 = Web3(Web3.HTTPProvider(url))
        self.bits = bits
        self.market, self.asserter, self.challenger = list(self.web3.eth.accounts)[2:5]
        self._request("anvil_setCode", [self.market, "0x00"])
        one_step, starts = self._deploy("OneStep"), self._deploy("Starts")
        self.game = self._deploy("DisputeGame", self.market, one_step.address, starts.address, bits, *GRACES)
        self.disputes = 0

    def play(self, claim: ReplayClaim, header: bytes, asserter: ReplayPlayer, challenger: ReplayPlayer) -> Played:
        """A dispute, move by move in transactions."""
        self.disputes += 1
        params = params_of(claim, self.asserter, self.challenger)
        types = ["uint256", "address", "uint256", PARAMS]
        number = keccak256(abi_encode(types, [self.web3.eth.chain_id, self.game.address, self.disputes, params]))
        match = play(replace(claim, id=number), header, asserter, challenger, self.bits)
        data = self.game.encode_abi("start", [params, header, match.record.payload])
        start_gas, gas = self._send(self.market, data), []
        for position, move, _ in match.record.walk():
            sender = self.asserter if position.turn is Side.ASSERTER else self.challenger
            gas.append(self._send(sender, "0x" + encode(self.disputes, position, move).hex()))
        return Played(match, start_gas, tuple(gas))

    def _send(self, sender: str, data: str) -> int:
        call = {"from": sender, "to": self.game.address, "data": data, "gas": hex(10**7)}
        receipt = self.web3.eth.wait_for_transaction_receipt(self._request("eth_sendTransaction", [call]))
        if receipt["status"] != 1:
            raise OperationalError("the contract refused a move of the benchmark")
        return int(receipt["gasUsed"])

    def _request(self, method: str, arguments: list[Any]) -> Any:
        answer = self.web3.provider.make_request(method, arguments)  # type: ignore[arg-type]  # its names are a type of their own
        if "error" in answer:
            raise OperationalError(f"{method}: {answer['error']}")
        return answer["result"]

    def _deploy(self, name: str, *arguments: Any) -> Any:
        built = artifact(name)
        factory = self.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])
        sent = factory.constructor(*arguments).transact({"from": self.web3.eth.accounts[0]})
        address = self.web3.eth.wait_for_transaction_receipt(sent)["contractAddress"]
        return self.web3.eth.contract(address=address, abi=built["abi"])


TERMS = 1 << 26


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


def fold_program(terms: int) -> StepProgram:
    """A product of two vectors of fold_constants, the second one read from its end.

    So no chunk of its terms can be executed at once: a dispute walks down to a single one.
    """
    vector = TensorType(DType.F32, (terms,))
    x = Operand(Source.CONSTANT, 0, vector, Affine(0, (0, 1)))
    y = Operand(Source.CONSTANT, 1, vector, Affine(terms - 1, (0, -1)))
    builder = Builder(3)
    body = builder.build(builder.emit(Op.FFMA, *map(builder.input, range(3))))
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR))
    node = Node(SCALAR, (x, y), inputs, body, fold=(terms,))
    return StepProgram((Slot(Component.PARAMETER, SCALAR, 0),), (vector, vector), (node,))


def fold_constants(terms: int) -> list[Words]:
    """Normal deviates."""
    random = np.random.default_rng(1)
    return [random.standard_normal(terms, np.float32).view(np.uint32) for _ in range(2)]


def fold_dispute(honest: SegmentTrace, side: Side) -> tuple[Match, float]:
    """A dispute about a wrong bit amid the fold, with the liar on ``side``; seconds of the honest party's moves."""
    liar = LyingTrace(honest, Lie(0, 0, 0, honest.program.nodes[0].terms // 2 + 174, 0, 22))
    end = (liar if side is Side.ASSERTER else honest).state_root(1)
    commitment, words = ProgramCommitment.of(honest.program), constants_root(honest.program.constants, honest.constants)
    claim = ReplayClaim(ZERO, commitment.hash, words, 0, 1, honest.state_root(0), end)
    timed = TimedPlayer(ReplayPlayer(honest))
    players: dict[Side, Player] = {side: ReplayPlayer(liar), side.other: timed}
    match = play(claim, commitment.header, players[Side.ASSERTER], players[Side.CHALLENGER])
    return match, timed.seconds


def move_figures(terms: int = TERMS) -> dict[str, Figure]:
    """All moves about one element that an honest party makes on either side of a dispute: every level, once."""
    found, words = fold_program(terms), fold_constants(terms)
    executor = CpuExecutor(found, words)
    replays, moves = [], 0.0
    for side in (Side.ASSERTER, Side.CHALLENGER):
        honest = SegmentTrace(found, words, executor, [np.zeros((), np.uint32)], 0, 1)
        began = time.perf_counter()
        honest.output(0, 0)
        replays.append(time.perf_counter() - began)
        match, seconds = fold_dispute(honest, side)
        if match.winner is side:
            raise OperationalError(f"the liar won: {match.detail}")
        moves += seconds
    replay = min(replays)
    return {"move_seconds_2p26": Figure(moves, "s", "the replay of the fold", moves / replay)}
