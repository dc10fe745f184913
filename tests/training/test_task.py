"""A task says nothing that isn't recomputed when loaded; a proof of it is complete and consistent, or rejected.

The example's data is what was published, and its order of samples is data.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785
import torch
from torch import Tensor

from digits_training import Training, checkpoints, honest, loaded, published, solve
from pol.commitments.checkpoint_log import verify_inclusion
from pol.demo import digits
from pol.errors import OperationalError, ProtocolError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import capture
from pol.training.storage.store import Store
from pol.training.task import learning_proof, published_task
from pol.training.task.learning_proof import LearningProof, compute_log_root, load_checkpoint, require_proof_of
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import TaskDocument
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import TrainingDivergedError, to_tensor, to_words, train


def test_a_published_task_loads() -> None:
    task = loaded()
    document = task.document
    assert (document.steps, document.interval, document.segments) == (300, 25, 12)
    assert TaskDocument.decode(document.encode()) == document
    order = digits.order(1).numpy()
    assert np.array_equal(task.constants[task.names.constants.index("order")], order)
    weights = next(digits.build_model(1).parameters()).detach().numpy()
    assert np.array_equal(task.initial_state[0].view(np.float32), weights)


def test_the_same_training_gives_the_same_task() -> None:
    model = digits.build_model(1)
    captured = capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1))
    digest, _ = publish(
        Store("memory://again"), captured, steps=300, interval=25, model="MLP 64-64-10", optimizer="SGD"
    )
    assert digest == published()[1]


def changed(store: Store, digest: str, change: Callable[[dict[str, Any]], None]) -> str:
    """The digest of the same document with some members changed."""
    document = json.loads(store.get(digest))
    change(document)
    return store.put(rfc8785.dumps(document))


HASH = "ab" * 32


@pytest.mark.parametrize(
    ("member", "value", "problem"),
    [
        ("program_hash", HASH, "program hash is wrong"),
        ("constants_root", HASH, "root of its constants is wrong"),
        ("initial_state_root", HASH, "root of its initial state is wrong"),
        ("work", "1", "work estimate is wrong"),
        ("steps", 325, "order table"),
        ("steps", 301, "positive multiple"),
        ("interval", 0, "positive multiple"),
        ("interval", 600, "positive multiple"),
        ("version", 1, "version 2"),
        ("kind", "pol/other", "isn't a pol/task"),
        ("model", 3, "expected a string"),
        ("steps", "300", "expected an integer"),
        ("program", "xyz", "hexadecimal"),
    ],
)
def test_a_false_member_is_noticed(member: str, value: object, problem: str) -> None:
    store, digest = published()
    with pytest.raises(ProtocolError, match=problem):
        load(store, changed(store, digest, lambda document: document.update({member: value})))


def test_members_that_do_not_belong() -> None:
    store, digest = published()
    with pytest.raises(ProtocolError, match="members"):
        load(store, changed(store, digest, lambda document: document.update(extra=1)))
    with pytest.raises(ProtocolError, match="members"):
        load(store, changed(store, digest, lambda document: document.pop("work") and None))


def test_a_program_that_is_not_its_aten_graph_is_noticed() -> None:
    """The submitter would let solvers train one thing and courts execute another."""
    store, digest = published()
    model = digits.build_model(1)
    other = capture(model, digits.loss_function, _slower(model), digits.dataset(), digits.order(1))
    aten = store.put(rfc8785.dumps(other.aten.to_dict()))
    with pytest.raises(ProtocolError, match="doesn't lower to its step program"):
        load(store, changed(store, digest, lambda document: document.update(aten=aten)))


def _slower(model: Any) -> Any:
    import torch

    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def test_other_names_are_noticed() -> None:
    store, digest = published()
    object_ = store.put(rfc8785.dumps(replace(loaded().names, observed={"loss": 0}).to_dict()))
    with pytest.raises(ProtocolError, match="names"):
        load(store, changed(store, digest, lambda document: document.update(names=object_)))


def test_a_missing_object_and_a_withheld_proof_are_operational() -> None:
    store, digest = published()
    with pytest.raises(OperationalError):
        load(store, changed(store, digest, lambda document: document.update(program=HASH)))
    with pytest.raises(OperationalError):
        learning_proof.load(Store("memory://withheld"), honest().digest, loaded())


def test_an_order_table_of_another_length_is_refused() -> None:
    model = digits.build_model(1)
    captured = capture(
        model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, 50)
    )
    with pytest.raises(ProtocolError, match="order table"):
        publish(Store("memory://short"), captured, steps=300, interval=25)


def test_a_program_that_takes_too_much_memory_is_neither_published_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store, digest = published()
    monkeypatch.setattr(published_task, "PROGRAM_LIMIT", 1 << 10)
    with pytest.raises(ProtocolError, match="parties read 1024 at most"):
        publish(store, digits.captured(0), steps=digits.STEPS, interval=digits.INTERVAL)
    with pytest.raises(ProtocolError, match="more than the 1024 bytes"):
        load(store, digest)


def test_it_learns() -> None:
    states = checkpoints(honest())
    model = digits.build_model(1)
    before = digits.accuracy(model)
    names = loaded().names.slots
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, words in zip(names, states[-1], strict=True):
            if name in parameters:
                parameters[name].copy_(torch.from_numpy(words.view(np.float32)))
    assert before < 0.3
    assert digits.accuracy(model) > 0.95


def test_it_trains_as_the_users_own_loop_does() -> None:
    model = digits.build_model(1)
    optimizer = digits.build_optimizer(model)
    images, labels = digits.dataset()
    for row in digits.order(1)[:50]:
        optimizer.zero_grad()
        digits.loss_function(model(images[row]), labels[row]).backward()
        optimizer.step()
    state = checkpoints(honest())[2]
    for parameter, words in zip(model.parameters(), state, strict=False):
        assert torch.allclose(parameter, torch.from_numpy(words.view(np.float32)), rtol=1e-4, atol=1e-6)


class Poisoned:
    """Trains honestly up to a step, then gives NaN."""

    def __init__(self, step: int, *, loss: bool):
        self._executor = NativeExecutor(loaded().aten)
        self._step = step
        self._loss = loss

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        state, observed = self._executor.run(state, constants, step)
        if step != self._step:
            return state, observed
        nan = torch.tensor(float("nan"))
        if self._loss:
            return state, {"loss": nan}
        return [state[0] * nan, *state[1:]], observed


@pytest.mark.parametrize(
    ("loss", "problem"),
    [(True, "loss is nan at step 30"), (False, "isn't finite after step 30|loss is nan at step 31")],
)
def test_divergence_stops_with_the_step_and_the_remedy(loss: bool, problem: str) -> None:
    recorded: list[int] = []
    with pytest.raises(TrainingDivergedError, match=f"({problem}).*Lower the learning rate"):
        train(loaded(), Poisoned(30, loss=loss), lambda index, _: recorded.append(index))
    assert recorded == [0, 1]


def test_checkpoints_are_recorded_in_order_and_completely() -> None:
    store, _ = published()
    task = loaded()
    recorder = TaskRecorder(store, task)
    recorder(0, task.initial_state)
    with pytest.raises(ProtocolError, match="in order"):
        recorder(2, task.initial_state)
    with pytest.raises(ProtocolError, match="needs checkpoints 0 to 12"):
        recorder.publish({})


def test_words_and_tensors_are_the_same_bits() -> None:
    task = loaded()
    for entry, words in zip(task.aten.constants, task.constants, strict=True):
        assert np.array_equal(to_words(entry.type, to_tensor(entry.type, words)), words)
    with pytest.raises(ProtocolError, match="a step gave"):
        to_words(task.aten.slots[0].type, torch.zeros(3))
    special = np.array([0x7F800001, 0x80000000, 1], np.uint32)
    from pol.graph.aten_graph import AtenType

    assert np.array_equal(to_words(AtenType("float32", (3,)), to_tensor(AtenType("float32", (3,)), special)), special)


def test_a_published_proof_loads() -> None:
    training = honest()
    proof = learning_proof.load(training.store, training.digest, training.task)
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
        learning_proof.load(training.store, training.store.put(forged.encode()), training.task)


def test_a_proof_of_another_task_is_rejected() -> None:
    other: Training = solve(order_seed=2)
    store, _ = published()
    with pytest.raises(ProtocolError, match="not of task"):
        learning_proof.load(store, store.put(other.proof.encode()), loaded())


def test_a_log_of_another_size_is_rejected() -> None:
    data = honest().proof.encode().replace(b'"log_size":13', b'"log_size":12')
    with pytest.raises(ProtocolError, match="log of 12"):
        LearningProof.decode(data)


def test_the_data_set() -> None:
    images, labels = digits.dataset()
    assert images.shape == (1797, 64)
    assert images.dtype == torch.float32
    assert labels.shape == (1797,)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert images.min() == 0.0
    assert images.max() == 1.0
    assert (images * 16 == (images * 16).round()).all()
    assert images[0, 2] == 5 / 16


def test_one_changed_pixel_is_noticed(tmp_path: Path) -> None:
    rows = gzip.decompress(digits.path().read_bytes()).replace(b"13", b"12", 1)
    changed = tmp_path / "digits.csv.gz"
    changed.write_bytes(gzip.compress(rows))
    with pytest.raises(
        ProtocolError, match=r"digits\.csv\.gz has changed: its keccak-256 is [0-9a-f]{64}, expected 7629"
    ):
        digits.dataset(changed)
    with pytest.raises(OperationalError, match="can't read"):
        digits.dataset(tmp_path / "missing")


def test_the_order_is_epochs_without_repetition() -> None:
    order = digits.order(seed=1, steps=120, batch=32)
    assert order.shape == (120, 32)
    assert torch.equal(order, digits.order(seed=1, steps=120, batch=32))
    assert torch.equal(order[:60], digits.order(seed=1, steps=60, batch=32))
    assert not torch.equal(order, digits.order(seed=2, steps=120, batch=32))
    assert len(set(order[:56].flatten().tolist())) == 56 * 32
    assert int(order.min()) >= 0
    assert int(order.max()) < 1797
    with pytest.raises(ProtocolError):
        digits.order(seed=1, steps=10, batch=1798)


def test_the_model_is_seeded_and_leaves_torch_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = digits.build_model(3)
    assert torch.equal(torch.rand(3), expected)
    second = digits.build_model(3)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert [tuple(p.shape) for p in first.parameters()] == [(64, 64), (64,), (10, 64), (10,)]
