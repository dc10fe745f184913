"""Disputes about any program on a real EVM: the game's contracts, a market that only listens, two players.

Every move is made by the rules of `pol.dispute` and on chain. On chain it carries the position that the rules lead to:
the contract refuses the first move at which the two differ, and the heads are compared.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

from eth_abi.abi import encode as abi_encode
from web3 import HTTPProvider, Web3
from web3.contract import Contract

from anvil_node import anvil_node
from lab.disputes.dispute_match import Match, play
from pol.arithmetic.primitives import Words
from pol.chain.contract_abi import artifact
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import Lie, LyingTrace, lied_result
from pol.dispute.disputed_claim import DisputedClaim, ReceiptClaim, ReplayClaim, SumClaim
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import HASH_BITS, ClaimKind, Position, Side, state_hash
from pol.execution.cpu import CpuExecutor
from pol.execution.disputed_element import reads
from pol.graph.node import InputKind, Node
from pol.graph.step_program import StepProgram
from solidity import compiled, deploy

ENOUGH_GAS = 5_000_000
CLOCK = 10**6
REPLAY_GRACE, MOVE_GRACE = 3600, 600
ZERO = bytes(32)
PARAMS = "(address,address,bytes32,bytes32,uint8,uint8,uint64,uint64,bytes32,bytes32,bytes32,bytes32,uint256,uint32)"


@dataclass(frozen=True)
class Played:
    """A dispute that is over, with the gas of its transactions."""

    match: Match
    start_gas: int
    gas: tuple[int, ...]
    """Of each move."""

    @property
    def moves(self) -> list[tuple[Position, Move, int]]:
        """Where it stood, what was done, and the gas of the transaction."""
        walked = list(self.match.record.walk())
        return [(position, move, gas) for (position, move, _), gas in zip(walked, self.gas, strict=True)]

    @property
    def proof_gas(self) -> int:
        """Gas of the move that decided."""
        assert self.match.refuted
        return self.gas[-1]


class Court:
    """A node with the contracts, for disputes in transactions (account 0 asserts, 1 challenges) or in one call."""

    def __init__(self, url: str, bits: int = HASH_BITS, one_step: str = "OneStep") -> None:
        self.web3 = Web3(HTTPProvider(url, request_kwargs={"timeout": 60}))
        self.bits = bits
        self.asserter, self.challenger = list(self.web3.eth.accounts)[:2]
        step, starts = self._deploy(one_step), self._deploy("Starts")
        graces = (bits, REPLAY_GRACE, MOVE_GRACE)
        self.market = deploy(url, "tests/forge/dispute/Resolver.sol", "Resolver")
        self.game = self._deploy("DisputeGame", self.market.address, step.address, starts.address, *graces)
        self.hearing = deploy(url, "tests/forge/dispute/DisputePlayer.sol", "DisputePlayer")
        self.heard = self._deploy("DisputeGame", self.hearing.address, step.address, starts.address, *graces)
        self.seats = tuple(self.hearing.functions[side]().call() for side in ("asserter", "challenger"))
        self.disputes = 0

    def hear(
        self, claim: DisputedClaim, header: bytes, asserter: Player, challenger: Player, payload: bytes | None = None
    ) -> Match:
        """A whole dispute in one call that leaves nothing behind: by the rules and on the EVM, head by head."""
        params = params_of(claim, *self.seats)
        claim = replace(claim, id=self._id(self.heard, 1, params))
        match = play(claim, header, asserter, challenger, self.bits, payload)
        record = match.record
        walked = list(record.walk())
        moves = [encode(1, position, move) for position, move, _ in walked]
        vain = encode(1, match.last, match.attempt) if match.attempt is not None else b""
        call = self.hearing.functions.hear(self.heard.address, params, record.header, record.payload, moves, vain)
        heads, resolved, asserter_won = call.call({"gas": 10**9})
        positions = [record.start] + [after for _, _, after in walked if isinstance(after, Position)]
        expected = [state_hash(position, self._seat(position)) for position in positions]
        assert heads[: len(expected)] == expected
        assert resolved == match.refuted
        if resolved:
            assert asserter_won == (match.winner is Side.ASSERTER)
        return match

    def play(self, claim: DisputedClaim, header: bytes, asserter: Player, challenger: Player) -> Played:
        """A dispute in transactions; one that no proof decides is resigned."""
        self.disputes += 1
        params = params_of(claim, self.asserter, self.challenger)
        match = play(
            replace(claim, id=self._id(self.game, self.disputes, params)), header, asserter, challenger, self.bits
        )
        record = match.record
        data = self.market.encode_abi("start", [self.game.address, params, record.header, record.payload])
        start_gas = self._transact(self.challenger, self.market.address, data)
        gas = []
        for position, move, _ in record.walk():
            sender = self.asserter if position.turn is Side.ASSERTER else self.challenger
            gas.append(self._transact(sender, self.game.address, "0x" + encode(self.disputes, position, move).hex()))
        number, asserter_won = (self.market.functions[name]().call() for name in ("number", "asserterWon"))
        if match.refuted:
            assert (number, asserter_won) == (self.disputes, match.winner is Side.ASSERTER)
        else:
            assert number != self.disputes
        return Played(match, start_gas, tuple(gas))

    def begin(self, claim: DisputedClaim, header: bytes, payload: bytes) -> None:
        """Start a dispute in a call that leaves nothing behind."""
        params = params_of(claim, self.asserter, self.challenger)
        self.market.functions.start(self.game.address, params, header, payload).call({"gas": 10**8})

    def _seat(self, position: Position) -> bytes:
        return bytes.fromhex(self.seats[position.turn - 1][2:])

    def _id(self, game: Contract, number: int, params: tuple[Any, ...]) -> bytes:
        types = ["uint256", "address", "uint256", PARAMS]
        return keccak256(abi_encode(types, [self.web3.eth.chain_id, game.address, number, params]))

    def _transact(self, sender: str, to: str, data: str) -> int:
        """Gas of a transaction, which succeeds. Two requests: web3's own way takes seven."""
        request = self.web3.provider.make_request
        call = {"from": sender, "to": to, "data": data, "gas": hex(ENOUGH_GAS)}
        sent = request("eth_sendTransaction", [call])  # type: ignore[arg-type]  # its names are a type of their own
        assert "result" in sent, sent
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            receipt = request("eth_getTransactionReceipt", [sent["result"]])["result"]  # type: ignore[arg-type]  # as above
            if receipt is not None:
                assert int(receipt["status"], 16) == 1, "the contract refuses a move that the rules allow"
                return int(receipt["gasUsed"], 16)
        raise TimeoutError("the node does not mine")

    def _deploy(self, name: str, *arguments: Any) -> Contract:
        built = artifact(name)
        factory = self.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])
        sent = factory.constructor(*arguments).transact({"from": self.web3.eth.accounts[0]})
        address = self.web3.eth.wait_for_transaction_receipt(sent)["contractAddress"]
        contract: Contract = self.web3.eth.contract(address=address, abi=built["abi"])
        return contract


