"""Processes alone take a task from its bids to its settlement: nobody tells them what to do next."""

from collections.abc import Sequence
from typing import Any

import pytest
from role_market import OFFER, Town, gain, submitted

from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.roles.party.decisions import Mode
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier

pytestmark = pytest.mark.long

TURNS = 200


def live(town: Town, processes: Sequence[Process[Any]], task_id: bytes) -> list[LoggedDecision]:
    """Let processes take turns until the task is closed; if all wait, time passes."""
    registry, told = processes[0].role.market.registry, list[LoggedDecision]()
    for _ in range(TURNS):
        taken = [made for process in processes for made in process.turn()]
        told += taken
        if registry.task(task_id).status is Status.CLOSED:
            return told
        if all(made.result is not DecisionResult.DONE for made in taken):
            untils = [made.until for made in taken if made.until is not None]
            town.connection.wait_until(min(untils))
    raise AssertionError(f"the task is {registry.task(task_id).status.name} after {TURNS} turns: {told[-4:]}")


def test_an_honest_task_lives_by_processes_alone(town: Town) -> None:
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, submitter = submitted(town)
    told = live(town, [Process(verifier, next_of_verifier), Process(solver, next_of_solver)], task_id)
    state = submitter.market.registry.task(task_id)
    assert state.outcome is TaskOutcome.ACCEPTED
    assert gain(solver) == state.price
    assert gain(verifier, tickets=1) == 2 * submitter.market.registry.terms(task_id).verifier_fee
    done = [made.verb for made in told if made.result is DecisionResult.DONE]
    own = ("claim the seat", "post the profile", "bid", "reveal", "train", "post the verdict", "disclose")
    assert [verb for verb in done if verb in own] == [own[0], *own[1:5], own[0], *own[5:]]
    assert not [made for made in told if made.result in {DecisionResult.REFUSED, DecisionResult.FAILED}]


def test_who_watches_sends_nothing_and_says_what_it_would_do(town: Town) -> None:
    verifier = town.join(Verifier, "v")
    task_id, _ = submitted(town)
    process = Process(verifier, next_of_verifier, Mode.WATCH)
    town.connection.wait_for_block(town.connection.block_number() + 4)
    sent = len(verifier.wallet.receipts)
    (made,) = process.turn()
    assert (made.result, made.verb, made.task_id) == (DecisionResult.WITHHELD, "open claims", task_id)
    assert len(verifier.wallet.receipts) == sent


@pytest.mark.parametrize("kills", [0, *(pytest.param(kills, marks=pytest.mark.slow) for kills in range(1, 4))])
def test_a_process_that_is_killed_at_every_turn_loses_nothing(town: Town, kills: int) -> None:
    """Its memory is gone each time: the same key, chain and store are all that it has."""

    class Forgetful(Process[Any]):
        def turn(self) -> list[LoggedDecision]:
            self.role = town.join(type(self.role), names[type(self.role)])
            return super().turn()

    names = {Verifier: f"v{kills}", Solver: f"t{kills}"}
    verifier, solver = town.join(Verifier, names[Verifier]), town.join(Solver, names[Solver])
    task_id, _ = submitted(town, OFFER)
    live(town, [Forgetful(verifier, next_of_verifier), Forgetful(solver, next_of_solver)], task_id)
    assert verifier.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED
