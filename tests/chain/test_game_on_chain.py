"""Disputes on an EVM: the contract and `pol.dispute` agree on every position, and the honest side wins."""

from random import Random

import pytest
import toy_market
from toy_market import CLOCK, ETHER, ToyMarket

from pol.arithmetic.primitives import Words
from pol.chain.connection import Connection
from pol.chain.game import Side
from pol.chain.market import Status
from pol.chain.wallet import Reverted
from pol.dispute.evidence import SegmentTrace
from pol.dispute.hostile import BaselessChallenger, Lie, LyingTrace, draw_lie
from pol.dispute.moves import Open, Pick, ProveStep
from pol.dispute.players import Asserter, Challenger, ReplayAsserter, ReplayChallenger, SumAsserter
from pol.dispute.position import Kind, Level
from pol.dispute.sums import SumEvidence
from pol.graph.step_program import Component
from pol.roles.duel import Duel, MoveMade
from pol.verification.distance import UNEQUAL

MOVE_GAS, LAST_MOVE_GAS = 60_000, 200_000
"""Of a transaction in all; the last move also settles the market's side of the dispute."""
KINDS = ("gather", "matmul", "tanh", "gradient", "momentum", "update", "counter")


def play(toy: ToyMarket, dispute: int, asserter: Asserter, challenger: Challenger) -> list[MoveMade]:
    """Play to the end. Before every move each side checks the chain's position against that of `pol.dispute.rules`."""
    program = toy.honest.program
    sides = [
        Duel(toy.game, toy.wallets["verifier"], program, dispute, asserter),
        Duel(toy.game, toy.wallets["whistleblower"], program, dispute, challenger),
    ]
    moves: list[MoveMade] = []
    while toy.game.winner(dispute) is Side.NONE:
        for side in sides:
            made = side.advance()
            if made is None:
                continue
            moves.append(made)
            is_last = toy.game.winner(dispute) is not Side.NONE
            assert made.receipt["gasUsed"] <= (LAST_MOVE_GAS if is_last else MOVE_GAS), made.position.level.name
    return moves


@pytest.mark.parametrize("node", range(7), ids=KINDS)
def test_a_lie_in_any_kind_of_node_is_slashed(node: int) -> None:
    lies = []

    def lie(honest: SegmentTrace) -> LyingTrace:
        lies.append(draw_lie(honest, [node], Random(node)))
        return LyingTrace(honest, lies[0])

    toy = toy_market.at_verdict(Connection.embedded(), lie)
    liar = LyingTrace(toy.honest, lies[0])
    dispute = toy.challenge()
    moves = play(toy, dispute, ReplayAsserter(liar), ReplayChallenger(toy.honest))
    assert toy.game.winner(dispute) is Side.CHALLENGER
    assert toy.market.task(toy.task_id).status is Status.DRAWN
    assert toy.market.credit(toy.wallets["whistleblower"].address) > ETHER
    assert toy.market.credit(toy.wallets["verifier"].address) == 0
    last = moves[-1].position
    assert (last.level, last.node, last.instruction) == (Level.ONE_STEP, node, lies[0].instruction)
    (proved,) = toy.game.events("StepProved", id=dispute)
    assert proved["claimed"] != proved["computed"]


@pytest.mark.parametrize("element", [0, 4])
def test_whoever_defends_a_right_claim_with_a_wrong_trace_is_slashed(element: int) -> None:
    """Nothing reads the nodes with bounds and coordinates, so the state is right; element 4 is past the bound."""
    toy = toy_market.at_verdict(Connection.embedded())
    last_step = toy.honest.first_step + toy.honest.steps - 1
    liar = LyingTrace(toy.honest, Lie(last_step, 8, element, 0, 3, 5))
    dispute = toy.challenge()
    moves = play(toy, dispute, ReplayAsserter(liar), ReplayChallenger(toy.honest))
    assert toy.game.winner(dispute) is Side.CHALLENGER
    assert (moves[-1].position.node, moves[-1].position.element) == (8, element)


