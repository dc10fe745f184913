"""The digits task trained by a plain loop with the recorder: the proof is one that verifiers and the market accept."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from digits_training import Training, loaded, profiled, published, verdict
from pol import Recorder
from pol.demo import digits
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Loop, capture
from pol.training import Sealing
from pol.training.lineage.lineage import verify_lineage
from pol.training.lineage.lineage_copy import CopyingStore
from pol.training.storage.store import LIMIT, Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.published_task import load, publish
from pol.training.task.task_randomness import TaskRandomness
from pol.verification.profile.profiling import measure_profile
from pol.verification.runs.record_check import CheckOutcome, check_record
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome


def train(store: Store, stop: int | None = None, skipped: int | None = None, scale: float = 1.0) -> Recorder:
    """Stock PyTorch; the model begins with other weights than the task's, which the recorder replaces."""
    task = loaded()
    model = digits.build_model(99)
    optimizer = digits.build_optimizer(model)
    images, labels = digits.dataset()
    order = digits.order(1)
    recorder = Recorder(store, model, optimizer, task=task)
    recorder.resume()
    for step in range(recorder.steps, stop or task.document.steps):
        rows = order[step]
        loss = digits.loss_function(model(images[rows]), labels[rows]) * scale
        optimizer.zero_grad()
        loss.backward()
        if step != skipped:
            optimizer.step()
        recorder.step()
    recorder.close()
    return recorder


def own_store(name: str) -> Store:
    """A store with the task in it."""
    source, digest = published()
    store = Store(f"memory://{name}")
    load(CopyingStore(source, store), digest)
    return store


def test_a_loop_of_ones_own_gives_a_proof_that_is_accepted() -> None:
    store = own_store("trail")
    digest, proof = train(store).learning_proof()
    task = load(store, loaded().digest)
    assert learning_proof.load(store, digest, task) == proof
    training = Training(store, task, digest, proof)
    for segment in (0, 5, task.document.segments - 1):
        assert verdict(training, segment).outcome is Outcome.ACCEPTED, segment
    top, bottom = verify_lineage(store)
    assert (top.kind, top.base, top.rest, bottom.kind) == ("task", task.digest, (), "given")
    assert profiled().thresholds


