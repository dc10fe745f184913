"""No party stakes on what this machine can't do in time, or begins what would keep it from what it owes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from odd_tasks import EXACT, Desk
from role_market import (
    OFTEN,
    WATCHED,
    Town,
    acts,
    captured,
    disclosed,
    done,
    open_claims,
    profiled,
    seated,
    seated_with_duty,
    submitted,
    until_proof,
    waits,
)
from test_watching import AT_ANY_PRICE

from pol.arithmetic.primitives import Words
from pol.chain.deployment_rules import GameRules
from pol.chain.desks.task_registry import Status
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Seen
from pol.roles.party import machine
from pol.roles.party.decisions import Action, Mode
from pol.roles.process import work_time
from pol.roles.process.obligations import next_due
from pol.roles.process.party_process import Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.task.published_task import held_bytes
from pol.training.task.task_document import LoadedTask

pytestmark = pytest.mark.long

MARKET_RULES, JOINED = OFTEN, WATCHED
HOUR = 3600
GAME_RULES = GRACES = GameRules(replay_grace=round(1.9 * HOUR), move_grace=round(0.46 * HOUR))


def taking(seconds: float) -> Callable[[], float]:
    """A timer by which every step takes so long."""
    readings = iter(range(10**6))
    return lambda: next(readings) * seconds


@pytest.mark.parametrize(
    ("field", "step"),
    [
        ("verificationWindow", 5 * HOUR),
        ("clock", 1.1 * HOUR),
        ("clock", 0.7 * HOUR),
        ("replayGrace", 0.55 * HOUR),
        ("moveGrace", 0.46 * HOUR),
        (None, 0.4 * HOUR),
    ],
    ids=["window", "clock", "all moves", "replay", "move", "fits"],
)
def test_a_seat_whose_duty_takes_too_long_is_left_alone(
    exact: bytes, town: Town, field: str | None, step: float
) -> None:
    """A segment of three steps: half of a day's window is 12 h, half of the clock 3 h.

    All moves take five steps: the segment, the disputed one, and that again for one node.
    """
    verifier = town.join(Verifier, "v")
    verifier.times.timer = taking(step)
    open_claims(verifier, exact)
    decision = next_of_verifier(verifier, exact)
    if field is None:
        assert acts(decision).verb == "claim the seat"
        return
    assert f"the work for the {field} of" in waits(decision)
    with pytest.raises(ProtocolError, match="leave the task alone"):
        verifier.claim_seat(exact)


@pytest.mark.parametrize(("step", "fits"), [(0.2 * HOUR, True), (0.4 * HOUR, False)])
def test_no_seat_is_taken_whose_dispute_would_starve_those_of_other_tasks(
    exact: bytes, town: Town, step: float, fits: bool
) -> None:
    """Whoever disputes everything at once wins where the moves about all tasks don't fit into one clock."""
    verifier = town.join(Verifier, "v")
    seated_with_duty(verifier, exact, forced=False)
    verifier.verify(exact)
    other, verifier = until_proof(town, EXACT), town.join(Verifier, "v")
    verifier.times.paces = dict.fromkeys((exact, other), step)
    open_claims(verifier, other)
    decision = next_of_verifier(verifier, other)
    if fits:
        assert acts(decision).verb == "claim the seat"
        return
    assert "1 other tasks of this party may be disputed at the same time" in waits(decision)
    with pytest.raises(ProtocolError, match="at the same time"):
        verifier.claim_seat(other)


