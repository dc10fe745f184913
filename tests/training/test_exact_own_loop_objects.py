"""Objects around an exact training: other threads, hooks, interruptions, copies, weights of the loss."""

import copy
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from own_loop_training import STEPS, Training, batches, bytes_of, chained, cosine, joined, plain, training
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import ProtocolError, UnsupportedError
from pol.training.exact.training_tensors import TrainingTensors

pytestmark = pytest.mark.long

ENTERED, GO = threading.Event(), threading.Event()


class Slow(nn.Module):
    """Waits in an evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            ENTERED.set()
            GO.wait(300)
        return torch.as_tensor(self.layer(x))


def test_another_thread_may_evaluate_meanwhile() -> None:
    """The loop's own lines are exact while the model of an evaluation runs, and it gets its values."""
    called, looped = (training(Slow, nn.CrossEntropyLoss(), cosine) for _ in range(2))
    given = list(batches())[:3]
    x = given[0][0]
    for batch in given:
        called.step(*batch)
    found: list[Tensor] = []

    def evaluate() -> None:
        with torch.no_grad():
            found.append(looped.model(x))

    with looped.step.own_loop() as loss:
        looped.lines(loss, *given[0])
        with torch.no_grad():
            GO.set()
            expected = looped.model(x)
        ENTERED.clear()
        GO.clear()
        thread = threading.Thread(target=evaluate)
        thread.start()
        assert ENTERED.wait(300)
        before = looped.model.state_dict()["layer.weight"].clone()
        looped.lines(loss, *given[1])
        assert looped.step.number == 2
        assert not torch.equal(before, looped.model.state_dict()["layer.weight"])
        GO.set()
        thread.join()
        looped.lines(loss, *given[2])
    assert found[0].shape == expected.shape
    assert looped.state() == called.state()


def halved(module: nn.Module, gradient: Any) -> Any:
    return (gradient[0] / 2,)


def added(way: str) -> Callable[[Training], object]:
    """Changes the hooks of a training."""

    def change(now: Training) -> object:
        layer = now.model.get_submodule("0")
        if way == "forward":
            layer._forward_hooks.clear()
            return layer.register_forward_hook(lambda module, inputs, output: output * 2)
        if way == "forward pre":
            return layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
        if way == "backward":
            return layer.register_full_backward_hook(lambda module, before, after: None)
        if way == "backward pre":
            return layer.register_full_backward_pre_hook(halved)
        if way == "global":
            return torch.nn.modules.module.register_module_forward_hook(
                lambda module, inputs, output: output * 2 if isinstance(module, nn.Tanh) else None
            )
        weight: Any = layer.get_parameter("weight")
        if way == "gradient":
            return weight.register_hook(lambda gradient: gradient * 0)
        return weight.register_post_accumulate_grad_hook(lambda parameter: None)

    return change


@pytest.mark.parametrize("own", chosen_rows.first([True, False], 1, others=pytest.mark.slow), ids=["loop", "call"])
@pytest.mark.parametrize(
    "way",
    chosen_rows.first(
        ["forward", "backward pre", "gradient", "forward pre", "backward", "global", "after"],
        3,
        others=pytest.mark.slow,
    ),
)
def test_a_hook_that_comes_later_is_followed_or_refused(way: str, own: bool) -> None:
    """As if the step had been made with it."""

    def steps(now: Training, given: list[tuple[Tensor, Tensor]]) -> None:
        if not own:
            for batch in given:
                now.step(*batch)
            return
        with now.step.own_loop() as loss:
            for batch in given:
                now.lines(loss, *batch)

    late, early = training(), training()
    first, second = list(batches())[:2]
    late.model.get_submodule("0").register_forward_hook(lambda module, inputs, output: None)
    steps(late, [first])
    steps(early, [first])
    early.step._programs.clear()
    hook: Any = added(way)(late)
    try:
        refused = None
        try:
            if way != "global":
                added(way)(early)
            early.step(*second)
        except UnsupportedError as error:
            refused = str(error)
        assert refused is None or "hook" in refused
        if refused is None:
            steps(late, [second])
            assert late.state() == early.state()
        else:
            assert way in {"gradient", "after"}
            with pytest.raises(UnsupportedError, match="hook"):
                steps(late, [second])
    finally:
        hook.remove()


