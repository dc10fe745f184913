"""Exact training by the lines of the user's own loop: the bytes of `step(x, y)`, its batches, objects as they were."""

import copy
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from own_loop_training import (
    LABELS,
    STEPS,
    Pair,
    Training,
    X,
    batches,
    bytes_of,
    chained,
    cosine,
    joined,
    network,
    of_pair,
    plain,
    squares,
    training,
)
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD
from torch.optim.swa_utils import AveragedModel

import chosen_rows
from pol import Recorder, exact
from pol.errors import PolError, UnsupportedError

CASES: dict[str, dict[str, Any]] = {
    "schedule": {"schedule": cosine},
    "joined schedules": {"schedule": joined},
    "chained schedules": {"schedule": chained},
    "function of torch": {"make": network},
    "module": {"make": network, "loss": nn.CrossEntropyLoss(label_smoothing=0.1), "schedule": cosine},
    "own": {"make": network, "loss": squares, "schedule": cosine, "clip_norm": 0.5, "accumulation": 2, "ema": 0.9},
}


@pytest.mark.parametrize("case", chosen_rows.named(CASES, "schedule", "own", others=pytest.mark.slow))
def test_the_bytes_are_those_of_the_step(case: str) -> None:
    """Of parameters, buffers, optimizer, scheduler, averages and losses."""
    called, looped = training(**CASES[case]), training(**CASES[case])
    expected = called.losses()
    with looped.step.own_loop() as loss:
        assert [looped.lines(loss, x, y) for x, y in batches()] == expected
    assert looped.state() == called.state()
    assert (case == "own") == bool(looped.step.averages)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), functional.cross_entropy], ids=["module", "function"])
def test_a_loss_of_torch_is_known_by_itself(loss: Any) -> None:
    called, looped = training(loss=loss), training(loss=loss)
    expected = called.losses()
    with looped.step.own_loop():
        assert [looped.lines(loss, x, y) for x, y in batches()] == expected
    assert looped.state() == called.state()


def test_the_program_checked_from_the_first_step_on() -> None:
    """The two eager steps of the check leave nothing behind, nor does a state that the first step makes."""

    def made() -> Training:
        now = training(network)
        optimizer = SGD(now.model.parameters(), 0.1, momentum=0.9)
        step = exact(now.model, functional.cross_entropy, optimizer, steps=STEPS, check=True)
        return Training(now.model, optimizer, None, step)

    called, looped = made(), made()
    expected = called.losses()
    with looped.step.own_loop() as loss:
        assert [looped.lines(loss, x, y) for x, y in batches()] == expected
    assert looped.state() == called.state()


def test_several_inputs_and_outputs() -> None:
    called, looped = training(Pair, of_pair), training(Pair, of_pair)
    with looped.step.own_loop() as loss:
        for x, y in batches():
            called.step(x, x + 1, y)
            looped.optimizer.zero_grad()
            loss(looped.model(x, x + 1), y).backward()
            looped.optimizer.step()
    assert looped.state() == called.state()