def test_other_tasks_are_read_once_for_the_time_that_they_may_take(
    exact: bytes, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of tasks that don't fit into memory together; a seat is looked at in every turn."""
    verifier = town.join(Verifier, "v")
    seated_with_duty(verifier, exact, forced=False)
    verifier.verify(exact)
    other, role = until_proof(town, EXACT), town.join(Verifier, "v")
    open_claims(role, other)
    before = next_of_verifier(role, other)
    role.forget(exact)  # it leaves memory
    read = list[bytes]()
    load = role.task

    def task(task_id: bytes) -> LoadedTask:
        read.append(task_id)
        return load(task_id)

    monkeypatch.setattr(role, "task", task)
    after = next_of_verifier(role, other)
    assert acts(after).verb == acts(before).verb == "claim the seat"
    assert exact not in read


def test_of_a_task_that_has_left_memory_no_needs_stay(exact: bytes, town: Town) -> None:
    verifier, other = town.join(Verifier, "v"), submitted(town, EXACT)[0]
    verifier.times.needs(exact, verifier.task(exact), 4)
    verifier.policy = replace(verifier.policy, max_task_bytes=held_bytes(verifier.task(exact).program))
    third = submitted(town, EXACT)[0]
    verifier.times.needs(other, verifier.task(other), 4)
    verifier.times.needs(third, verifier.task(third), 4)
    assert {task_id for task_id, _ in verifier.times._needs} == {other, third}


def test_a_step_is_timed_as_disputes_execute_it(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a look at each node, which takes longer: up to a third for large nodes, twice for small ones."""
    task_id, party = submitted(town, EXACT)[0], town.join(Verifier, "v")
    now = 0.0

    def watch(self: CpuExecutor, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        nonlocal now
        now += 3
        return list(state)

    monkeypatch.setattr(CpuExecutor, "watch", watch)
    party.times.timer = lambda: now
    assert work_time.seconds_for(party, task_id, 2, 100) == 6


@pytest.mark.parametrize(("step", "fits"), [(0.2 * HOUR, True), (0.4 * HOUR, False)])
def test_nobody_bids_for_more_logs_than_can_be_defended_at_once(
    exact: bytes, town: Town, step: float, fits: bool
) -> None:
    solver = town.join(Solver, "t")
    # The module's task has a log of this solver.
    second, _ = submitted(town, EXACT)
    solver.times.timer, solver.times.paces = taking(1), dict.fromkeys((exact, second), step)
    decision = next_of_solver(solver, second)
    if fits:
        assert acts(decision).verb == "bid"
        return
    assert "1 other tasks of this party may be disputed at the same time" in waits(decision)


def test_a_profile_that_takes_too_long_is_left_alone(town: Town) -> None:
    """18 steps: two segments, each with two reruns."""
    verifier = town.join(Verifier, "v")
    task_id, _ = submitted(town)
    verifier.times.timer = taking(0.7 * HOUR)
    open_claims(verifier, task_id)
    assert "about 45360 s" in waits(next_of_verifier(verifier, task_id))


def test_what_no_machine_does_in_time_is_not_even_timed(
    exact: bytes, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of a hostile task may take days."""
    verifier = town.join(Verifier, "v")
    monkeypatch.setattr(machine, "FASTEST", 1)
    verifier.times.timer = lambda: pytest.fail("it was timed")
    open_claims(verifier, exact)
    assert "the work for the verificationWindow of" in waits(next_of_verifier(verifier, exact))


def test_a_step_is_timed_once_and_a_long_one_isnt_repeated() -> None:
    readings = iter([0.0, 5.0, 10.0, 10.5, 20.0, 20.25])
    runs = list[int]()
    assert machine.time_work(lambda: runs.append(1), lambda: next(readings)) == 5.0
    assert machine.time_work(lambda: runs.append(1), lambda: next(readings)) == 0.25
    assert len(runs) == 3


def test_a_measurement_waits_until_a_disclosure_is_made(exact: bytes, town: Town) -> None:
    """The watch ends in 20 minutes, the disclosure is due in 80; a stranger's profile takes two hours."""
    verifier = town.join(Verifier, "v")
    seated_with_duty(verifier, exact, forced=False)
    verifier.verify(exact)
    verifier.open_watch(exact)
    verdict = verifier.market.verdicts.verdict(exact)
    town.connection.wait_until(verdict.watch_until - 1200)
    other, _ = submitted(town)
    verifier.times.timer = taking(400)
    verifier.times.paces[exact] = 400
    open_claims(verifier, other)
    process = Process(verifier, next_of_verifier)
    due = verdict.watch_until + verifier.market.registry.terms(exact).disclosure_window
    assert next_due(verifier, other) == due
    assert f"may owe something about another task by second {due}" in waits(next_of_verifier(verifier, other))
    assert done(process.turn()) == []
    town.connection.wait_until(verdict.watch_until)
    assert done(process.turn()) == ["disclose"]
    # Somebody may challenge it now, and its clock of six hours leaves time enough.
    assert done(process.turn()) == ["claim the seat"]


def test_what_was_decided_is_looked_at_again_before_it_is_begun(exact: bytes, town: Town) -> None:
    """Two claims of one turn would end in time; what the first one takes leaves too little for the second."""
    verifier = town.join(Verifier, "v")
    seated_with_duty(verifier, exact, forced=False)
    verifier.verify(exact)
    verifier.open_watch(exact)
    others = [submitted(town)[0], submitted(town)[0]]
    for other in others:
        open_claims(verifier, other)
    due = next_due(verifier, others[0])
    assert due is not None
    verifier.times.timer = taking(400)
    _, second = (acts(next_of_verifier(verifier, other)) for other in others)
    town.connection.wait_until(due - 2 * HOUR)
    with pytest.raises(ProtocolError, match="another task"):
        second.act()


def test_what_a_party_owes_and_by_when(exact: bytes, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier, solver, watcher = town.join(Verifier, "v"), town.join(Solver, "t"), town.join(Whistleblower, "w")
    registry, nothing = verifier.market.registry, bytes(32)
    terms = registry.terms(exact)
    # Somebody may object to the solver's log at any time, or demand data of it.
    found = [next_due(role, nothing) for role in (verifier, solver, watcher)]
    assert found == [None, town.connection.now() + terms.clock, None]
    solver = town.join(Solver, "t")
    monkeypatch.setattr(solver.market.demands, "window", lambda: terms.clock // 2)
    assert next_due(solver, nothing) == town.connection.now() + terms.clock // 2
    verifier.claim_seat(exact)
    # Whoever has the seat decided begins the time of its duty, which takes half of it at most.
    assert next_due(verifier, nothing) == town.connection.now() + terms.verification_window // 2
    assert verifier.take_seat(exact)
    assert next_due(verifier, nothing) == registry.task(exact).deadline - terms.verification_window // 2
    assert next_due(verifier, exact) is None
    verifier.verify(exact)
    assert next_due(verifier, nothing) == town.connection.now() + terms.watch_window + terms.disclosure_window
    disclosed(verifier, exact)
    assert registry.task(exact).status is Status.CONTESTED
    assert next_due(verifier, nothing) == town.connection.now() + terms.clock
    assert next_due(watcher, nothing) is None


def test_a_bid_is_revealed_and_a_profile_defended_before_anything_long(town: Town) -> None:
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "u")
    task_id, _ = submitted(town)
    terms = verifier.market.registry.terms(task_id)
    seated(verifier, task_id)
    verifier.profile(task_id)
    assert next_due(verifier, bytes(32)) == town.connection.now() + terms.clock
    verifier.connection.wait_until(verifier.market.profiles.standing(task_id).deadline)
    verifier.market.profiles.conclude(verifier.wallet, task_id)
    solver.bid(task_id)
    round_id = solver.market.auction.last_round(solver.market.registry.address, task_id)
    assert next_due(solver, bytes(32)) == solver.market.auction.standing(round_id).reveal_until
    solver.reveal(task_id)
    # Whoever has the task awarded now begins the time of the training, which takes two thirds of it at most.
    assert next_due(solver, bytes(32)) == town.connection.now() + terms.training_window // 3
    solver.market.registry.award(solver.wallet, task_id)
    latest = solver.market.registry.task(task_id).deadline - terms.training_window * 2 // 3
    assert next_due(solver, bytes(32)) == latest
    solver.connection.wait_until(latest + HOUR)
    assert next_due(solver, bytes(32)) == town.connection.now()


def test_no_bid_for_a_profile_that_cannot_be_measured_again_in_time(town: Town) -> None:
    """Bids are taken for an hour, and the 18 steps take two."""
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, _ = submitted(town)
    profiled(verifier, task_id)
    solver.times.timer = taking(400)
    assert "measuring the profile again takes this machine about 7200 s" in waits(next_of_solver(solver, task_id))


def test_no_bid_that_could_not_be_revealed_or_would_pay_nothing(town: Town) -> None:
    """Each cost a sixteenth of the stake: a score above the maximum price, and a rate that no training has shown."""
    solver, desk = town.join(Solver, "new"), Desk(town)
    terms = desk.terms(captured(), exact=True)
    fast = replace(terms, work_units=solver.market.auction.read("entryWork") + 1)
    with pytest.raises(ProtocolError, match="win smaller or slower tasks first"):
        solver.require_bid(fast)
    dear = replace(terms, second_price=-(-terms.maximum_price * 4 // (5 * terms.training_window)))
    solver.require_bid(replace(dear, second_price=dear.second_price - 1))
    task_id, before = desk.submit(dear), solver.market.vault.balances(solver.wallet.address)
    with pytest.raises(ProtocolError, match="leaves nothing of the maximum price"):
        solver.bid(task_id)
    assert "leaves nothing of the maximum price" in waits(next_of_solver(solver, task_id))
    assert solver.market.vault.balances(solver.wallet.address) == before


def test_a_whistleblower_begins_no_look_that_ends_too_late(exact: bytes, town: Town) -> None:
    """Three steps twice, each of five hours; the verdict may be challenged for a day."""
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    watcher.strategy = AT_ANY_PRICE
    seated(verifier, exact)
    verifier.verify(exact)
    disclosed(verifier, exact)
    watcher.times.timer = taking(5 * HOUR)
    assert "examining twice takes this machine about 108000 s" in waits(next_of_whistleblower(watcher, exact))
    again = town.join(Whistleblower, "w")
    again.strategy = AT_ANY_PRICE
    decision = next_of_whistleblower(again, exact)
    while isinstance(decision, Action):
        # It looks at the whole log, too, one segment at a time.
        assert decision.mode is Mode.WATCH
        decision.act()
        decision = next_of_whistleblower(again, exact)
    assert "replayed the same" in decision.why


def test_an_error_is_committed_to_before_a_long_look(exact: bytes, town: Town) -> None:
    """Commitments are taken in the last minute of the watch."""
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    seated_with_duty(verifier, exact, forced=True)
    verifier.verify(exact)
    verifier.open_watch(exact)
    assert next_due(watcher, bytes(32)) is None
    assert "at the end of the watch" in waits(next_of_whistleblower(watcher, exact))
    assert next_due(watcher, bytes(32)) == watcher.market.verdicts.verdict(exact).watch_until


def test_work_that_the_terms_misstate_is_refused(town: Town) -> None:
    """By it the price is computed, and who looks estimates what a look costs."""
    desk = Desk(town)
    terms = desk.terms(captured(), exact=True)
    task_id = desk.submit(replace(terms, work_units=terms.work_units + 1))
    with pytest.raises(ProtocolError, match="its prices are for other work"):
        town.join(Verifier, "v").task(task_id)
