"""A submitter's process pays for no model that it can't get, and keeps what it has read."""

from pathlib import Path
from typing import NoReturn

import pytest
from role_market import Town, done, seated, settle, until_proof, verified

from pol.chain.desks.task_registry import Status
from pol.errors import OperationalError
from pol.roles.party.data_availability import answer_demands
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.role import Role
from pol.roles.process.party_process import Process
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.submitter.submitter_decisions import DEMANDS, next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.training.storage.http_files import seconds_left
from pol.training.storage.store import Store
from pol.training.task.learning_proof import load_checkpoint


@pytest.fixture(scope="module")
def contested(node: Town) -> bytes:
    """A task with an honest verdict that may be challenged."""
    task_id = until_proof(node)
    verified(node.join(Verifier, "v"), task_id)
    return task_id


@pytest.fixture
def submitter(town: Town, tmp_path: Path) -> Submitter:
    return town.join(Submitter, "s", evidence=tmp_path / "s")


def hide_model(town: Town, role: Role, task_id: bytes) -> None:
    town.file(role.proof(task_id).checkpoints[-1].object).unlink()


def to_second_half(role: Role, task_id: bytes) -> None:
    window = role.market.registry.terms(task_id).challenge_window
    role.connection.wait_until(role.market.registry.task(task_id).deadline - window // 2)


@pytest.mark.parametrize("mode", [Mode.DEFEND, Mode.PROPOSE])
def test_a_model_that_nobody_gets_is_demanded_and_not_paid_for(
    contested: bytes, town: Town, submitter: Submitter, mode: Mode
) -> None:
    hide_model(town, town.join(Verifier, "v"), contested)
    process = Process(submitter, next_of_submitter, mode)
    (taken,) = process.turn()
    assert taken.verb == "wait"
    assert "demanded if it isn't there" in taken.why
    to_second_half(submitter, contested)
    assert done(process.turn()) == ["demand the model"]
    assert done(process.turn()) == []
    (made,) = submitter.market.demands.demands(contested)
    assert made.entry == submitter.market.proofs.proof(contested).size - 1
    # Nobody is paid while the demand is open.
    town.connection.wait_until(submitter.market.registry.task(contested).deadline)
    assert done(process.turn()) == []
    town.connection.wait_until(made.deadline)
    process.mode = Mode.RESOLVE
    assert done(process.turn()) == ["remove the solver"]
    assert submitter.market.registry.task(contested).status is Status.BIDDING


def test_a_solver_that_shows_leaf_after_leaf_is_asked_for_few(
    contested: bytes, town: Town, submitter: Submitter, tmp_path: Path
) -> None:
    """What is hidden from the submitter lies in the solver's folder."""
    solver = town.join(Solver, "t", evidence=tmp_path / "t")
    load_checkpoint(solver.store, solver.task(contested), solver.proof(contested).checkpoints[-1])
    hide_model(town, solver, contested)
    to_second_half(submitter, contested)
    process = Process(submitter, next_of_submitter)
    for _ in range(DEMANDS):
        assert done(process.turn()) == ["demand the model"]
        assert len(answer_demands(solver, contested)) == 1
    (taken,) = process.turn()
    assert taken.verb == "wait"
    assert f"has shown {DEMANDS} leaves" in taken.why
    town.connection.wait_until(submitter.market.registry.task(contested).deadline)
    assert done(process.turn()) == ["settle"]


def test_a_model_that_trickles_is_demanded_before_it_is_paid_for(
    contested: bytes, town: Town, submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other task bounds the reads: a large one outlasted the window, and the model was paid for."""
    left, terms = list[float | None](), submitter.market.registry.terms(contested)

    def slow(*about: object) -> NoReturn:
        left.append(seconds_left())
        raise OperationalError("the server has sent until now")

    monkeypatch.setattr("pol.roles.submitter.submitter.load_checkpoint", slow)
    process = Process(submitter, next_of_submitter)
    assert done(process.turn()) == []
    to_second_half(submitter, contested)
    assert done(process.turn()) == ["demand the model"]
    town.connection.wait_until(submitter.market.registry.task(contested).deadline - 600)
    assert done(process.turn()) == []
    for seconds, most in zip(left, (terms.challenge_window / 4, terms.challenge_window / 4, 300), strict=True):
        assert seconds is not None
        assert seconds <= most


def test_a_model_that_was_read_stays_after_the_settlement(
    contested: bytes, town: Town, submitter: Submitter, tmp_path: Path
) -> None:
    assert done(Process(submitter, next_of_submitter).turn()) == []
    last = submitter.proof(contested).checkpoints[-1]
    hide_model(town, submitter, contested)
    to_second_half(submitter, contested)
    assert done(Process(town.join(Submitter, "s", evidence=tmp_path / "s"), next_of_submitter).turn()) == []
    settle(submitter, contested)
    submitter.release(contested)
    assert isinstance(submitter.store, KeptStore)
    assert Store(f"file://{tmp_path / 's' / 'evidence'}").get(last.object)


def test_a_model_is_read_before_there_is_a_verdict(town: Town, submitter: Submitter) -> None:
    task_id = until_proof(town)
    last = town.join(Submitter, "s").proof(task_id).checkpoints[-1]
    Process(submitter, next_of_submitter).turn()
    hide_model(town, submitter, task_id)
    assert submitter.store.exists(last.object)
    seated(town.join(Verifier, "v"), task_id)
    assert not isinstance(next_of_submitter(submitter, task_id), Action)