class Counting(Store):
    """Counts how often each object is read."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.gets = Counter[str]()

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        self.gets[digest] += 1
        return super().get(digest, limit=limit)


def test_a_check_of_a_record_loads_its_task_once() -> None:
    train(own_store("once"), stop=loaded().document.interval)
    store = Counting("memory://once")
    found = {finding.check: finding.outcome for finding in check_record(store)}
    assert (found["task"], found["start"]) == (CheckOutcome.GOOD, CheckOutcome.SKIPPED)
    assert store.gets[loaded().digest] == 1


def test_a_step_beyond_the_task_is_refused() -> None:
    recorder = train(own_store("beyond"))
    digest, _ = recorder.learning_proof()
    with pytest.raises(ProtocolError, match=f"the task ends after {recorder.steps} steps: leave the loop there"):
        recorder.step()
    recorder.close()
    assert recorder.learning_proof()[0] == digest
    assert recorder.record.checkpoints[-1].step == loaded().document.steps


def test_a_run_that_was_cut_gives_the_same_roots() -> None:
    whole = train(own_store("whole")).learning_proof()[1]
    cut = own_store("cut")
    unfinished = train(cut, stop=60)
    with pytest.raises(ProtocolError, match="recorded 2 of the task's 12 segments"):
        unfinished.learning_proof()
    assert train(cut).learning_proof()[1].log_root == whole.log_root


def test_a_step_that_was_left_out_is_rejected() -> None:
    store = own_store("skipping")
    digest, proof = train(store, skipped=130).learning_proof()
    assert verdict(Training(store, loaded(), digest, proof), 5).outcome is Outcome.REJECTED
    assert verdict(Training(store, loaded(), digest, proof), 4).outcome is Outcome.ACCEPTED


def test_another_training_is_refused_after_its_first_step() -> None:
    with pytest.raises(ProtocolError, match=r"first step isn't the task's: its optimizer differs by 0\.\d+ .*items="):
        train(own_store("scaled"), scale=1.04)


def test_the_model_has_to_be_the_task_s(tmp_path: Path) -> None:
    model = digits.build_model(1, hidden=32)
    with pytest.raises(ProtocolError, match=r"hidden\.weight is"):
        Recorder(f"file://{tmp_path}", model, digits.build_optimizer(model), task=loaded()).resume()


def test_an_optimizer_that_has_worked_before_is_noticed(tmp_path: Path) -> None:
    model = digits.build_model(1)
    optimizer = digits.build_optimizer(model)
    digits.loss_function(model(torch.ones(1, 64)), torch.zeros(1, dtype=torch.int64)).backward()
    optimizer.step()
    with pytest.raises(ProtocolError, match=r"begin with the task's state: .*momentum_buffer"):
        Recorder(f"file://{tmp_path}", model, optimizer, task=loaded()).resume()


def test_averages_of_the_weights_are_not_recorded(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}")
    model = digits.build_model(1)
    optimizer, data = digits.build_optimizer(model), digits.dataset()
    step = capture(model, digits.loss_function, optimizer, data, digits.order(1, 4), Loop(ema=0.9))
    task = load(store, publish(store, step, steps=4, interval=2)[0])
    with pytest.raises(UnsupportedError, match="averages of the weights"):
        Recorder(store, model, optimizer, task=task).resume()


def test_what_does_not_go_together(tmp_path: Path) -> None:
    model = digits.build_model(1)
    optimizer = digits.build_optimizer(model)
    where = f"file://{tmp_path}"
    with pytest.raises(ProtocolError, match="leave out sealing="):
        Recorder(where, model, optimizer, task=loaded(), sealing=Sealing([bytes(32)]))
    with pytest.raises(ProtocolError, match="asks for a checkpoint every 25"):
        Recorder(where, model, optimizer, task=loaded(), every=10)
    with pytest.raises(UnsupportedError, match="'task' can't be the name of a part"):
        Recorder(where, model, parts={"task": optimizer})
    with pytest.raises(UnsupportedError, match="'progress' can't be the name of a part"):
        Recorder(where, model, parts={"progress": optimizer})
    with pytest.raises(UnsupportedError, match="doesn't update"):
        Recorder(where, model, task=loaded())
    recorder = Recorder(where, model, optimizer, every=25)
    recorder.resume()
    with pytest.raises(ProtocolError, match="give the recorder the task"):
        recorder.learning_proof()
    recorder.close()
    with pytest.raises(ProtocolError, match="recorded without a task"):
        Recorder(where, model, optimizer, task=loaded()).resume()


def test_adam_with_dropout_and_running_statistics(tmp_path: Path) -> None:
    """Moments by parameter, a counter of 64 bits and the task's own random numbers: replays are as near as ever."""

    def build() -> nn.Module:
        # Without the bias: normalisation takes its gradient away, and Adam would make steps of the rounding errors.
        return nn.Sequential(nn.Linear(64, 12, bias=False), nn.BatchNorm1d(12), nn.Dropout(0.3), nn.Linear(12, 10))

    def adam(model: nn.Module) -> torch.optim.Optimizer:
        decayed = {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1}
        others = {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}
        return torch.optim.AdamW([others, decayed], lr=1e-2)

    steps, interval, seed = 8, 4, 3
    store, (images, labels), order = Store(f"file://{tmp_path}"), digits.dataset(), digits.order(1, steps)
    model = build()
    captured = capture(model, digits.loss_function, adam(model), (images, labels), order, seed=seed)
    task = load(store, publish(store, captured, steps=steps, interval=interval)[0])
    own = build()
    optimizer, randomness = adam(own), TaskRandomness(seed)
    recorder = Recorder(store, own, optimizer, task=task)
    recorder.resume()
    for number in range(steps):
        with randomness.step(number):
            loss = digits.loss_function(own(images[order[number]]), labels[order[number]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    digest, proof = recorder.learning_proof()
    executor = CpuExecutor(task.program, task.constants)
    thresholds = measure_profile(task, CpuExecutor, 2, 2).thresholds
    for segment in range(2):
        found = verify_segment(store, task, proof, executor, segment, thresholds)
        assert found.outcome is Outcome.ACCEPTED, found.detail
    end = dict(zip(task.names.slots, load_checkpoint(store, task, proof.checkpoints[-1]), strict=True))
    assert end["1.num_batches_tracked"] == steps
    assert end["0.weight:exp_avg_sq"].any()
    assert learning_proof.load(store, digest, task) == proof


def test_another_task_is_not_gone_on_with(tmp_path: Path) -> None:
    store, model = own_store("other"), digits.build_model(1)
    Recorder(store, model, digits.build_optimizer(model), task=loaded()).resume()
    other = dataclasses.replace(loaded(), digest="ab" * 32)
    assert np.array_equal(other.initial_state[0], loaded().initial_state[0])
    with pytest.raises(ProtocolError, match="recorded task"):
        Recorder(store, model, digits.build_optimizer(model), task=other).resume()
