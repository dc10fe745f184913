"""What a task begins with: drawn by a program, or the end of another proof, down to the first training."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import rfc8785
import torch
from torch import Tensor, nn

from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, Loop, capture, capture_initialization
from pol.training.lineage.base_training import take_over
from pol.training.lineage.lineage import verify_lineage
from pol.training.storage.store import Store
from pol.training.task import initialization
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import TaskDocument
from pol.training.task.task_randomness import TaskRandomness
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_start import TaskStart
from pol.training.task.task_training import train

STEPS, INTERVAL, SEED = 4, 2, 2**40 + 7
INPUTS = torch.linspace(-1, 1, 40).reshape(10, 4)
LABELS = torch.arange(10) % 3
ORDER = torch.arange(STEPS * 5).reshape(STEPS, 5) % 10


def network() -> nn.Module:
    """Draws, zeros, ones, a counter, and dropout whose masks the task's seed decides."""
    hidden = nn.Linear(4, 8)
    nn.init.normal_(hidden.weight, std=0.02)
    return nn.Sequential(hidden, nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3))


class Adapted(nn.Module):
    """The network with a low-rank adapter and another head."""

    def __init__(self) -> None:
        super().__init__()
        self.base = network()
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.head = nn.Linear(3, 2)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.base(x)) + self.up(self.down(x))
        return scores


def drawn(build: Callable[[], nn.Module]) -> nn.Module:
    """The model with the first weights of the task."""
    with TaskRandomness(SEED).initialization():
        return build()


def captured(model: nn.Module, loop: Loop = Loop(), classes: int = 3) -> Capture:  # noqa: B008  # immutable
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, initial_accumulator_value=0.25)
    data = (INPUTS, LABELS % classes)
    return capture(model, nn.functional.cross_entropy, optimizer, data, ORDER, loop, SEED)


@cache
def first() -> tuple[Store, str]:
    """A task that begins with drawn weights; averages and sums of squares begin with what they always do."""
    store = Store("memory://start")
    step = captured(drawn(network), Loop(ema=0.9))
    start = TaskStart(
        initialization=initialization.publish_initialization(store, capture_initialization(network, SEED, step))
    )
    digest, _ = publish(store, step, steps=STEPS, interval=INTERVAL, start=start)
    return store, digest


def trained(store: Store, digest: str) -> str:
    """The digest of an honest proof of a task."""
    task = load(store, digest)
    recorder = TaskRecorder(store, task)
    train(task, NativeExecutor(task.aten), recorder)
    return recorder.publish({})[0]


@cache
def base_proof() -> str:
    return trained(*first())


@cache
def second() -> tuple[Store, str]:
    """A task that goes on from the proof of the first with an adapter and a new head."""
    store, _ = first()
    model = drawn(Adapted)
    taken = take_over(model.base, store, base_proof())
    slots = {f"base.{name}": source for name, source in taken.items()}
    step = captured(model, classes=2)
    others = set(step.names.slots) - slots.keys()
    drawing = initialization.publish_initialization(store, capture_initialization(Adapted, SEED, step, others))
    start = TaskStart(base_proof(), slots, drawing)
    return store, publish(store, step, steps=STEPS, interval=INTERVAL, start=start)[0]


def changed(digest: str, change: Callable[[dict[str, Any]], object]) -> str:
    """The digest of the same task document with changes."""
    store, _ = first()
    document = json.loads(store.get(digest))
    change(document)
    return store.put(rfc8785.dumps(document))


def test_drawn_weights_load_anywhere() -> None:
    store, digest = first()
    task = load(store, digest)
    assert TaskDocument.decode(task.document.encode()) == task.document
    model = drawn(network)
    state = dict(zip(task.names.slots, task.initial_state, strict=True))
    for name, parameter in model.named_parameters():
        assert np.array_equal(state[name].view(np.float32), parameter.detach().numpy())
        assert np.array_equal(state[f"ema.{name}"], state[name])
        assert (state[f"{name}:sum"].view(np.float32) == 0.25).all()
    assert (state["1.running_var"].view(np.float32) == 1).all()
    (level,) = task.lineage
    assert (level.kind, level.base, dict(level.taken), level.rest) == ("initialisation", None, {}, ())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda i: i.update(seed="8"), "another seed"),
        (lambda i: i.update(program_hash="ab" * 32), "program hash"),
        (lambda i: i["slots"].reverse(), "has the shape"),
        (lambda i: i["slots"].pop(), "names"),
        (lambda i: i["slots"].__setitem__(0, "no.such"), "doesn't have"),
        (lambda i: i.update(seed="0x8"), "decimal"),
        (lambda i: i.update(more=1), "members"),
    ],
)
def test_a_false_initialisation_is_noticed(change: Callable[[Any], object], problem: str) -> None:
    store, digest = first()
    with pytest.raises(ProtocolError, match=problem):
        load(store, changed(digest, lambda document: change(document["start"]["initialisation"])))


def test_other_weights_than_drawn_are_refused() -> None:
    store, _ = first()
    model = drawn(network)
    with torch.no_grad():
        model[0].weight[3, 2] += 1e-6
    step = captured(model)
    start = TaskStart(
        initialization=initialization.publish_initialization(store, capture_initialization(network, SEED, step))
    )
    with pytest.raises(ProtocolError, match=r"slot 0\.weight isn't the tensor that the initialization draws"):
        publish(store, step, steps=STEPS, interval=INTERVAL, start=start)


