"""A chain that halts for hours and goes on with its time far ahead: the sequencer of a rollup stood still.

Clocks and windows run meanwhile, and the first transaction after the restart may be anybody's. Nobody honest loses by a
halt that the terms survive (docs/spec/dispute.md, "A halted chain").
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_solver, next_of_submitter, next_of_verifier
from log_market import EXACT, Seer, honest, not_drawn
from role_market import Town, acts, captured, gain

from node_snapshots import order
from pol.chain.account.wallet import Reverted
from pol.chain.desks.task_registry import Status, Terms
from pol.chain.node.connection import Connection
from pol.chain.node.networks import ROLLUP_OUTAGE, outage_of
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.roles.party.decisions import Decision
from pol.roles.party.policy import PUBLIC_CHAIN
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

pytestmark = pytest.mark.long

OUTAGE = ROLLUP_OUTAGE
CAREFUL = replace(PUBLIC_CHAIN, outage=OUTAGE)
LEAST = replace(
    EXACT,
    bid_window=PUBLIC_CHAIN.min_seat_window,
    seat_window=PUBLIC_CHAIN.min_seat_window,
    training_window=PUBLIC_CHAIN.min_training_window,
    verification_window=PUBLIC_CHAIN.min_verification_window,
    watch_window=PUBLIC_CHAIN.min_watch_window,
    disclosure_window=PUBLIC_CHAIN.min_seat_window,
    challenge_window=PUBLIC_CHAIN.min_challenge_window,
    clock=PUBLIC_CHAIN.min_clock,
)
"""The shortest windows that the default policy accepts on a chain that never halts."""


@contextmanager
def halted(connection: Connection, seconds: int) -> Iterator[None]:
    """No block comes, and the first one afterwards is so much later; what was sent meanwhile is in it."""
    order(connection, "evm_setAutomine", False)
    try:
        yield
        order(connection, "evm_increaseTime", seconds)
        order(connection, "evm_mine")
    finally:
        order(connection, "evm_setAutomine", True)


def halt(connection: Connection, seconds: int) -> None:
    with halted(connection, seconds):
        pass


def disputed(town: Town, offer: Offer) -> tuple[Solver, Seer, int]:
    """A worthless objection to a true log: the solver is on turn, and nobody else has a clock that runs."""
    task_id = honest(town, offer)
    seer = town.join(Seer, "x")
    number = seer.baseless(task_id, not_drawn(seer, task_id)[0])
    return town.join(Solver, "t"), seer, number


@pytest.mark.parametrize("early", [30, 0], ids=["shorter", "longer"])
def test_a_halt_is_survived_to_the_last_second_of_the_clock(town: Town, early: int) -> None:
    """The first transaction after the restart claims a timeout; the last second before it would be too early."""
    solver, seer, number = disputed(town, EXACT)
    game = seer.market.objection_game
    left = game.deadline(number) - solver.connection.now()
    assert left > EXACT.clock - 60
    halt(town.connection, left - early)
    if early:
        with pytest.raises(Reverted, match="NotExpired"):
            game.timeout(seer.wallet, number)
        assert "move" in _verbs(solver, next_of_solver)
        assert game.winner(number) is Side.NONE
    else:
        game.timeout(seer.wallet, number)
        assert game.winner(number) is Side.CHALLENGER


def test_a_claim_and_a_move_that_wait_for_the_restart_end_in_the_move(town: Town) -> None:
    """Both are in the first block, the claim in front."""
    solver, seer, number = disputed(town, EXACT)
    game, task_id = seer.market.objection_game, seer.market.objections.dispute(number).task_id
    left = game.deadline(number) - solver.connection.now()
    with halted(town.connection, left - 60), solver.wallet.posting():
        data = "0x" + game.function("timeout", number).data.hex()
        fees = {"maxFeePerGas": hex(900 * 10**9), "maxPriorityFeePerGas": hex(90 * 10**9), "gas": hex(500_000)}
        rich = town.connection.web3.eth.accounts[1]
        claim = order(town.connection, "eth_sendTransaction", {"from": rich, "to": game.address, "data": data, **fees})
        assert "move" in _verbs_without_wait(solver, task_id)
        order(town.connection, "evm_increaseTime", left - 60)
        order(town.connection, "evm_mine")
    receipt = town.connection.web3.eth.get_transaction_receipt(claim)
    assert (receipt["status"], receipt["transactionIndex"]) == (0, 0)
    assert len(game.events("Moved", number=number)) == 1


def test_every_side_of_a_dispute_may_meet_a_halt(town: Town) -> None:
    """One for each side, of so long as the terms have more than the least; then the honest one wins."""
    solver, seer, number = disputed(town, LEAST.surviving(OUTAGE))
    game, honest_halts, false_halts = seer.market.objection_game, 0, 0
    parties: tuple[tuple[Any, Callable[..., Decision]], ...] = ((solver, next_of_solver), (seer, next_of_whistleblower))
    while game.winner(number) is Side.NONE:
        for party, decide in parties:
            halts = honest_halts if party is solver else false_halts
            if not halts:
                halt(town.connection, OUTAGE)
                with pytest.raises(Reverted, match="NotExpired"):
                    game.timeout(town.join(Submitter, "s").wallet, number)
                honest_halts, false_halts = honest_halts + (party is solver), false_halts + (party is seer)
            _verbs(party, decide)
    assert (honest_halts, false_halts) == (1, 1)
    assert game.winner(number) is Side.ASSERTER


def test_nobody_honest_loses_by_a_halt_in_any_stage_of_a_task(town: Town) -> None:
    """Whatever stage begins, the chain halts at once, before anybody has done what is due in it."""
    offer = LEAST.surviving(OUTAGE)
    submitter = town.join(Submitter, "s")
    task_id = submitter.submit(captured(), replace(offer, steps=6, interval=3))
    roles: list[tuple[Any, Callable[..., Decision]]] = [
        (submitter, next_of_submitter),
        (town.join(Solver, "t", CAREFUL), next_of_solver),
        (town.join(Verifier, "v", CAREFUL), next_of_verifier),
        (town.join(Whistleblower, "w", CAREFUL), next_of_whistleblower),
    ]
    processes: list[Process[Any]] = [Process(role, decide) for role, decide in roles]
    before = {type(role): gain(role) for role, _ in roles}
    market, seen = submitter.market, set[tuple[Status, int]]()
    for _ in range(100):
        taken = []
        for process in processes:
            task = market.registry.task(task_id)
            if (task.status, task.deadline) not in seen:
                seen.add((task.status, task.deadline))
                halt(town.connection, OUTAGE)
            taken += [made for made in process.turn() if made.task_id == task_id]
        if market.registry.task(task_id).status is Status.CLOSED:
            break
        untils = [made.until for made in taken if made.until is not None and made.until >= town.connection.now()]
        if all(made.result is not DecisionResult.DONE for made in taken) and untils:
            town.connection.wait_until(min(untils))
    assert market.registry.task(task_id).status is Status.CLOSED
    assert {status for status, _ in seen} >= set(Status) - {Status.NONE, Status.PROFILING, Status.CLOSED}
    assert market.registry.events("SolverGone", taskId=task_id) == []
    assert market.auction.events("BidForfeited") == []
    assert market.settlement.events("SeatDefaulted", taskId=task_id) == []
    gains = {type(role): gain(role) - before[type(role)] for role, _ in roles}
    assert gains[Solver] > 0
    assert gains[Verifier] > 0
    assert gains[Whistleblower] == 0


@pytest.mark.parametrize("field", ["bid_window", "training_window", "disclosure_window", "challenge_window", "clock"])
def test_terms_that_a_halt_would_outlast_are_refused(town: Town, field: str) -> None:
    terms = _terms(town, LEAST.surviving(OUTAGE))
    CAREFUL.require(terms)
    PUBLIC_CHAIN.require(_terms(town, LEAST))
    short = replace(terms, **{field: getattr(terms, field) - 1})
    with pytest.raises(ProtocolError, match=rf"besides a halt of the chain of {OUTAGE} s.*--outage"):
        CAREFUL.require(short)
    PUBLIC_CHAIN.require(short)


def test_answers_to_demands_survive_a_halt_too() -> None:
    CAREFUL.require_answer_window(PUBLIC_CHAIN.min_answer_window + OUTAGE)
    with pytest.raises(ProtocolError, match="window for answers"):
        CAREFUL.require_answer_window(PUBLIC_CHAIN.min_answer_window + OUTAGE - 1)


def test_rollups_are_known() -> None:
    assert [outage_of(chain) for chain in (1, 10, 8453, 42161, 31337)] == [0, OUTAGE, OUTAGE, OUTAGE, 0]


def _terms(town: Town, offer: Offer) -> Terms:
    submitter = town.join(Submitter, "s")
    return submitter.market.registry.terms(submitter.submit(captured(), replace(offer, steps=6, interval=3)))


def _verbs(party: Any, decide: Callable[..., Decision]) -> list[str]:
    return [made.verb for made in Process(party, decide).turn() if made.result is DecisionResult.DONE]


def _verbs_without_wait(solver: Solver, task_id: bytes) -> list[str]:
    decision = acts(next_of_solver(solver, task_id))
    decision.act()
    return [decision.verb]
