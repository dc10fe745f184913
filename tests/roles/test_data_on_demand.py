"""Parties that ask for states on chain: a solver that has them answers, one that hasn't loses its stake."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from anvil_node import anvil_node
from pol.chain.account.wallet import Wallet
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.demo import digits
from pol.errors import OperationalError, ProtocolError
from pol.graph.capture import capture
from pol.roles.party import data_availability
from pol.roles.party.policy import Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.training.task.learning_proof import load_checkpoint
from pol.verification.verdict.verdict import Outcome
from toy_market import ETHER, fund

R = TypeVar("R", bound=Role)
STEPS, INTERVAL = 6, 3
OFFER = Offer(STEPS, INTERVAL, draws=1, margin=0)


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
def seated(tmp_path: Path) -> Iterator[Seated]:
    with anvil_node() as url:
        connection = Connection.to(url)
        deployer = Wallet.create(connection, keccak256(b"deployer"))
        fund(connection, deployer.address)
        deployment = deploy(deployer)
        market = deployment.market(connection)
        market.vault.deposit(deployer, 50 * ETHER)
        market.jackpot.donate(deployer, 50 * ETHER)
        near, far = tmp_path / "near", tmp_path / "far"
        submitter = join(Submitter, url, deployment, near)
        solver = join(Solver, url, deployment, near)
        model = digits.DigitClassifier(4)
        step = capture(
            model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, STEPS)
        )
        task_id = submitter.submit(step, OFFER)
        verifier, watcher = join(Verifier, url, deployment, far), join(Whistleblower, url, deployment, far)
        verifier.enrol(1)
        solver.bid(task_id)
        solver.reveal(task_id)
        solver.market.registry.award(solver.wallet, task_id)
        solver.train(task_id)
        shutil.copytree(near, far, dirs_exist_ok=True)
        verifier.claim_seat(task_id)
        assert verifier.take_seat(task_id)
        drawn = market.proofs.proof(task_id).round
        verifier.beacon.bring(verifier.wallet, drawn)
        if not verifier.beacon.recorded(drawn):
            verifier.beacon.record(verifier.wallet, drawn)
        yield Seated(task_id, solver, verifier, watcher)


def join(kind: type[R], url: str, deployment: Deployment, folder: Path) -> R:
    role = kind(Connection.to(url), deployment, keccak256(kind.__name__.encode()), f"file://{folder}")
    fund(role.connection, role.wallet.address)
    role.deposit(50 * ETHER)
    return role


def test_a_solver_shows_what_it_has(seated: Seated) -> None:
    task_id, solver, verifier, watcher = seated.task_id, seated.solver, seated.verifier, seated.watcher
    (segment,) = verifier.market.proofs.drawn_segments(task_id)
    assert data_availability.missing_states(verifier, task_id) == []
    hidden = seated.hide(segment + 1)
    deadline = verifier.market.registry.task(task_id).deadline
    with pytest.raises(OperationalError, match="can't be replayed"):
        verifier.verify(task_id)
    (demand,) = verifier.market.demands.demands(task_id)
    assert (demand.entry, demand.demander) == (segment + 1, verifier.wallet.address)
    assert verifier.market.registry.task(task_id).deadline == deadline + verifier.market.demands.window()
    assert data_availability.demand_missing(verifier, task_id) == []
    (other,) = data_availability.demand_missing(watcher, task_id)
    assert other.entry == segment + 1
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


def test_who_has_nothing_to_show_loses_stake_and_task(seated: Seated) -> None:
    task_id, verifier = seated.task_id, seated.verifier
    (segment,) = verifier.market.proofs.drawn_segments(task_id)
    for entry in (segment, segment + 1):
        seated.hide(entry)
    free = verifier.market.vault.free(verifier.wallet.address)
    with pytest.raises(OperationalError, match="can't be replayed"):
        verifier.verify(task_id)
    first, second = verifier.market.demands.demands(task_id)
    assert [first.entry, second.entry] == [segment, segment + 1]
    assert data_availability.expire_demands(verifier, task_id) == []
    verifier.connection.wait_until(second.deadline)
    assert data_availability.expire_demands(verifier, task_id) == [first, second]
    terms = verifier.market.registry.terms(task_id)
    gained = verifier.market.vault.free(verifier.wallet.address) - free
    assert gained == terms.verifier_stake + terms.solver_stake // 16
    assert verifier.market.registry.task(task_id).status is Status.BIDDING


def test_a_window_that_is_too_short_to_answer_in_is_refused() -> None:
    with pytest.raises(ProtocolError, match="window for answers of 60 s"):
        Policy().require_answer_window(60)
