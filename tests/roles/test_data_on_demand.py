"""Parties that ask for states on chain: a solver that has them answers, one that hasn't loses its stake."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import role_market
from all_parties import Solver, Verifier, Whistleblower, next_of_solver
from role_market import Town, done

from pol.arithmetic.primitives import Words
from pol.chain.desks.task_registry import Status
from pol.errors import OperationalError, ProtocolError
from pol.roles.party import data_availability
from pol.roles.party.policy import Policy
from pol.roles.process.party_process import Process
from pol.training.storage.store import Store
from pol.training.task.learning_proof import TaskCheckpoint, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.verdict.verdict import Outcome


@dataclass
class Seated:
    """An exact task that is trained, with a verifier in its seat that reads another store than the solver's."""

    task_id: bytes
    solver: Solver
    verifier: Verifier
    watcher: Whistleblower

    def hide(self, entry: int) -> Path:
        """The verifier's store loses a state."""
        name = self.verifier.proof(self.task_id).checkpoints[entry].object
        (found,) = (path for path in Path(self.verifier.store.url[7:]).rglob("*") if path.name == name)
        return found.rename(found.with_suffix(".hidden"))


@pytest.fixture
def seated(exact: bytes, town: Town, tmp_path: Path) -> Seated:
    far = Town(tmp_path / "far", town.ground)
    shutil.copytree(town.folder, far.folder)
    solver, verifier, watcher = town.join(Solver, "t"), far.join(Verifier, "v"), far.join(Whistleblower, "w")
    role_market.seated(verifier, exact)
    verifier.bring(verifier.market.proofs.proof(exact).round)
    return Seated(exact, solver, verifier, watcher)


def test_a_solver_shows_what_it_has(seated: Seated) -> None:
    task_id, solver, verifier, watcher = seated.task_id, seated.solver, seated.verifier, seated.watcher
    (segment,) = verifier.market.proofs.drawn_segments(task_id)
    assert list(data_availability.missing_states(verifier, task_id)) == []
    hidden = seated.hide(segment + 1)
    deadline = verifier.market.registry.task(task_id).deadline
    with pytest.raises(OperationalError, match="can't be replayed"):
        verifier.verify(task_id)
    (demand,) = verifier.market.demands.demands(task_id)
    assert (demand.entry, demand.demander) == (segment + 1, verifier.wallet.address)
    assert verifier.market.registry.task(task_id).deadline == deadline + verifier.market.demands.window()
    with pytest.raises(OperationalError, match="can't be replayed"):
        verifier.verify(task_id)
    assert verifier.market.demands.demands(task_id) == [demand]
    other = data_availability.demand_state(watcher, task_id, segment + 1)
    assert data_availability.answer_demands(solver, task_id) == [demand, other]
    assert data_availability.answer_demands(solver, task_id) == data_availability.expire_demands(watcher, task_id) == []
    answer = verifier.market.demands.answers(task_id)[0]
    proof = solver.proof(task_id)
    state = load_checkpoint(solver.store, solver.task(task_id), proof.checkpoints[segment + 1])
    assert answer.root == proof.checkpoints[segment + 1].state_root
    assert answer.leaf.rstrip(b"\0") in state[demand.position].tobytes()
    hidden.rename(hidden.with_suffix(""))
    (verdict,) = verifier.verify(task_id)
    assert verdict.outcome is Outcome.ACCEPTED


def test_a_flood_of_demands_leaves_time_for_a_move(seated: Seated, monkeypatch: pytest.MonkeyPatch) -> None:
    """All were answered at one go, each with its own read: with large states that takes hours, whatever clock runs."""
    task_id, solver, watcher = seated.task_id, seated.solver, seated.watcher
    asked = ((1, 0), (2, 0), (0, 0), (1, 1), (2, 1))
    made = [watcher.market.demands.demand(watcher.wallet, task_id, entry, slot, 0) for entry, slot in asked]
    readings, read = iter(range(100)), list[int]()

    def load(store: Store, task: LoadedTask, entry: TaskCheckpoint) -> list[Words]:
        read.append(entry.index)
        return load_checkpoint(store, task, entry)

    monkeypatch.setattr(data_availability, "load_checkpoint", load)
    solver.times.timer = lambda: next(readings) * 40.0
    assert data_availability.answer_demands(solver, task_id) == [made[0], made[3]]
    solver.times.timer = lambda: 0.0
    assert done(Process(solver, next_of_solver).turn()) == ["show data"]
    assert solver.market.demands.open(task_id) == 0
    assert read == [1, 2, 0]


def test_who_has_nothing_to_show_loses_stake_and_task(seated: Seated) -> None:
    task_id, verifier = seated.task_id, seated.verifier
    (segment,) = verifier.market.proofs.drawn_segments(task_id)
    for entry in (segment, segment + 1):
        seated.hide(entry)
    free = verifier.market.vault.free(verifier.wallet.address)
    with pytest.raises(OperationalError, match="can't be replayed"):
        verifier.verify(task_id)
    (first,) = verifier.market.demands.demands(task_id)
    assert first.entry == segment
    second = data_availability.demand_state(verifier, task_id, segment + 1)
    assert data_availability.expire_demands(verifier, task_id) == []
    verifier.connection.wait_until(second.deadline)
    assert data_availability.expire_demands(verifier, task_id) == [first, second]
    terms = verifier.market.registry.terms(task_id)
    gained = verifier.market.vault.free(verifier.wallet.address) - free
    assert gained == terms.verifier_stake + terms.solver_stake // 16
    assert verifier.market.registry.task(task_id).status is Status.BIDDING


def test_nobody_works_for_the_demands_of_others(seated: Seated) -> None:
    """The part of the stake went to whoever had demanded first, and one party paid for the ends of all demands."""
    task_id, verifier, watcher = seated.task_id, seated.verifier, seated.watcher
    others = [data_availability.demand_state(watcher, task_id, entry) for entry in (0, 1)]
    own = data_availability.demand_state(verifier, task_id, 1)
    verifier.connection.wait_until(own.deadline)
    free = verifier.market.vault.free(verifier.wallet.address)
    assert data_availability.expire_demands(verifier, task_id) == [own]
    terms = verifier.market.registry.terms(task_id)
    gained = verifier.market.vault.free(verifier.wallet.address) - free
    assert gained == own.bond + terms.verifier_stake + terms.solver_stake // 16
    assert data_availability.reclaim_demand_bonds(watcher, task_id) == others
    assert verifier.market.demands.demands(task_id) == []


def test_a_window_that_is_too_short_to_answer_in_is_refused() -> None:
    with pytest.raises(ProtocolError, match="window for answers of 60 s"):
        Policy().require_answer_window(60)