def params_of(claim: DisputedClaim, asserter: str, challenger: str) -> tuple[Any, ...]:
    """What the contract takes to start a dispute about a claim."""
    if isinstance(claim, SumClaim):
        about = (
            claim.program,
            ZERO,
            int(ClaimKind.DISTANCE),
            claim.component,
            0,
            0,
            ZERO,
            ZERO,
            claim.x,
            claim.y,
            claim.sum,
        )
    elif isinstance(claim, ReceiptClaim):
        step = (claim.step, 1, claim.before, ZERO)
        about = (claim.program, claim.constants, int(ClaimKind.RECEIPT), 0, *step, claim.receipt, claim.seed, 0)
    else:
        steps = (claim.first_step, claim.steps, claim.start, claim.end)
        about = (claim.program, claim.constants, int(ClaimKind.REPLAY), 0, *steps, ZERO, ZERO, 0)
    return (asserter, challenger, *about, CLOCK)


@contextmanager
def court(bits: int = HASH_BITS, one_step: str = "OneStep", hardfork: str = "prague") -> Iterator[Court]:
    """A court on a fresh node."""
    compiled("tests/forge/dispute/Resolver.sol", "Resolver")
    compiled("tests/forge/dispute/DisputePlayer.sol", "DisputePlayer")
    with anvil_node("--gas-limit", "1000000000000", "--code-size-limit", "1000000", hardfork=hardfork) as url:
        yield Court(url, bits, one_step)


