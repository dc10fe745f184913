"""A solver that serves its accomplice alone: whoever else is drawn says so, and nothing is accepted unseen."""

import shutil
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import pytest
from log_market import Seer
from role_market import Town, acts, disclosed, done, open_claims, seated, settle, waits

from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.errors import OperationalError
from pol.execution.executor import Executor
from pol.roles.party.data_availability import answer_demands, demand_state, expire_demands, missing_states
from pol.roles.party.decisions import Decision, Wait
from pol.roles.party.policy import MINUTE
from pol.roles.process.obligations import reading_seconds
from pol.roles.process.party_process import Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import fulfill, next_of_solver
from pol.roles.verifier.verifier import LOOKS, Verifier
from pol.roles.verifier.verifier_decisions import PARTS, next_of_verifier
from pol.roles.whistleblower.objector import FalseSegment
from pol.training.storage.http_files import seconds_left
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_document import LoadedTask


@dataclass
class Unserved:
    """A trained task: solver and accomplice read its store, two honest verifiers another one that lacks the states."""

    task_id: bytes
    town: Town
    solver: Solver
    honest: tuple[Verifier, Verifier]
    accomplice: Verifier
    hidden: list[Path]

    @property
    def window(self) -> int:
        return self.solver.market.registry.terms(self.task_id).verification_window

    def wait(self, left: float) -> None:
        """Wait until so much of the window is left, in windows."""
        deadline = self.solver.market.registry.task(self.task_id).deadline
        self.solver.connection.wait_until(deadline - int(left * self.window))

    def sit(self, verifier: Verifier, looks: int = LOOKS) -> None:
        """Sit, look, and get a leaf that it demands and no state."""
        seated(verifier, self.task_id)
        verifier.duty(self.task_id)
        for _ in range(looks):
            with pytest.raises(OperationalError):
                verifier.verify(self.task_id)

    def wait_in_vain(self, verifier: Verifier) -> None:
        """As `sit`, until the last part of the window, in which it says that it isn't served."""
        self.sit(verifier)
        assert done(Process(self.solver, next_of_solver).turn()) == ["show data"]
        self.wait(1 / PARTS)

    def verb(self, verifier: Verifier) -> str:
        """What a verifier does next."""
        return acts(next_of_verifier(verifier, self.task_id)).verb

    def serve(self) -> None:
        """The states are there."""
        for path in self.hidden:
            path.with_suffix(".hidden").rename(path)

    def audit(self) -> list[str]:
        """What an auditor recomputes, and finds right."""
        found = list(Auditor(self.solver.market, self.town.deployment.treasury).findings())
        assert [finding for finding in found if not finding.holds] == []
        return [finding.what for finding in found]


def bonded(verifier: Verifier, task_id: bytes) -> int:
    """What a verifier's word holds of its money."""
    desk = verifier.market.settlement.address
    return int(verifier.market.vault.read("locked", desk, task_id, verifier.wallet.address))


@pytest.fixture
def market(exact: bytes, town: Town, tmp_path: Path) -> Unserved:
    far = Town(tmp_path / "far", town.ground)
    shutil.copytree(town.folder, far.folder)
    honest = (far.join(Verifier, "v"), far.join(Verifier, "w"))
    hidden = [far.file(entry.object) for entry in honest[0].proof(exact).checkpoints[1:]]
    for path in hidden:
        path.rename(path.with_suffix(".hidden"))
    return Unserved(exact, town, town.join(Solver, "t"), honest, town.join(Verifier, "x"), hidden)


