"""Checkpoints that are tampered with, and training on other data, in other precision, at other rates."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attack_tasks import CNN, MLP, SEGMENTS, findings, target
from lab.attacks import target_tasks
from lab.attacks.attack_loop import AttackLoop, RoundedProducts
from lab.attacks.attack_target import numbers, words_of
from lab.attacks.false_data import hidden_from_print
from lab.attacks.forgery import Workshop
from lab.attacks.other_settings import scaled_rate
from pol.claims.distance import component_distances
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import tensor_root
from pol.demo import digits
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.published_task import load, publish
from pol.verification.profile.state_metrics import component_metrics


@pytest.mark.parametrize(("name", "kind"), [("nan", MLP), ("infinity", MLP), ("huge", MLP), ("step-counter", CNN)])
def test_a_word_without_a_distance_and_a_wrong_counter_are_infinitely_far(name: str, kind: tuple[str, str]) -> None:
    assert findings(name, *kind).ratio((1.0, 1.0, 1.0)) == float("inf")


def test_a_cosine_would_not_see_a_longer_update() -> None:
    found = findings("double-update")
    segment = found.cheated[0]
    start, end = found.forgery.states[segment : segment + 2]
    replayed = target().segment_end(start, segment)
    seen = component_metrics(target().task.program, start, replayed, end, Component.PARAMETER)
    assert seen is not None
    assert abs(seen.cosine) < 1e-6
    assert seen.relative_l2 > 0.99


def test_what_is_moved_between_components_comes_back_in_the_next_step() -> None:
    """A verifier that compares weights only, one step later, would see a hundredth of what was moved."""
    found = findings("shift-components")
    segment = found.cheated[0]
    start, end = found.forgery.states[segment : segment + 2]
    honest = target().segment_end(start, segment)
    step = (segment + 1) * target().interval
    after, _ = target().executor.advance(end, step)
    expected, _ = target().executor.advance(honest, step)
    places = target().places(Component.PARAMETER)
    before = sum(float(np.abs(numbers(end[i]) - numbers(honest[i])).sum()) for i in places)
    left = sum(float(np.abs(numbers(after[i]) - numbers(expected[i])).sum()) for i in places)
    assert left < 0.2 * before


def test_negative_and_denormal_zeros_have_no_distance_and_no_effect() -> None:
    found = findings("negative-zeros", *MLP)
    segment = found.cheated[0]
    end = found.forgery.states[segment + 1]
    honest = target().segment_end(found.forgery.states[segment], segment)
    assert any((a != b).any() for a, b in zip(end, honest, strict=True))
    assert component_distances(target().task.program, honest, end) == (0, 0, 0)
    step = (segment + 1) * target().interval
    after, _ = target().executor.advance(end, step)
    expected, _ = target().executor.advance(honest, step)
    worst = max(float(np.abs(numbers(a) - numbers(b)).max()) for a, b in zip(after, expected, strict=True))
    assert worst < 1e-44


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


def test_products_read_rounded_operands() -> None:
    x = torch.tensor([[1.0 + 2.0**-10, 1.0 + 2.0**-12, 3.0]])
    with RoundedProducts(11):
        assert (x @ torch.eye(3)).tolist() == [[1.0 + 2.0**-10, 1.0, 3.0]]
    with RoundedProducts(24):
        assert (x @ torch.eye(3)).tolist() == x.tolist()


def test_the_loop_in_full_precision_is_honest() -> None:
    """What rejects the others is their precision, not the loop that they run in."""
    for kind in (MLP, CNN):
        loop = AttackLoop(target(*kind))
        end = loop.train(target(*kind).honest[3], 3 * target().interval, target().interval)
        for ours, theirs in zip(end, target(*kind).honest[4], strict=True):
            np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-3, atol=1e-5)


def test_scaling_the_update_is_training_at_another_rate() -> None:
    model = digits.build_model(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.055, momentum=0.9)
    other = capture(model, digits.loss_function, optimizer, digits.dataset(), digits.order(1, 60))
    workshop = Workshop(target())
    real = workshop.run(CpuExecutor(other.program, other.constants))
    forged = scaled_rate(workshop, lambda _: 1.1).states
    for place in range(4):
        np.testing.assert_allclose(numbers(forged[1][place]), numbers(real[1][place]), rtol=1e-4, atol=1e-6)