@pytest.mark.parametrize(("where", "own"), [("counters", False), ("counters", True), ("scheduler", False)])
def test_no_step_follows_a_state_that_was_written_in_part(
    where: str, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until one is loaded; then the training is that without an interruption."""
    whole, now = training(schedule=cosine), training(schedule=cosine)
    whole.losses()
    (x, y), *rest = list(batches())

    def take(*batch: Tensor) -> None:
        if not own:
            now.step(*batch)
            return
        with now.step.own_loop() as loss:
            now.lines(loss, *batch)

    take(x, y)
    parts = {"model": now.model, "optimizer": now.optimizer, "scheduler": now.scheduler, "step": now.step}
    kept = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "counters":
            patch.setattr(TrainingTensors, "_count", interrupt)
        else:
            patch.setattr(type(now.scheduler), "step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            take(*rest[0])
    for _ in range(2):
        with pytest.raises(ProtocolError, match=r"interrupted while its state was written.*load"):
            take(*rest[0])
    with pytest.raises(ProtocolError, match="interrupted while its state was written"):
        now.step.state_dict()
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    for batch in rest:
        take(*batch)
    assert now.state() == whole.state()


def saved(part: Any) -> Any:
    file = io.BytesIO()
    torch.save(part, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES: dict[str, Callable[[Any], Any]] = {
    "deep": copy.deepcopy,
    "shallow": copy.copy,
    "pickle": lambda part: pickle.loads(pickle.dumps(part)),
    "oldest pickle": lambda part: pickle.loads(pickle.dumps(part, 0)),
    "torch": saved,
}


@pytest.mark.parametrize("schedule", chosen_rows.first([joined, cosine, chained], 1, others=pytest.mark.slow))
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_the_scheduler_is_another_one(way: str, schedule: Any) -> None:
    """Of the user's class; its steps are torch's own."""
    now = training(schedule=schedule)
    x, y = next(batches())
    with now.step.own_loop() as loss:
        now.lines(loss, x, y)
        before = bytes_of(now.scheduler.state_dict()) if now.scheduler is not None else None
        made = COPIES[way](now.scheduler)
        if way != "shallow":  # which steps the same optimizer
            made.step()
            assert bytes_of(now.scheduler.state_dict() if now.scheduler is not None else None) == before
        now.lines(loss, x, y)
    assert type(made) is type(now.scheduler)
    assert now.step.number == 2


def weighted() -> tuple[nn.CrossEntropyLoss, Callable[[Tensor, Tensor], Tensor]]:
    criterion = nn.CrossEntropyLoss(torch.ones(3))
    return criterion, lambda output, target: torch.as_tensor(criterion(output, target))


@pytest.mark.parametrize("kind", ["module", "closure"])
@pytest.mark.parametrize("way", ["changed", "replaced", "gone"])
def test_weights_of_the_loss_that_change_are_refused_at_once(kind: str, way: str) -> None:
    criterion, function = weighted()
    now = training(loss=criterion if kind == "module" else function)
    given = list(batches())
    with now.step.own_loop() as loss:
        for x, y in given[:2]:
            now.lines(loss, x, y)
        if way == "replaced":
            criterion.weight = torch.full((3,), 2.0)
        elif way == "gone":
            criterion.weight = None
        else:
            assert criterion.weight is not None
            criterion.weight.mul_(2.0)
        now.optimizer.zero_grad()
        output = now.model(given[2][0])
        with pytest.raises(ProtocolError, match="weight has changed, and the programs"):
            loss(output, given[2][1])
    assert now.step.number == 2 < STEPS


def test_a_loss_may_read_weights_of_the_model() -> None:
    """Those are states of the training."""
    model: Any = plain()

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return torch.as_tensor(functional.cross_entropy(output, target) + 0.01 * model[0].weight.square().sum())

    now = training(lambda: model, loss)
    with now.step.own_loop() as own:
        losses = [now.lines(own, x, y) for x, y in batches()]
    assert np.isfinite(losses).all()