def test_a_state_that_its_own_trace_does_not_yield_is_slashed() -> None:
    """The liar has no last move: its proof does not open, and its clock runs out."""

    class Spoiler(SegmentTrace):
        def state(self, step: int) -> list[Words]:
            state = list(super().state(step))
            if step == self.first_step + self.steps:
                state[1] = state[1].copy()
                state[1].reshape(-1)[17] ^= 1
            return state

    def spoil(h: SegmentTrace) -> Spoiler:
        return Spoiler(h.program, h.constants, h.executor, h.state(h.first_step), h.first_step, h.steps)

    toy = toy_market.at_verdict(Connection.embedded(), spoil)
    dispute = toy.challenge()
    with pytest.raises(Reverted, match="WrongSlot"):
        play(toy, dispute, ReplayAsserter(spoil(toy.honest)), ReplayChallenger(toy.honest))
    standing = toy.game.standing(dispute, toy.honest.program)
    assert (standing.position.level, standing.position.element) == (Level.SLOT, 1)
    toy.connection.wait_until(toy.connection.now() + CLOCK)
    toy.game.timeout(toy.wallets["deployer"], dispute)
    assert toy.game.winner(dispute) is Side.CHALLENGER


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_baseless_challenger_loses_its_bond(seed: int) -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    dispute = toy.challenge()
    play(toy, dispute, ReplayAsserter(toy.honest), BaselessChallenger(Random(seed)))
    assert toy.game.winner(dispute) is Side.ASSERTER
    assert toy.market.task(toy.task_id).status is Status.VERDICT
    assert toy.market.credit(toy.wallets["whistleblower"].address) == 0


def test_honest_training_with_a_counter_is_accepted() -> None:
    """Its buffer is an integer that moves in every step."""
    toy = toy_market.at_verdict(Connection.embedded())
    assert toy.claim.references[1] == UNEQUAL
    (posted,) = toy.market.events("VerdictPosted")
    assert posted["accepted"]


@pytest.mark.parametrize("component", list(Component))
@pytest.mark.parametrize("kind", [Kind.DISTANCE, Kind.REFERENCE])
def test_an_honest_distance_stands(kind: Kind, component: Component) -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    honest, segment = toy.honest, toy.claim.segment
    start, end = honest.state(segment * toy_market.INTERVAL), honest.state((segment + 1) * toy_market.INTERVAL)
    sums = SumEvidence(honest.program, component, end, end if kind is Kind.DISTANCE else start)
    dispute = toy.challenge(kind, component)
    play(toy, dispute, SumAsserter(sums), BaselessChallenger(Random(component)))
    assert toy.game.winner(dispute) is Side.ASSERTER


def test_whoever_stops_moving_loses_by_its_clock() -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    anybody, connection = toy.wallets["deployer"], toy.connection
    dispute = toy.challenge()
    with pytest.raises(Reverted, match="NotExpired"):
        toy.game.timeout(anybody, dispute)
    standing = toy.game.standing(dispute, toy.honest.program)
    move = ReplayAsserter(toy.honest).answer(standing.position)
    toy.game.send(toy.wallets["verifier"], dispute, standing.position, move)
    connection.wait_until(connection.now() + CLOCK)
    standing = toy.game.standing(dispute, toy.honest.program)
    with pytest.raises(Reverted, match="OutOfTime"):
        toy.game.send(toy.wallets["whistleblower"], dispute, standing.position, Pick(0, standing.opened))
    toy.game.timeout(anybody, dispute)
    assert toy.game.winner(dispute) is Side.ASSERTER
    second = toy.challenge()
    connection.wait_until(connection.now() + CLOCK)
    toy.game.timeout(anybody, second)
    assert toy.game.winner(second) is Side.CHALLENGER


def test_illegal_moves_are_refused_and_change_nothing() -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    verifier, whistleblower = toy.wallets["verifier"], toy.wallets["whistleblower"]
    dispute = toy.challenge()
    asserter = ReplayAsserter(toy.honest)
    first = toy.game.standing(dispute, toy.honest.program).position
    move = asserter.answer(first)
    assert isinstance(move, Open)
    with pytest.raises(Reverted, match="NotOnTurn"):
        toy.game.send(whistleblower, dispute, first, move)
    with pytest.raises(Reverted, match="NotOnTurn"):
        toy.game.send(whistleblower, dispute, first, Pick(0, move.payload))
    with pytest.raises(Reverted):
        toy.game.send(verifier, dispute, first, Open(move.payload[:-32]))
    with pytest.raises(Reverted):
        toy.game.send(verifier, dispute, first, ProveStep(b"", b"", ()))
    toy.game.send(verifier, dispute, first, move)
    with pytest.raises(Reverted, match="StalePosition"):
        toy.game.send(whistleblower, dispute, first, Pick(0, move.payload))
    second = toy.game.standing(dispute, toy.honest.program).position
    with pytest.raises(Reverted):
        toy.game.send(whistleblower, dispute, second, Pick(99, move.payload))
    with pytest.raises(Reverted):
        toy.game.send(whistleblower, dispute, second, Pick(0, move.payload + b"\0"))
    assert toy.game.standing(dispute, toy.honest.program).moves == 1
    play(toy, dispute, asserter, BaselessChallenger(Random(1)))
    with pytest.raises(Reverted, match="Finished"):
        toy.game.send(verifier, dispute, first, move)
