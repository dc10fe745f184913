"""Disputes over one step of any program on a real EVM: the game's contracts, a market that only listens, two players.

Every move is made by the rules of `pol.dispute` and on chain; on chain it carries the position that the rules lead to,
so the contract refuses the first move at which the two differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import toy
from anvil_node import anvil_node
from solidity import compiled, deploy
from web3 import HTTPProvider, Web3
from web3.contract import Contract

from pol.arithmetic.primitives import Words
from pol.chain.artifacts import artifact
from pol.chain.game import call_of
from pol.commitments.program import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.dispute.evidence import SegmentTrace
from pol.dispute.header import Header
from pol.dispute.hostile import Lie, LyingTrace, lied_accumulators
from pol.dispute.moves import Claim, Ended, Move, Open
from pol.dispute.players import ReplayAsserter, ReplayChallenger
from pol.dispute.position import Kind, Level, Position, replay_start
from pol.dispute.rules import apply, is_asserters_turn
from pol.execution.cpu import CpuExecutor
from pol.execution.element import reads
from pol.graph.node import InputKind, Node
from pol.graph.step_program import StepProgram

ENOUGH_GAS = 5_000_000
CLOCK = 10**6
MOVE_GAS, DESCRIBE_GAS, PROOF_GAS = 60_000, 61_000, 160_000
"""What one transaction may cost: a move, the one that shows a descriptor, the one-step. What the real market adds to
the last one when it settles the stakes, about 55,000, does not depend on the step."""


@dataclass(frozen=True)
class Played:
    """A dispute that is over."""

    moves: tuple[tuple[Position, Move, int], ...]
    """Where it stood, what was done, and the gas of the transaction."""
    asserter_won: bool

    @property
    def proof_gas(self) -> int:
        """Gas of the move that decided."""
        return self.moves[-1][2]

    @property
    def move_gas(self) -> dict[str, int]:
        """The dearest move of each level before the last one."""
        found: dict[str, int] = {}
        for position, move, gas in self.moves[:-1]:
            name = f"{position.level.name} {type(move).__name__}"
            found[name] = max(gas, found.get(name, 0))
        return found


class Court:
    """A node with the game's contracts. Its first account asserts, its second one challenges."""

    def __init__(self, url: str) -> None:
        self.web3 = Web3(HTTPProvider(url, request_kwargs={"timeout": 60}))
        self.market = deploy(url, "tests/forge/dispute/Resolver.sol", "Resolver")
        one_step = self._deploy("OneStep")
        self.game = self._deploy("DisputeGame", self.market.address, one_step.address)
        self.asserter, self.challenger = list(self.web3.eth.accounts)[:2]
        self.disputes = 0
        # Whatever market is told for the first time pays for fresh storage: that is no part of a dispute.
        honest = one_step_of(toy.build(), toy.constants(), toy.initial_state())
        convict(self, honest, dearest_lie(honest, 1, Random(1)))

    def play(self, honest: SegmentTrace, liar: SegmentTrace) -> Played:
        """A dispute about one step that ``liar`` asserts and ``honest`` disputes."""
        position, claim = self._start(honest, liar)
        asserter, challenger = ReplayAsserter(liar), ReplayChallenger(honest)
        moves = []
        opened = b""
        while True:
            turn = is_asserters_turn(position)
            move = asserter.answer(position) if turn else challenger.choose(position, opened)
            opened = move.payload if isinstance(move, Open) else b""
            after = apply(position, move, claim)
            name, arguments = call_of(move)
            data = self.game.encode_abi(name, [self.disputes, position.abi_tuple(), *arguments])
            gas = self._transact(self.asserter if turn else self.challenger, self.game.address, data)
            moves.append((position, move, gas))
            if isinstance(after, Ended):
                _, number, _, asserter_won = self.market.functions.answer().call()
                assert number == self.disputes
                assert asserter_won == after.asserter_won
                return Played(tuple(moves), asserter_won)
            position = after

    def _start(self, honest: SegmentTrace, liar: SegmentTrace) -> tuple[Position, Claim]:
        commitment = ProgramCommitment.of(honest.program)
        claim = Claim(commitment.hash, constants_root(honest.program.constants, honest.constants))
        header = Header.decode(commitment.header, commitment.hash)
        step = honest.first_step
        start, end = honest.state_root(step), liar.state_root(step + 1)
        zero = bytes(32)
        about = (self.asserter, self.challenger, claim.program, claim.constants, int(Kind.REPLAY), 0, step, 1)
        params = (*about, start, end, zero, zero, 0, CLOCK, zero)
        data = self.market.encode_abi("start", [self.game.address, params, commitment.header])
        self._transact(self.challenger, self.market.address, data)
        self.disputes += 1
        return replay_start(header.nodes, header.nodes_tree, step, 1, start, end), claim

    def _transact(self, sender: str, to: str, data: str) -> int:
        """Gas of a transaction, which succeeds. Two requests: web3's own way takes seven."""
        request = self.web3.provider.make_request
        call = {"from": sender, "to": to, "data": data, "gas": hex(ENOUGH_GAS)}
        sent = request("eth_sendTransaction", [call])  # type: ignore[arg-type]  # its names are a type of their own
        assert "result" in sent, sent
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            receipt = request("eth_getTransactionReceipt", [sent["result"]])["result"]  # type: ignore[arg-type]  # as above
            if receipt is not None:
                assert int(receipt["status"], 16) == 1, "the contract refuses a move that the rules allow"
                return int(receipt["gasUsed"], 16)
        raise TimeoutError("the node does not mine")

    def _deploy(self, name: str, *arguments: str) -> Contract:
        built = artifact(name)
        factory = self.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])
        sent = factory.constructor(*arguments).transact({"from": self.web3.eth.accounts[0]})
        address = self.web3.eth.wait_for_transaction_receipt(sent)["contractAddress"]
        contract: Contract = self.web3.eth.contract(address=address, abi=built["abi"])
        return contract


@contextmanager
def court() -> Iterator[Court]:
    """A court on a fresh node."""
    compiled("tests/forge/dispute/Resolver.sol")
    with anvil_node() as url:
        yield Court(url)


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
        found = reads(node, step, lie.element, lie.term, honest.sources(step))
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
    right = honest.outputs(step)[lie.node].reshape(-1)[lie.element]
    return bool(lied_accumulators(node, lie, honest.sources(step))[-1] != right)


def convict(court: Court, honest: SegmentTrace, lie: Lie) -> Played:
    """The dispute about a step with this lie in it: it ends in the lie, and the liar loses."""
    played = court.play(honest, LyingTrace(honest, lie))
    position = played.moves[-1][0]
    assert not played.asserter_won
    assert position.level is Level.ONE_STEP
    assert (position.node, position.element, position.term) == (lie.node, lie.element, lie.term)
    assert position.instruction == lie.instruction
    return played
