"""Disputes on an EVM: the contract and `pol.dispute` agree on every position, and the honest side wins."""

from random import Random

import pytest
import toy_market
from toy_market import CLOCK, ETHER, ToyMarket

from pol.chain.connection import Connection
from pol.chain.game import Side
from pol.chain.market import Status
from pol.chain.wallet import Reverted
from pol.dispute.evidence import SegmentTrace
from pol.dispute.hostile import BaselessChallenger, LyingTrace, draw_lie
from pol.dispute.moves import Open, Pick, ProveStep
from pol.dispute.players import Asserter, Challenger, ReplayAsserter, ReplayChallenger, SumAsserter
from pol.dispute.position import Kind, Level
from pol.dispute.sums import SumEvidence
from pol.roles.duel import Duel, MoveMade

MOVE_GAS, ONE_STEP_GAS = 60_000, 200_000


def play(toy: ToyMarket, dispute: int, asserter: Asserter, challenger: Challenger) -> list[MoveMade]:
    program = toy.honest.program
    sides = [
        Duel(toy.game, toy.wallets["verifier"], program, dispute, asserter),
        Duel(toy.game, toy.wallets["whistleblower"], program, dispute, challenger),
    ]
    moves: list[MoveMade] = []
    while toy.game.winner(dispute) is Side.NONE:
        for side in sides:
            made = side.advance()
            if made is not None:
                moves.append(made)
    return moves


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_lying_verifier_is_slashed(seed: int) -> None:
    lies = []

    def lie(honest: SegmentTrace) -> LyingTrace:
        lies.append(draw_lie(honest, range(6), Random(seed)))
        return LyingTrace(honest, lies[0])

    toy = toy_market.at_verdict(Connection.embedded(), lie)
    liar = LyingTrace(toy.honest, lies[0])
    dispute = toy.challenge()
    moves = play(toy, dispute, ReplayAsserter(liar), ReplayChallenger(toy.honest))
    assert toy.game.winner(dispute) is Side.CHALLENGER
    assert toy.market.task(toy.task_id).status is Status.DRAWN
    assert toy.market.credit(toy.wallets["whistleblower"].address) > ETHER
    assert toy.market.credit(toy.wallets["verifier"].address) == 0
    gas = {move.position.level: move.receipt["gasUsed"] for move in moves}
    proof = gas.pop(Level.ONE_STEP)
    print({level.name: used for level, used in gas.items()}, proof)
    assert proof <= ONE_STEP_GAS
    assert max(gas.values()) <= MOVE_GAS
    (proved,) = toy.game.events("StepProved", id=dispute)
    assert proved["claimed"] != proved["computed"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_baseless_challenger_loses_its_bond(seed: int) -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    dispute = toy.challenge()
    play(toy, dispute, ReplayAsserter(toy.honest), BaselessChallenger(Random(seed)))
    assert toy.game.winner(dispute) is Side.ASSERTER
    assert toy.market.task(toy.task_id).status is Status.VERDICT
    assert toy.market.credit(toy.wallets["whistleblower"].address) == 0


@pytest.mark.parametrize(("kind", "component"), [(Kind.DISTANCE, 1), (Kind.REFERENCE, 1), (Kind.REFERENCE, 3)])
def test_an_honest_distance_stands(kind: Kind, component: int) -> None:
    toy = toy_market.at_verdict(Connection.embedded())
    honest, segment = toy.honest, toy.claim.segment
    start, end = honest.state(segment * toy_market.INTERVAL), honest.state((segment + 1) * toy_market.INTERVAL)
    sums = SumEvidence(honest.program, component, end, end if kind is Kind.DISTANCE else start)
    dispute = toy.challenge(kind, component)
    play(toy, dispute, SumAsserter(sums), BaselessChallenger(Random(5)))
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