def test_what_a_loop_does_besides_training_has_true_values() -> None:
    """The loss before the step, evaluation, averages by torch, copies and states, another batch size and rate."""
    called, looped = training(network), training(network)
    averages = [AveragedModel(each.model) for each in (called, looped)]

    def look(each: Training, average: AveragedModel) -> list[Any]:
        average.update_parameters(each.model)
        each.model.eval()
        with torch.no_grad():
            output = each.model(X)
            found = [output.tolist(), functional.cross_entropy(output, LABELS).item()]
        each.model.train()
        return [*found, bytes_of(copy.deepcopy(each.model).state_dict()), bytes_of(average.state_dict())]

    with looped.step.own_loop() as loss:
        for number, batch in enumerate(batches()):
            x, y = (part[number // 4 :] for part in batch)
            for each in (called, looped):
                each.optimizer.param_groups[0]["lr"] = 1e-2 / (1 + number // 3)
            looped.optimizer.zero_grad()
            value = loss(looped.model(x), y)
            early = float(f"{value.detach().item():.17g}")
            assert torch.isfinite(value)
            value.sum().backward()
            looped.optimizer.step()
            assert early == value.item() == called.step(x, y).item()
            assert look(looped, averages[1]) == look(called, averages[0])
    assert looped.state() == called.state()


def test_a_recorded_loop_has_the_roots_of_the_step(tmp_path: Path) -> None:
    """Also where it is resumed."""

    def train(folder: str, own: bool, steps: int) -> list[bytes]:
        now = training(network, schedule=cosine)
        recorder = Recorder(
            f"file://{tmp_path}/{folder}", now.model, now.optimizer, every=2, scheduler=now.scheduler,
            parts={"exact": now.step},
        )  # fmt: skip
        recorder.resume()
        left = list(batches())[recorder.steps : steps]
        if own:
            with now.step.own_loop() as loss:
                for x, y in left:
                    now.lines(loss, x, y)
                    recorder.step()
        else:
            for x, y in left:
                now.step(x, y)
                recorder.step()
        return [checkpoint.root for checkpoint in recorder.close().checkpoints]

    whole = train("called", False, STEPS)
    assert len(set(whole)) == STEPS // 2 + 1
    assert train("looped", True, STEPS) == whole
    assert train("parts", True, 4) == whole[:3]
    assert train("parts", True, STEPS) == whole


@pytest.mark.parametrize("fails", [False, True])
def test_all_objects_are_restored(fails: bool) -> None:
    """Also after an exception between two lines."""
    criterion = nn.CrossEntropyLoss()
    now = training(loss=criterion, schedule=cosine)
    assert now.scheduler is not None
    x, y = next(batches())
    now.step(x, y)  # torch counts the first step in an attribute of the optimizer
    objects = (now.model, now.optimizer, now.scheduler, criterion)
    before = [(type(each), list(vars(each)), each.step if each is now.optimizer else None) for each in objects]
    try:
        with now.step.own_loop() as loss:
            assert set(now.scheduler.state_dict()) == {*vars(now.scheduler)} - {"optimizer"}
            assert isinstance(now.scheduler, before[2][0])
            now.optimizer.zero_grad()
            loss(now.model(x), y).backward()
            if fails:
                raise KeyError
            now.optimizer.step()
            now.scheduler.step()
    except KeyError:
        assert fails
    assert before == [(type(each), list(vars(each)), each.step if each is now.optimizer else None) for each in objects]
    assert all(parameter.grad is None for parameter in now.model.parameters())
    assert now.step.number == (1 if fails else 2)
    value = loss(now.model(x), y)
    assert value.item() == criterion(now.model(x), y).item()
    value.backward()
    assert all(parameter.grad is not None for parameter in now.model.parameters())


def test_a_loss_that_is_kept_keeps_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    now = training()
    compute, computed = now.step._compute, []

    def noted(*given: Any) -> Any:
        found = compute(*given)
        computed.append(weakref.ref(found))
        return found

    monkeypatch.setattr(now.step, "_compute", noted)
    kept = []
    with now.step.own_loop() as loss:
        for x, y in batches():
            now.optimizer.zero_grad()
            kept.append(loss(now.model(x), y))
            kept[-1].backward()
            assert computed[-1]() is not None
            now.optimizer.step()
    gc.collect()
    assert [each() for each in computed] == [None] * STEPS


def test_steps_before_inside_and_after_a_loop_are_one_training() -> None:
    called, mixed = training(network, schedule=cosine), training(network, schedule=cosine)
    called.losses()
    for number, (x, y) in enumerate(batches()):
        if number not in {2, 3}:
            mixed.step(x, y)
            continue
        with mixed.step.own_loop() as loss:
            mixed.lines(loss, x, y)
    assert mixed.state() == called.state()


@pytest.mark.parametrize("name", ["a buffer of numpy", "data", "in place"])
def test_the_inputs_are_those_of_the_call(name: str) -> None:
    """A loader that fills one buffer again and again changes no step that began before."""
    called, looped = training(), training()
    with looped.step.own_loop() as loss:
        for x, y in batches():
            called.step(x, y)
            array = x.numpy().copy()
            given = torch.from_numpy(array)
            looped.optimizer.zero_grad()
            output = looped.model(given)
            if name == "in place":
                given.zero_()
            elif name == "data":
                given.data.zero_()
            else:
                array[:] = 0
            loss(output, y).backward()
            looped.optimizer.step()
    assert looped.state() == called.state()


class Changing(nn.Module):
    """Changes its input."""

    def __init__(self, change: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.layer, self.change = nn.Linear(6, 3), change

    def forward(self, x: Tensor) -> Tensor:
        self.change(x)
        return torch.as_tensor(self.layer(x))


CHANGES: dict[str, Callable[[Tensor], object]] = {
    "itself": lambda x: x.mul_(1.5),
    "a part": lambda x: x.__setitem__((slice(None), 0), 0.0),
    "a view": lambda x: x.T.detach().view(6, -1).add_(1),
    "a piece": lambda x: x.chunk(2)[1].zero_(),
    "its data": lambda x: x.data.zero_(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("own", [False, True], ids=["call", "loop"])
def test_a_model_that_changes_its_input_is_refused(change: str, own: bool) -> None:
    now = training(lambda: Changing(CHANGES[change]))
    x, y = next(batches())
    before = x.clone()

    def take() -> None:
        if not own:
            now.step(x, y)
            return
        with now.step.own_loop() as loss:
            now.lines(loss, x, y)

    with pytest.raises(UnsupportedError, match="writes into a tensor of the batch"):
        take()
    assert torch.equal(x, before)


def test_a_loss_that_changes_its_target_is_refused_and_a_copy_may_change() -> None:
    with pytest.raises(UnsupportedError, match="writes into a tensor of the batch"):
        training(loss=lambda o, target: functional.cross_entropy(o, target.clamp_(max=1))).step(*next(batches()))
    training(lambda: Changing(lambda x: x.clone().mul_(2))).step(*next(batches()))
    with pytest.raises(UnsupportedError, match=r"model.0: ReLU -- .*writes into a tensor of the batch"):
        training(lambda: nn.Sequential(nn.ReLU(inplace=True), plain())).step(*next(batches()))


def test_arguments_at_their_defaults_are_none() -> None:
    called, looped = training(), training()
    with looped.step.own_loop():
        for x, y in batches():
            called.step(x, y)
            looped.optimizer.zero_grad()
            value: Any = functional.cross_entropy(
                looped.model(x),
                y,
                ignore_index=int("-100"),
                reduction="".join(["me", "an"]),
                label_smoothing=float("0"),
            )
            value.backward()
            looped.optimizer.step()
    assert looped.state() == called.state()
    called, looped = training(), training()
    with pytest.raises(PolError, match="two arguments"), looped.step.own_loop():
        functional.cross_entropy(looped.model(X[:8]), LABELS[:8], ignore_index=1)
