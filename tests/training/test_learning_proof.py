"""A learning proof is complete, of this task, and consistent in itself, or it is rejected."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from digits_training import Training, honest, loaded, published, solve
from pol.commitments.checkpoint_log import verify_inclusion
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof, compute_log_root, load, load_checkpoint, require_proof_of


def test_a_published_proof_loads() -> None:
    training = honest()
    proof = load(training.store, training.digest, training.task)
    assert proof == training.proof
    assert LearningProof.decode(proof.encode()) == proof
    assert [c.step for c in proof.checkpoints] == list(range(0, 301, 25))
    assert proof.environment["torch"]
    for entry in proof.checkpoints:
        assert load_checkpoint(training.store, training.task, entry)


def test_entries_stand_in_the_log() -> None:
    from pol.commitments.checkpoint_log import CheckpointLog

    proof = honest().proof
    log = CheckpointLog([c.state_root for c in proof.checkpoints])
    for c in proof.checkpoints:
        verify_inclusion(proof.log_root, len(proof.checkpoints), c.index, c.state_root, log.inclusion(c.index))


def relog(proof: LearningProof, **changes: object) -> LearningProof:
    """The proof with changes and a log root that fits its checkpoints."""
    changed = replace(proof, **changes)  # type: ignore[arg-type]  # members of any type
    return replace(changed, log_root=compute_log_root(changed.checkpoints))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: replace(p, task="ab" * 32), "not of task"),
        (lambda p: replace(p, program_hash=bytes(32)), "not of task"),
        (lambda p: replace(p, interval=50), "the task asks for"),
        (lambda p: replace(p, order_root=bytes(32)), "another order"),
        (lambda p: replace(p, log_root=bytes(32)), "checkpoint log"),
        (lambda p: relog(p, checkpoints=p.checkpoints[:-1]), "needs checkpoints 0 to 12"),
        (lambda p: relog(p, checkpoints=p.checkpoints[1:]), "needs checkpoints 0 to 12"),
        (lambda p: relog(p, checkpoints=(*p.checkpoints, p.checkpoints[-1])), "needs checkpoints 0 to 12"),
        (lambda p: relog(p, checkpoints=p.checkpoints[::-1]), "needs checkpoints 0 to 12"),
        (
            lambda p: relog(p, checkpoints=(replace(p.checkpoints[0], state_root=bytes(32)), *p.checkpoints[1:])),
            "initial state",
        ),
    ],
)
def test_what_does_not_fit_is_rejected(change: Callable[[LearningProof], LearningProof], problem: str) -> None:
    training = honest()
    forged = change(training.proof)
    with pytest.raises(ProtocolError, match=problem):
        require_proof_of(forged, training.task)
    with pytest.raises(ProtocolError, match=problem):
        load(training.store, training.store.put(forged.encode()), training.task)


def test_a_proof_of_another_task_is_rejected() -> None:
    other: Training = solve(order_seed=2)
    store, _ = published()
    with pytest.raises(ProtocolError, match="not of task"):
        load(store, store.put(other.proof.encode()), loaded())


def test_a_log_of_another_size_is_rejected() -> None:
    data = honest().proof.encode().replace(b'"log_size":13', b'"log_size":12')
    with pytest.raises(ProtocolError, match="log of 12"):
        LearningProof.decode(data)


def test_a_withheld_proof_is_operational() -> None:
    with pytest.raises(OperationalError):
        load(Store("memory://withheld"), honest().digest, loaded())
