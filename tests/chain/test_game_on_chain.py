"""Disputes on an EVM: the contract and `pol.dispute` agree on every position, and the honest side wins."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

import toy_market
from node_snapshots import unchanged
from pol.arithmetic.primitives import Words
from pol.chain.account.wallet import Reverted
from pol.chain.court.dispute_game import resignation
from pol.chain.desks.task_registry import Status
from pol.demo.lying_players import Lie, LyingTrace, draw_lie
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.moves import Answer, Describe, DescribeSlot, ProveSlot, ProveStep
from pol.dispute.one_step import disputed
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import Position, Side
from pol.errors import ProtocolError
from pol.roles.party.dispute_session import DisputeSession, MoveMade
from shared_chain import SharedChain
from toy_market import ETHER, Ground, ToyMarket

pytestmark = pytest.mark.long

MOVE_GAS, DESCRIBE_GAS, LAST_GAS = 60_000, 80_000, 200_000
"""Of a transaction in all: a move, one that shows a descriptor and the facts that it belongs to, and the last one, in
which the market settles its side of the dispute: a stake is split, and another seat opened."""
KINDS = ("gather", "matmul", "tanh", "gradient", "momentum", "update", "counter")


@pytest.fixture(scope="module")
def settled(chain: SharedChain) -> Iterator[Ground]:
    with toy_market.lent(chain) as ground:
        yield ground


@pytest.fixture(scope="module")
def honest(settled: Ground) -> ToyMarket:
    return toy_market.at_verdict(settled)


@pytest.fixture
def ground(settled: Ground, honest: ToyMarket) -> Iterator[Ground]:
    with unchanged(settled.connection):
        yield settled.again()


@pytest.fixture
def toy(ground: Ground, honest: ToyMarket) -> ToyMarket:
    """An honest verdict that can be challenged."""
    return replace(honest, market=ground.market, game=ground.market.game)


def sessions(toy: ToyMarket, dispute: int, asserter: Player, challenger: Player) -> list[DisputeSession]:
    """Both sides."""
    players = {"verifier": asserter, "whistleblower": challenger}
    return [DisputeSession(toy.game, toy.wallets[name], toy.honest.program, dispute, p) for name, p in players.items()]


def play(toy: ToyMarket, dispute: int, asserter: Player, challenger: Player) -> list[MoveMade]:
    """Play to the end. Before every move each side checks the chain's head against that of `pol.dispute.rules`."""
    moves: list[MoveMade] = []
    while toy.game.winner(dispute) is Side.NONE:
        for side in sessions(toy, dispute, asserter, challenger):
            made = side.advance()
            if made is None:
                continue
            moves.append(made)
            limit = DESCRIBE_GAS if isinstance(made.move, Describe | DescribeSlot) else MOVE_GAS
            if toy.game.winner(dispute) is not Side.NONE:
                limit = LAST_GAS
            assert made.receipt is not None
            assert made.receipt["gasUsed"] <= limit, made.position.level.name
    return moves


def until(toy: ToyMarket, dispute: int, asserter: Player, challenger: Player, proof: type[object]) -> Position:
    """Play up to the proof, which isn't sent."""
    while True:
        position = toy.game.standing(dispute, toy.honest.program).position
        player = asserter if position.turn is Side.ASSERTER else challenger
        if isinstance(player.move(position), proof):
            return position
        asserters, challengers = sessions(toy, dispute, asserter, challenger)
        assert asserters.advance() or challengers.advance()


def proof_of(made: MoveMade) -> ProveStep:
    """The proof that decided, or the one that was left to the side that gave up."""
    move = made.move or made.upheld
    assert isinstance(move, ProveStep)
    return move


class Spoiler(SegmentTrace):
    """Executes honestly and then claims a state that its own trace doesn't yield."""

    def _advance(self, state: Sequence[Words], step: int) -> list[Words]:
        after = super()._advance(state, step)
        if step == self.first_step + self.steps - 1:
            after[1] = after[1].copy()
            after[1].reshape(-1)[17] ^= 1
        return after


def spoil(h: SegmentTrace) -> Spoiler:
    return Spoiler(h.program, h.constants, h.executor, h.state(h.first_step), h.first_step, h.steps)


def baseless(toy: ToyMarket, seed: int = 1) -> ReplayPlayer:
    return ReplayPlayer(LyingTrace(toy.honest, draw_lie(toy.honest, range(7), Random(seed))))


@pytest.mark.parametrize("node", range(7), ids=KINDS)
def test_a_lie_in_any_kind_of_node_is_slashed(ground: Ground, node: int) -> None:
    lies = []

    def lie(honest: SegmentTrace) -> LyingTrace:
        lies.append(draw_lie(honest, [node], Random(node)))
        return LyingTrace(honest, lies[0])

    toy = toy_market.at_verdict(ground, lie)
    liar = ReplayPlayer(LyingTrace(toy.honest, lies[0]))
    dispute = toy.challenge(ReplayPlayer(toy.honest))
    moves = play(toy, dispute, liar, ReplayPlayer(toy.honest))
    assert toy.game.winner(dispute) is Side.CHALLENGER
    assert toy.market.registry.task(toy.task_id).status is Status.CONTESTED
    toy.market.challenges.settle(toy.wallets["deployer"], dispute)
    assert toy.market.registry.task(toy.task_id).status is Status.COMMITTED
    assert (toy.gain("whistleblower"), toy.gain("verifier")) == (ETHER, -2 * ETHER)
    last, proof = moves[-1].position, proof_of(moves[-1])
    found = disputed(last, proof.index)
    assert (found.facts.number, found.element) == (node, lies[0].element)
    assert found.begin <= lies[0].term < found.end
    assert found.is_chunk or found.instruction == lies[0].instruction
    if moves[-1].move is not None:
        (refuted,) = toy.game.events("Refuted", number=dispute)
        assert refuted["detail"][13:17] != refuted["detail"][17:21]