def replay_claim(honest: SegmentTrace, asserted: SegmentTrace) -> ReplayClaim:
    """What whoever has executed ``asserted`` claims about the segment; the chain gives it its id."""
    first, last = honest.first_step, honest.first_step + honest.steps
    program, constants = honest.program, constants_root(honest.program.constants, honest.constants)
    roots = (honest.state_root(first), asserted.state_root(last))
    return ReplayClaim(ZERO, ProgramCommitment.of(program).hash, constants, first, honest.steps, *roots)


def sides(honest: SegmentTrace, liar: SegmentTrace, side: Side) -> tuple[DisputedClaim, bytes, Player, Player]:
    """A dispute in which ``liar`` plays ``side``: its claim, the program's header, asserter and challenger."""
    players = {side: ReplayPlayer(liar), side.other: ReplayPlayer(honest)}
    claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
    header = ProgramCommitment.of(honest.program).header
    return claim, header, players[Side.ASSERTER], players[Side.CHALLENGER]


def one_step_of(
    program: StepProgram, constants: Sequence[Words], state: Sequence[Words], step: int = 0
) -> SegmentTrace:
    """The honest execution of one step."""
    return SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), state, step, 1)


def readings(node: Node, instruction: int) -> int:
    """How many words an instruction reads from tensors, gathering included."""
    found = node.body.instructions[instruction]
    count = 0
    for register in set(found.operands):
        if register < len(node.inputs) and node.inputs[register].kind is InputKind.OPERAND:
            count += 1 if node.operands[node.inputs[register].index].gather is None else 2
    return count


def dearest_lie(honest: SegmentTrace, number: int, random: Random, tries: int = 12) -> Lie:
    """A lie in a node, at the instruction that reads most among those of which a wrong bit is seen in the output."""
    node = honest.program.nodes[number]
    order = sorted(range(len(node.body.instructions)), key=lambda i: (-readings(node, i), -i))
    for instruction, _ in product(order[:3], range(tries)):
        lie = drawn_lie(honest, number, random, instruction)
        if is_seen(honest, lie):
            return lie
    # The last result of the last term is the element.
    lie = drawn_lie(honest, number, random, len(node.body.instructions) - 1)
    return replace(lie, term=node.terms - 1)


def filled_lie(honest: SegmentTrace, number: int, random: Random, tries: int = 200) -> Lie | None:
    """A lie in a node's last result where an operand yields its fill; None if there seems to be no such place."""
    node, step = honest.program.nodes[number], honest.first_step
    if not any(operand.bounds or operand.gather for operand in node.operands):
        return None
    for _ in range(tries):
        lie = drawn_lie(honest, number, random, len(node.body.instructions) - 1)
        found = reads(node, step, lie.element, lie.term, honest.sources(step, number))
        if any(read.address is None for read in found) and is_seen(honest, lie):
            return lie
    return None


def drawn_lie(honest: SegmentTrace, number: int, random: Random, instruction: int) -> Lie:
    """Any bit of an instruction's result, at any element and one of the last terms."""
    node = honest.program.nodes[number]
    term = node.terms - 1 - random.randrange(min(node.terms, 64))
    return Lie(honest.first_step, number, random.randrange(node.type.numel), term, instruction, random.randrange(32))


def is_seen(honest: SegmentTrace, lie: Lie) -> bool:
    """Whether the output is another with the lie than without."""
    node, step = honest.program.nodes[lie.node], lie.step
    right = honest.output(step, lie.node).reshape(-1)[lie.element]
    return bool(lied_result(node, lie, honest.sources(step, lie.node)) != right)


class LoudTrace(LyingTrace):
    """Says that another state comes out, whether or not the lie shows in it: samples of operations keep few outputs."""

    def state_root(self, step: int) -> bytes:
        root = super().state_root(step)
        return keccak256(root) if step > self.lie.step else root


def convict(court: Court, honest: SegmentTrace, lie: Lie) -> Played:
    """The dispute about a step with this lie in it, with the liar on the side on which the truth proves: it loses."""
    liar = LoudTrace(honest, lie)
    for side in (Side.ASSERTER, Side.CHALLENGER):
        match = play(*sides(honest, liar, side), court.bits)
        assert match.winner is side.other, match.detail
        if match.refuted:
            played = court.play(*sides(honest, liar, side))
            assert played.match.winner is side.other
            return played
    raise AssertionError("neither side proves")
