"""A solver that serves its accomplice alone: whoever else is drawn says so, and nothing is accepted unseen."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from role_market import Town, acts, disclosed, done, open_claims, seated, settle, waits

from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.errors import OperationalError
from pol.roles.party.data_availability import demand_state, expire_demands
from pol.roles.process.party_process import Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import PARTS, next_of_verifier

pytestmark = pytest.mark.long


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
    def last_part(self) -> int:
        """The first second in which the seated verifier says that it isn't served."""
        registry = self.solver.market.registry
        window = registry.terms(self.task_id).verification_window
        return registry.task(self.task_id).deadline - window // PARTS

    def wait_in_vain(self, verifier: Verifier) -> None:
        """Sit, look, get a leaf that it demands and no state, until the last part of the window."""
        seated(verifier, self.task_id)
        verifier.duty(self.task_id)
        with pytest.raises(OperationalError):
            verifier.verify(self.task_id)
        assert done(Process(self.solver, next_of_solver).turn()) == ["show data"]
        verifier.connection.wait_until(self.last_part)

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
    again = Process(market.solver, next_of_solver)
    assert done(again.turn()) == ["publish the states again"]
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


def test_no_verdict_accepts_a_model_that_nobody_gets(market: Unserved) -> None:
    """All states but the last are there."""
    task_id, verifier = market.task_id, market.honest[0]
    market.serve()
    last = market.hidden[-1]
    last.rename(last.with_suffix(".hidden"))
    market.wait_in_vain(verifier)
    assert acts(next_of_verifier(verifier, task_id)).verb == "say it isn't served"


def test_data_withheld_behind_a_word_pay_who_has_said_so(market: Unserved) -> None:
    task_id, (first, second) = market.task_id, market.honest
    market.wait_in_vain(first)
    first.unserved(task_id)
    spent = first.market.vault.free(first.wallet.address) + bonded(first, task_id)
    demand = demand_state(second, task_id, 1)
    second.connection.wait_until(demand.deadline + 1)
    assert len(expire_demands(second, task_id)) == 1
    assert first.market.vault.free(first.wallet.address) > spent
    assert "the fine of a solver that doesn't serve" in market.audit()