@pytest.mark.long
def test_noise_that_only_an_accomplice_reads_is_not_accepted(market: Unserved) -> None:
    """The accomplice takes every seat that nobody else has claimed, and accepts. The solver shows each leaf in time."""
    task_id, solver = market.task_id, market.solver
    registry, seats = solver.market.registry, solver.market.seats
    honest = [Process(verifier, next_of_verifier) for verifier in market.honest]
    shows, friend = Process(solver, next_of_solver), Process(market.accomplice, next_of_verifier)
    stake, before = registry.terms(task_id).solver_stake, solver.market.vault.balances(solver.wallet.address)
    verbs, hour = list[str](), 3600
    for _ in range(60):
        for process in 3 * (*honest, shows):
            verbs += done(process.turn())
        seating = seats.seating(task_id)
        if not int(seating.best, 16) or seating.holder == market.accomplice.wallet.address:
            friend.turn()
        if registry.task(task_id).status in {Status.BIDDING, Status.CLOSED}:
            break
        step = 2 * hour if registry.task(task_id).status is Status.VERIFYING else hour // 4
        market.town.connection.wait_until(market.town.connection.now() + step)
    assert registry.task(task_id).status is Status.BIDDING
    assert registry.task(task_id).outcome is TaskOutcome.NONE
    assert {"demand a state", "show data", "claim the seat"} <= set(verbs)
    assert verbs.count("say it isn't served") == 2
    shown = sum(event["demand"]["bond"] for event in solver.market.demands.events("Demanded", taskId=task_id))
    after = solver.market.vault.balances(solver.wallet.address)
    lost = before.free + before.locked - after.free - after.locked
    assert stake - shown == lost
    assert "the fine of a solver that doesn't serve" in market.audit()
    assert solver.market.settlement.unserved_by(task_id) == []


def test_a_solver_that_serves_after_the_first_word_is_paid(market: Unserved) -> None:
    """The word is contradicted by a verdict that stands: its bond goes to the fund."""
    task_id, (first, second) = market.task_id, market.honest
    market.wait_in_vain(first)
    assert done(Process(first, next_of_verifier).turn()) == ["say it isn't served"]
    assert bonded(first, task_id) > 0
    assert done(Process(market.solver, next_of_solver).turn()) == ["publish the states again"]
    assert "see that others reach this store" in waits(next_of_solver(market.solver, task_id))
    open_claims(first, task_id)
    assert "leaves the seat alone" in waits(next_of_verifier(first, task_id))
    market.serve()
    assert acts(next_of_verifier(first, task_id)).verb == "claim the seat"
    seated(second, task_id)
    second.verify(task_id)
    disclosed(second, task_id)
    settle(second, task_id)
    assert second.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED
    assert not bonded(first, task_id)
    market.audit()


def test_who_reads_the_states_after_all_withdraws_its_word(market: Unserved) -> None:
    task_id, verifier = market.task_id, market.honest[0]
    market.wait_in_vain(verifier)
    verifier.unserved(task_id)
    free = verifier.market.vault.free(verifier.wallet.address)
    market.serve()
    seated(verifier, task_id)
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    settle(verifier, task_id)
    assert verifier.market.vault.free(verifier.wallet.address) > free
    market.audit()


