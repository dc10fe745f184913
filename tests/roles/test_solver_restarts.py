"""A solver that is killed while it trains goes on from what it has posted, and posts nothing twice."""

import pytest
from all_parties import Solver, Verifier, next_of_solver
from role_market import Town, acts, awarded, profiled, submitted, waits

from pol.chain.desks.task_registry import Status
from pol.errors import EvidenceError
from pol.execution.stock_torch import torch_executor
from pol.roles.submitter.submitter import TOLERANT, Offer

pytestmark = pytest.mark.long

NATIVE = Offer(6, 1, draws=1, margin=TOLERANT, rerun_count=1, profiled=1, looks=0)
EXACT = Offer(6, 1, draws=1, margin=0)


class Killed(BaseException):
    """The process is gone."""


def won(town: Town, offer: Offer) -> tuple[Solver, bytes]:
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, _ = submitted(town, offer)
    if offer.margin:
        profiled(verifier, task_id)
    awarded(solver, task_id)
    return solver, task_id


def killed_at(solver: Solver, task_id: bytes, last: int) -> list[int]:
    """Train until a checkpoint; the indices of those that were made."""
    made: list[int] = []

    def die(index: int, segments: int) -> None:
        made.append(index)
        if index == last:
            raise Killed

    with pytest.raises(Killed):
        solver.train(task_id, die, progress_every=2)
    return made


@pytest.mark.parametrize("offer", [NATIVE, EXACT], ids=["native", "exact"])
def test_a_killed_training_goes_on_from_what_was_posted(town: Town, offer: Offer) -> None:
    solver, task_id = won(town, offer)
    proofs = solver.market.proofs
    assert killed_at(solver, task_id, 4) == [0, 1, 2, 3, 4]
    assert proofs.proof(task_id).size == 4
    # Killed again, after a part that no log on chain says anything of.
    assert killed_at(town.join(Solver, "t"), task_id, 4) == [4]
    assert proofs.proof(task_id).size == 4
    again, made = town.join(Solver, "t"), list[int]()
    proof = again.train(task_id, lambda index, segments: made.append(index), progress_every=2)
    assert made == [4, 5, 6]
    assert [entry.step for entry in proof.checkpoints] == list(range(7))
    assert again.market.registry.task(task_id).status is Status.COMMITTED
    assert [event["size"] for event in proofs.events("ProgressPosted", taskId=task_id)] == [2, 4, 6]


def test_it_bids_for_nothing_that_it_cannot_train_in_time(town: Town) -> None:
    solver = town.join(Solver, "t")
    task_id, _ = submitted(town, EXACT)
    assert 0 < solver.rehearse(task_id) < 60
    assert acts(next_of_solver(solver, task_id)).verb == "bid"
    solver._rehearsed[task_id] = 5 * 3600.0  # as on a machine that is that slow
    assert "training takes this machine about 162000 s" in waits(next_of_solver(solver, task_id))


def test_it_bids_for_nothing_that_fails_here(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, _ = submitted(town, NATIVE)
    profiled(verifier, task_id)
    monkeypatch.delitem(torch_executor.ALLOWED, "aten.addmm.default")
    assert "not in the allow-list" in waits(next_of_solver(solver, task_id))


def test_what_is_kept_is_looked_at_before_it_is_gone_on_from(town: Town) -> None:
    solver, task_id = won(town, EXACT)
    killed_at(solver, task_id, 4)
    (kept,) = town.folder.glob("training-*.json")
    kept.write_bytes(kept.read_bytes().replace(b'"interval":1', b'"interval":2'))
    with pytest.raises(EvidenceError, match="checkpoints every 2 steps"):
        town.join(Solver, "t").train(task_id)
