"""A task says nothing that isn't recomputed when it is loaded."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rfc8785

from digits_training import loaded, published
from pol.demo import digits
from pol.errors import OperationalError, ProtocolError
from pol.graph.capture import capture
from pol.training.storage.store import Store
from pol.training.task import published_task
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import TaskDocument


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
    task = loaded()
    names = replace(task.names, observed={"loss": 0})
    object_ = store.put(rfc8785.dumps(names.to_dict()))
    with pytest.raises(ProtocolError, match="names"):
        load(store, changed(store, digest, lambda document: document.update(names=object_)))


def test_a_missing_object_is_operational() -> None:
    store, digest = published()
    with pytest.raises(OperationalError):
        load(store, changed(store, digest, lambda document: document.update(program=HASH)))


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