def test_no_verdict_accepts_a_model_that_nobody_gets(market: Unserved, monkeypatch: pytest.MonkeyPatch) -> None:
    """All states but the last are there."""
    verifier = market.honest[0]
    market.serve()
    last = market.hidden[-1]
    last.rename(last.with_suffix(".hidden"))
    executors = list[int]()

    def counted(task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        executors.append(segment)
        return Verifier.executor(verifier, task_id, task, segment)

    monkeypatch.setattr(verifier, "executor", counted)
    market.sit(verifier)
    assert len(executors) <= 1, "a replay is kept"
    assert done(Process(market.solver, next_of_solver).turn()) == ["show data"]
    market.wait(1 / PARTS)
    assert market.verb(verifier) == "say it isn't served"


def test_states_that_come_too_late_for_a_replay_are_not_served(market: Unserved) -> None:
    """The solver publishes everything when a verdict would end after the window, and take the verifier's stake."""
    task_id, verifier = market.task_id, market.honest[0]
    market.sit(verifier)
    answer_demands(market.solver, task_id)
    verifier.times.paces[task_id] = 0.49 * market.window / 3
    market.wait(0.74)
    assert market.verb(verifier) == "post the verdict"
    market.wait(0.73)
    market.serve()
    assert done(Process(verifier, next_of_verifier).turn()) == ["say it isn't served"]
    assert verifier.market.settlement.unserved_by(task_id) == [verifier.wallet.address]


def test_states_that_trickle_are_not_served(market: Unserved, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read takes two fifths of the window."""
    verifier = market.honest[0]

    def slow(*about: Any) -> object:
        left = seconds_left()
        assert left is not None
        assert left <= market.window, "one large read doesn't outlast the window"
        verifier.connection.wait_until(verifier.connection.now() + 2 * market.window // 5)
        return load_checkpoint(*about)

    monkeypatch.setattr("pol.roles.verifier.verifier.load_checkpoint", slow)
    market.serve()
    market.sit(verifier, looks=0)
    process = Process(verifier, next_of_verifier)
    assert done([*process.turn(), *process.turn()]) == ["say it isn't served"]


@pytest.mark.parametrize("lasts", ["states", "model"])
def test_a_server_that_sends_until_nobody_reads_leaves_time_for_the_word(
    market: Unserved, monkeypatch: pytest.MonkeyPatch, lasts: str
) -> None:
    """A replay takes less than a block here, and the last read went on until the end of the window, then the stake."""
    task_id, verifier = market.task_id, market.honest[0]
    market.serve()
    market.sit(verifier, looks=0)

    def slow(*about: Any) -> object:
        if lasts == "model" and not verifier.replayed:
            return load_checkpoint(*about)
        left = seconds_left()
        assert left is not None
        verifier.connection.wait_until(verifier.connection.now() + round(left))
        raise OperationalError("the server has sent until now")

    monkeypatch.setattr("pol.roles.verifier.verifier.load_checkpoint", slow)
    process, left = Process(verifier, next_of_verifier), list[int]()
    for _ in range(8):
        Process(market.solver, next_of_solver).turn()  # else a demand may end first, by a second
        deadline = verifier.market.registry.task(task_id).deadline
        if not left and "say it isn't served" in done(process.turn()):
            left.append(deadline - verifier.connection.now())
    assert left
    assert left[0] > market.window // 50


def test_a_verdict_whose_states_have_come_late_is_posted(market: Unserved, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there when three quarters of the window are over, and the replay ends behind that: no word is due."""
    verifier = market.honest[0]
    market.serve()
    market.sit(verifier, looks=0)

    def slow(task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        market.wait(1 / PARTS - 0.05)
        return Verifier.executor(verifier, task_id, task, segment)

    monkeypatch.setattr(verifier, "executor", slow)
    assert done(Process(verifier, next_of_verifier).turn())[-1] == "post the verdict"


def test_a_look_at_another_task_leaves_time_for_the_word(market: Unserved) -> None:
    """A server that others have named may send for hours."""
    verifier = market.honest[0]
    market.sit(verifier, looks=0)
    assert reading_seconds(verifier, market.task_id) == inf
    looked = list[float | None]()

    def decide(role: Verifier, task_id: bytes) -> Decision:
        looked.append(seconds_left())
        return Wait(task_id, "it has looked")

    monitor = Process(verifier, decide)
    other = bytes(32)
    monitor.tasks = lambda: [other]  # type: ignore[method-assign]  # a task of strangers
    monitor.turn()
    assert looked[0] is not None
    assert MINUTE - 1 < looked[0] <= market.window / 2


def test_the_word_leaves_time_for_a_halt_of_the_chain(market: Unserved) -> None:
    verifier = market.honest[0]
    market.sit(verifier)
    answer_demands(market.solver, market.task_id)
    verifier.policy = replace(verifier.policy, outage=market.window // 2)
    assert market.verb(verifier) == "post the verdict"
    market.wait(0.5)
    assert market.verb(verifier) == "say it isn't served"


def test_neither_one_failed_look_nor_the_node_says_the_word(market: Unserved, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id, verifier = market.task_id, market.honest[0]
    market.sit(verifier, looks=1)
    assert len(list(missing_states(verifier, task_id))) > 1
    answer_demands(market.solver, task_id)
    market.wait(1 / PARTS)
    assert market.verb(verifier) == "post the verdict"

    def fail(*about: object, **filters: object) -> NoReturn:
        raise OperationalError("the node is down")

    monkeypatch.setattr(verifier.market.proofs, "events", fail)
    with pytest.raises(OperationalError, match="the node is down"):
        list(missing_states(verifier, task_id))
    monkeypatch.undo()
    for _ in range(LOOKS - 1):
        Process(verifier, next_of_verifier).turn()
    assert market.verb(verifier) == "say it isn't served"


def test_a_look_sends_nothing(market: Unserved, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = market.honest[0]
    market.sit(verifier, looks=0)
    market.wait(1 / PARTS)
    monkeypatch.setattr(verifier, "bring", lambda number: pytest.fail("a look brings a round"))
    next_of_verifier(verifier, market.task_id)


def test_what_is_drawn_is_read_before_the_claim(market: Unserved) -> None:
    """What could be read before the draw says nothing about it."""
    task_id, (verifier, other) = market.task_id, market.honest
    market.serve()
    assert "the seat waits for round" in waits(next_of_verifier(verifier, task_id))
    open_claims(verifier, task_id)
    other.bring(other.market.proofs.proof(task_id).round)
    (segment,) = other.market.proofs.drawn_segments(task_id)
    path = market.hidden[segment]
    path.rename(path.with_suffix(".hidden"))
    assert market.verb(verifier) == "demand a state"


def test_who_says_it_ends_its_own_demand_and_has_both_bonds_back(market: Unserved) -> None:
    """Its word goes first, as the stake would be paid without it; then it waits for nobody."""
    task_id, verifier = market.task_id, market.honest[0]
    market.sit(verifier)
    (demand,) = verifier.market.demands.demands(task_id)
    verifier.policy = replace(verifier.policy, outage=market.window)
    verifier.connection.wait_until(demand.deadline)
    assert done(Process(verifier, next_of_verifier).turn()) == ["say it isn't served"]
    free, held = verifier.market.vault.free(verifier.wallet.address), bonded(verifier, task_id)
    verifier.connection.wait_until(demand.deadline + 1)
    assert done(Process(verifier, next_of_verifier).turn()) == ["remove the solver"]
    assert verifier.market.vault.free(verifier.wallet.address) > free + held + demand.bond
    market.audit()


def test_a_solver_answers_between_two_states_that_it_serves_again(market: Unserved, tmp_path: Path) -> None:
    """Who puts all of a large log back at once misses a clock; what is lost here, too, hides nothing else."""
    task_id, town = market.task_id, market.town
    solver = town.join(Solver, "t", evidence=tmp_path / "t")
    names = [entry.object for entry in solver.proof(task_id).checkpoints]
    for name in names[:2]:
        solver.store.get(name)
    market.sit(market.honest[0])
    seer, process = town.join(Seer, "seer", evidence=tmp_path / "seer"), Process(solver, next_of_solver)
    (drawn,) = seer.market.proofs.drawn_segments(task_id)
    claim = seer.own_claim(task_id, 1 - drawn)
    assert claim is not None
    assert done(process.turn()) == ["show data"]
    market.wait(1 / PARTS)
    market.honest[0].unserved(task_id)
    for name in names:
        town.file(name).unlink()
    fulfill(solver, task_id)
    assert not town.file(names[0]).exists(), "a training goes first"
    assert done(process.turn()) == ["publish the states again"]
    assert [town.file(name).exists() for name in names] == [True, False, False]
    seer.object(task_id, FalseSegment(1 - drawn, claim))
    assert done(process.turn())[:1] == ["move"]
    assert not town.file(names[1]).exists()
    assert "publish the states again" in done([made for _ in range(3) for made in process.turn()])
    assert [town.file(name).exists() for name in names] == [True, True, False]
    assert "log entries [2] can't be published again" in waits(next_of_solver(solver, task_id))


def test_data_withheld_behind_a_word_pay_who_has_said_so(market: Unserved) -> None:
    task_id, (first, second) = market.task_id, market.honest
    market.wait_in_vain(first)
    first.unserved(task_id)
    spent = first.market.vault.free(first.wallet.address) + bonded(first, task_id)
    second.connection.wait_until(demand_state(second, task_id, 1).deadline + 1)
    assert len(expire_demands(second, task_id)) == 1
    assert first.market.vault.free(first.wallet.address) > spent
    assert "the fine of a solver that doesn't serve" in market.audit()
