"""Lies about the data: it is in the task's constants, so training on anything else shows."""

from dataclasses import replace

import numpy as np
import pytest

from attack_tasks import SEGMENTS, Expected, check, findings, target
from lab.attacks import target_tasks
from lab.attacks.attack_target import numbers, words_of
from lab.attacks.false_data import ATTACKS, hidden_from_print
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import tensor_root
from pol.errors import ProtocolError
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.published_task import load, publish

EXPECTED = {
    "other-order": Expected(1.0, SEGMENTS),
    "declared-order": Expected(1.0, None),
    "swapped-batches": Expected(1.0, 1),
    "repeated-batches": Expected(1.0, SEGMENTS),
    "half-batches": Expected(0.5, SEGMENTS),
    "stale-updates": Expected(0.5, SEGMENTS),
    "truncated-hash": Expected(1.0, SEGMENTS),
}
BY_SAMPLE = ("poisoned-labels", "one-pixel")


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_refused_or_rejected(name: str) -> None:
    check(tuple(attack for attack in ATTACKS if attack.name not in BY_SAMPLE), name, EXPECTED)


def test_one_changed_value_shows_where_its_sample_is_seen_and_only_there() -> None:
    found = findings("one-pixel")
    order = target().order()
    steps = np.flatnonzero((order == order[0, 0]).any(axis=1))
    assert found.cheated == sorted({int(step) // target().interval for step in steps})
    assert found.rejected == found.cheated


def test_poisoned_labels_are_rejected() -> None:
    found = findings("poisoned-labels")
    assert found.cost == 1.0
    assert found.rejected == found.cheated
    assert len(found.cheated) > SEGMENTS / 2


def test_a_hash_of_the_printed_array_would_not_see_it() -> None:
    images = numbers(target().task.constants[0])
    changed = hidden_from_print(images)
    assert (images != changed).mean() > 0.1
    assert repr(images) == repr(changed)
    assert keccak256(str(images).encode()) == keccak256(str(changed).encode())
    type_ = target().task.program.constants[0]
    assert tensor_root(type_, words_of(images)) != tensor_root(type_, words_of(changed))


def test_a_task_with_the_hidden_change_under_its_old_roots_is_refused() -> None:
    store = Store("memory://hidden-change")
    captured = target_tasks.captured("mlp", "sgd", 10)
    _, task = publish(store, captured, steps=10, interval=5)
    names = captured.names.constants
    constants = [words_of(hidden_from_print(numbers(captured.constants[0]))), *captured.constants[1:]]
    forged = replace(task, constants=store.put(task_tensors.encode(names, captured.program.constants, constants)))
    with pytest.raises(ProtocolError, match="root of its constants"):
        load(store, store.put(forged.encode()))