def test_what_comes_from_nowhere_is_zero() -> None:
    store, _ = first()
    step = captured(drawn(network))
    drawing = capture_initialization(network, SEED, step, set(step.names.slots) - {"0.weight:sum"})
    with pytest.raises(ProtocolError, match=r"0\.weight:sum has no source"):
        publish(
            store,
            step,
            steps=STEPS,
            interval=INTERVAL,
            start=TaskStart(initialization=initialization.publish_initialization(store, drawing)),
        )


def test_a_program_that_reads_more_than_a_seed_is_none() -> None:
    """Trained weights could come as a constant."""
    store, digest = first()
    task = load(store, digest)
    forged = {"program": task.document.program, "program_hash": task.document.program_hash.hex()}
    with pytest.raises(ProtocolError, match="nothing else"):
        load(store, changed(digest, lambda document: document["start"]["initialisation"].update(forged)))


def test_a_program_that_costs_too_much_is_not_run() -> None:
    class Sums(nn.Module):
        """One number from a sum over many draws."""

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(1 << 14).sum().reshape(1))

    store = Store("memory://costly")
    drawing = initialization.publish_initialization(store, capture_initialization(Sums))
    with pytest.raises(ProtocolError, match="costs more"):
        initialization.run(store, drawing, {"scale": (1,)})
    with pytest.raises(ProtocolError, match="has the shape"):
        initialization.run(store, drawing, {"scale": (2,)})
    with pytest.raises(ProtocolError, match="no tensor of this name"):
        initialization.run(store, drawing, {})


def test_weights_from_elsewhere_have_no_initialisation() -> None:
    trained_before = torch.randn(8, 4)

    def build() -> nn.Module:
        model = nn.Linear(4, 8)
        with torch.no_grad():
            model.weight.copy_(trained_before)
        return model

    with pytest.raises(UnsupportedError, match="from elsewhere"):
        capture_initialization(build)


def test_a_proof_stands_on_a_proof() -> None:
    store, digest = second()
    task = load(store, digest)
    top, bottom = task.lineage
    assert (top.kind, top.base, bottom.kind, bottom.document) == ("proof", base_proof(), "initialisation", first()[1])
    assert top.taken["base.0.weight"] == "0.weight"
    assert {"down.weight", "head.weight", "head.bias"} <= set(top.drawn)
    assert not np.array_equal(task.initial_state[0], load(*first()).initial_state[0])
    assert verify_lineage(store, digest) == task.lineage
    assert verify_lineage(store, base_proof()) == (bottom,)
    recorder = TaskRecorder(store, task)
    train(task, NativeExecutor(task.aten), recorder)
    proof, document = recorder.publish({})
    end = load_checkpoint(store, task, document.checkpoints[-1])
    step = Capture(task.aten, task.program, task.names, task.constants, end)
    start = TaskStart(proof, {name: name for name in task.names.slots})
    third, _ = publish(store, step, steps=STEPS, interval=INTERVAL, start=start)
    assert [level.kind for level in load(store, third).lineage] == ["proof", "proof", "initialisation"]
    with pytest.raises(ProtocolError, match="more trainings than are followed"):
        load(store, third, levels=2)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s["slots"].update({"base.0.weight": "ema.0.weight"}), "isn't ema.0.weight at the end of the base"),
        (lambda s: s["slots"].update({"base.0.weight": "3.weight"}), r"3.weight at the end of the base is"),
        (lambda s: s["slots"].update({"base.0.weight": "none"}), "which the base doesn't have"),
        (lambda s: s["slots"].update({"none": "0.weight"}), "which the task doesn't have"),
        (lambda s: s["slots"].pop("base.0.weight"), "has no source"),
        (lambda s: s.update(slots={}), "name both"),
        (lambda s: s["slots"].update({"head.weight": "0.weight"}), "choose one of the two"),
        (lambda s: s.update(proof=first()[1]), "the learning proof isn't a pol/learning-proof"),
        (lambda s: s.update(kind="borrowed"), "is unknown"),
        (lambda s: s.update(initialisation=None), "has no source"),
    ],
)
def test_a_false_base_is_noticed(change: Callable[[Any], object], problem: str) -> None:
    store, digest = second()
    with pytest.raises(ProtocolError, match=problem):
        load(store, changed(digest, lambda document: change(document["start"])))


def test_a_base_that_does_not_exist_is_operational() -> None:
    store, digest = second()
    with pytest.raises(OperationalError):
        load(store, changed(digest, lambda document: document["start"].update(proof="ab" * 32)))


def test_a_forged_base_proof_is_noticed() -> None:
    """A last checkpoint of the forger's own, under a log root that isn't its own."""
    store, digest = second()
    proof = json.loads(store.get(base_proof()))
    proof["checkpoints"][-1]["object"] = proof["checkpoints"][0]["object"]
    forged = store.put(rfc8785.dumps(proof))
    with pytest.raises(ProtocolError, match="its entry says"):
        load(store, changed(digest, lambda document: document["start"].update(proof=forged)))
    proof["checkpoints"][-1]["state_root"] = proof["checkpoints"][0]["state_root"]
    forged = store.put(rfc8785.dumps(proof))
    with pytest.raises(ProtocolError, match="checkpoint log"):
        load(store, changed(digest, lambda document: document["start"].update(proof=forged)))


def test_a_forged_start_below_is_noticed_above() -> None:
    """The base's own start is checked too: who stands on it stands on all of it."""
    store, digest = second()
    forged_task = changed(first()[1], lambda document: document["start"]["initialisation"].update(seed="8"))
    proof = json.loads(store.get(base_proof()))
    proof["task"] = forged_task
    forged = store.put(rfc8785.dumps(proof))
    with pytest.raises(ProtocolError, match="another seed"):
        load(store, changed(digest, lambda document: document["start"].update(proof=forged)))