@pytest.mark.parametrize("element", [0, 4])
def test_whoever_defends_a_right_claim_with_a_wrong_trace_is_slashed(toy: ToyMarket, element: int) -> None:
    """Nothing reads the nodes with bounds and coordinates, so the state is right; element 4 is past the bound.

    The challenger is wrong too, but only after the trace, and the first difference decides.
    """
    last_step = toy.honest.first_step + toy.honest.steps - 1
    wrong = LyingTrace(toy.honest, Lie(last_step, 8, element, 0, 3, 5))
    assert wrong.state_root(last_step + 1) == toy.honest.state_root(last_step + 1)
    challenger = ReplayPlayer(spoil(toy.honest))
    dispute = toy.challenge(challenger)
    moves = play(toy, dispute, ReplayPlayer(wrong), challenger)
    assert toy.game.winner(dispute) is Side.CHALLENGER
    found = disputed(moves[-1].position, proof_of(moves[-1]).index)
    assert (found.facts.number, found.element, found.instruction) == (8, element, 3)


def test_a_challenger_whose_state_its_own_trace_does_not_yield_gives_up(toy: ToyMarket) -> None:
    challenger = ReplayPlayer(spoil(toy.honest))
    dispute = toy.challenge(challenger)
    moves = play(toy, dispute, ReplayPlayer(toy.honest), challenger)
    assert toy.game.winner(dispute) is Side.ASSERTER
    assert moves[-1].move is None
    assert isinstance(moves[-1].upheld, ProveSlot)


def test_a_move_that_has_been_made_is_not_made_again(toy: ToyMarket) -> None:
    """The receipt got lost: sending again tells that the dispute stands just where the move leads to."""
    challenger, asserter = baseless(toy), ReplayPlayer(toy.honest)
    dispute = toy.challenge(challenger)
    first = toy.game.standing(dispute, toy.honest.program).position
    move = asserter.move(first)
    assert isinstance(move, Answer)
    with pytest.raises(Reverted):
        toy.game.send(toy.wallets["verifier"], dispute, first, Answer(move.index, move.payload[:-32]))
    assert toy.game.send(toy.wallets["verifier"], dispute, first, move) is not None
    assert toy.game.send(toy.wallets["verifier"], dispute, first, move) is None
    assert len(toy.game.record(dispute, toy.honest.program).moves) == 1


def liar_at_its_proof(ground: Ground) -> tuple[ToyMarket, int, Position, ProveStep]:
    """A dispute about a lying verdict in which the whistleblower is about to prove."""
    lie = Lie(0, 4, 3, 0, 0, 20)

    def lying(honest: SegmentTrace) -> LyingTrace:
        return LyingTrace(honest, replace(lie, step=honest.first_step + 2))

    toy = toy_market.at_verdict(ground, lying)
    asserter, challenger = ReplayPlayer(lying(toy.honest)), ReplayPlayer(toy.honest)
    dispute = toy.challenge(challenger)
    position = until(toy, dispute, asserter, challenger, ProveStep)
    assert position.turn is Side.CHALLENGER
    proof = challenger.move(position)
    assert isinstance(proof, ProveStep)
    return toy, dispute, position, proof


def test_anybody_may_help_with_a_proof(ground: Ground) -> None:
    toy, dispute, position, proof = liar_at_its_proof(ground)
    stranger = toy.wallets["deployer"]
    with pytest.raises(ProtocolError, match="only a proof"):
        toy.game.help(stranger, dispute, position, Answer(0, b""))
    with pytest.raises(Reverted, match="WrongHead"):
        toy.game.send(stranger, dispute, position, proof)
    assert toy.game.help(stranger, dispute, position, proof) is not None
    assert toy.game.winner(dispute) is Side.CHALLENGER
    assert toy.game.help(stranger, dispute, position, proof) is None


def test_anybody_may_relay_what_a_side_has_signed(toy: ToyMarket) -> None:
    challenger, asserter = baseless(toy), ReplayPlayer(toy.honest)
    dispute = toy.challenge(challenger)
    verifier, whistleblower, stranger = (toy.wallets[n] for n in ("verifier", "whistleblower", "deployer"))
    first = toy.game.standing(dispute, toy.honest.program).position
    content = encode(dispute, first, asserter.move(first))
    for signer in (whistleblower, stranger):
        with pytest.raises(Reverted):
            toy.game.relay(stranger, content, toy.game.sign(signer, first, content))
    signature = toy.game.sign(verifier, first, content)
    with pytest.raises(Reverted):
        toy.game.relay(stranger, content[:-1] + bytes([content[-1] ^ 1]), signature)
    toy.game.relay(stranger, content, signature)
    second = toy.game.standing(dispute, toy.honest.program).position
    assert second.turn is Side.CHALLENGER
    with pytest.raises(Reverted):
        toy.game.relay(stranger, content, signature)
    giving_up = resignation(dispute, second)
    toy.game.relay(stranger, giving_up, toy.game.sign(whistleblower, second, giving_up))
    assert toy.game.winner(dispute) is Side.ASSERTER
