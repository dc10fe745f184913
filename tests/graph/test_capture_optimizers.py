"""Optimizers and the loop around them: the captured step gives the numbers of the user's own loop."""

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Muon,
    NAdam,
    Optimizer,
    RAdam,
    RMSprop,
    Rprop,
    SparseAdam,
    lr_scheduler,
)
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import chosen_rows
from optimizer_training import LABELS, ORDER, STEPS, Make, X, assert_near, canonical, captured, eager, native, network
from pol.errors import UnsupportedError
from pol.graph.capture import Loop, capture
from pol.graph.capture.optimizers import SQUARES_SCALE, Lion
from pol.graph.step_program import Component


def groups(model: nn.Module) -> list[dict[str, Any]]:
    weights = [p for p in model.parameters() if p.dim() > 1]
    return [
        {"params": weights, "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() == 1], "lr": 3e-3, "weight_decay": 0.0},
    ]


OPTIMIZERS: dict[str, Make] = {
    "sgd dampening": lambda p: SGD(p, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "adam": lambda p: Adam(p, 1e-2),
    "adam l2": lambda p: Adam(p, 1e-2, weight_decay=0.1, maximize=True),
    "adamw": lambda p: AdamW(p, 1e-2, weight_decay=0.1),
    "adamw amsgrad": lambda p: AdamW(p, 1e-2, amsgrad=True, betas=(0.5, 0.6)),
    "adamw tensor lr": lambda p: AdamW(p, torch.tensor(1e-2), betas=(0.8, 0.9)),
    "rmsprop": lambda p: RMSprop(p, 1e-2),
    "rmsprop centred": lambda p: RMSprop(p, 1e-2, centered=True, momentum=0.9, weight_decay=0.1),
    "adagrad": lambda p: Adagrad(p, 1e-1, lr_decay=0.1, initial_accumulator_value=0.2),
    "adafactor": lambda p: Adafactor(p, 1e-1, weight_decay=0.1),
    "lion": lambda p: Lion(p, 1e-2, weight_decay=0.1),
    "sgd nesterov": lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam tensor lr and betas": lambda p: Adam(p, torch.tensor(1e-2), betas=(0.7, 0.8), eps=1e-3),
    "radam": lambda p: RAdam(p, 1e-2, betas=(0.9, 0.99)),
    "radam decoupled": lambda p: RAdam(p, 1e-2, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    "radam l2": lambda p: RAdam(p, torch.tensor(1e-2), weight_decay=0.1, maximize=True),
    "nadam": lambda p: NAdam(p, 1e-2),
    "nadam decoupled": lambda p: NAdam(p, 1e-2, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.1),
    "nadam l2": lambda p: NAdam(p, 1e-2, weight_decay=0.1, maximize=True),
    "adamax": lambda p: Adamax(p, 1e-2),
    "adamax l2": lambda p: Adamax(p, 1e-2, weight_decay=0.1, maximize=True),
    "adadelta": lambda p: Adadelta(p, 1.0),
    "adadelta l2": lambda p: Adadelta(p, 0.5, rho=0.8, eps=1e-4, weight_decay=0.1, maximize=True),
    "asgd": lambda p: ASGD(p, 1e-1),
    "asgd averaging": lambda p: ASGD(p, 1e-1, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1),
    "rprop": lambda p: Rprop(p, 1e-2),
    "rprop bounds": lambda p: Rprop(p, 1e-2, etas=(0.3, 1.5), step_sizes=(5e-3, 2e-2), maximize=True),
}


LATER = ["adamw", "rmsprop", "adagrad", "adafactor", "lion", "radam", "nadam", "adamax", "adadelta", "asgd", "rprop"]


@pytest.mark.parametrize(
    "name", chosen_rows.named(OPTIMIZERS, "sgd dampening", "adam l2", *LATER, others=pytest.mark.slow)
)
def test_ten_steps_equal_torchs_optimizer_with_the_same_bits_everywhere(name: str) -> None:
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    for group in optimizer.param_groups:
        group["foreach"] = False
    result = captured(model, optimizer)
    state, losses = native(result)
    assert not any(slot.endswith(":step") for slot in result.names.slots)
    assert losses == pytest.approx(eager(model, optimizer, Loop()), rel=1e-5)
    assert_near(state, model, optimizer, 2e-6)
    if name in {*LATER, "sgd dampening"}:
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters())
        eager(model, optimizer, Loop(), steps=range(3))
        assert_near(canonical(result, 3), model, optimizer, 1e-5)


@pytest.mark.parametrize("name", chosen_rows.named(LATER, "adamw", "radam", "asgd", others=pytest.mark.slow))
def test_state_that_the_optimizer_has_is_the_beginning(name: str) -> None:
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    for group in optimizer.param_groups:
        group["foreach"] = False
    eager(model, optimizer, Loop(), steps=range(3, 6))
    state, _ = native(captured(model, optimizer), 4)
    eager(model, optimizer, Loop(), steps=range(4))
    assert_near(state, model, optimizer, 2e-6)


def test_adamw_is_three_maps_for_each_parameter() -> None:
    model = network()
    result = captured(model, AdamW(model.parameters(), 1e-2))
    names = [name.name for name in result.names.nodes if "0.weight" in name.name and "grad" not in name.name]
    updates = [name for name in result.names.nodes if name.source.startswith("optimizer.step: AdamW (0.weight")]
    assert len(updates) == 3, names
    assert result.names.constants == ("data.0", "data.1", "order", "schedule.rate.0", "schedule.epsilon.0")


SCHEDULERS: dict[str, Callable[[Optimizer], Any]] = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda step: 0.9**step),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=STEPS + 2),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 1e-3, 1e-1, step_size_up=3, cycle_momentum=False),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.ExponentialLR(o, 0.8)], [3]
    ),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.StepLR(o, 2), lr_scheduler.ConstantLR(o, 0.5, total_iters=4)], o
    ),
}


def quiet_scheduler(make: Callable[[Optimizer], Any], optimizer: Optimizer) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(optimizer)


@pytest.mark.parametrize("name", chosen_rows.named(SCHEDULERS, "cosine", "sequence", others=pytest.mark.slow))
@pytest.mark.parametrize(
    "make",
    chosen_rows.first(
        [lambda p: AdamW(p, 1e-2, foreach=False), lambda p: SGD(p, 0.1, momentum=0.9)], 1, others=pytest.mark.slow
    ),
)
def test_schedules_are_simulated_and_left_alone(name: str, make: Make) -> None:
    model = network()
    optimizer = make(groups(model))
    scheduler = quiet_scheduler(SCHEDULERS[name], optimizer)
    before = (
        repr([{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]),
        repr({k: v for k, v in scheduler.state_dict().items() if k != "_schedulers"}),
    )
    result = captured(model, optimizer, Loop(scheduler=scheduler))
    after = (
        repr([{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]),
        repr({k: v for k, v in scheduler.state_dict().items() if k != "_schedulers"}),
    )
    assert before == after
    state, _ = native(result)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager(model, optimizer, Loop(), scheduler)
    assert_near(state, model, optimizer, 3e-6)


def test_a_schedule_may_begin_in_its_middle_or_be_a_function() -> None:
    model = network()
    optimizer = SGD(model.parameters(), 0.5)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    eager(model, optimizer, Loop(), scheduler, range(5, 8))
    result = captured(model, optimizer, Loop(scheduler=scheduler))
    table = result.constants[result.names.constants.index("schedule.lr.0")].view(np.float32)
    np.testing.assert_allclose(table, [0.5 * 0.1 ** ((step + 3) // 2) for step in range(STEPS)], rtol=1e-6)

    model = network()
    optimizer = SGD(model.parameters(), 0.5)
    loop = Loop(scheduler=lambda step: 1 / (1 + step))
    state, _ = native(captured(model, optimizer, loop))
    assert optimizer.param_groups[0]["lr"] == 0.5
    eager(model, optimizer, loop)
    assert_near(state, model, optimizer, 3e-6)


@pytest.mark.parametrize(
    "loop",
    [
        Loop(clip_value=0.02),
        Loop(accumulation=2, clip_norm=0.2),
        *(
            pytest.param(loop, marks=pytest.mark.slow)
            for loop in (Loop(clip_norm=0.1), Loop(clip_norm=100.0), Loop(accumulation=4))
        ),
    ],
)
def test_clipping_and_accumulation_equal_the_users_loop(loop: Loop) -> None:
    model = network()
    optimizer = SGD(model.parameters(), 0.5, momentum=0.9)
    state, losses = native(captured(model, optimizer, loop))
    assert losses == pytest.approx(eager(model, optimizer, loop), rel=1e-5)
    assert_near(state, model, optimizer, 3e-6)


class Counting(nn.Module):
    """Counts its batches and averages what it sees: a buffer that every micro-batch moves."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.inner(x)
        self.seen += 1
        self.mean = 0.9 * self.mean + 0.1 * output.detach().mean(0)
        return output - self.mean


def test_buffers_move_with_every_micro_batch() -> None:
    model = Counting()
    optimizer = SGD(model.parameters(), 0.1)
    loop = Loop(accumulation=4)
    state, losses = native(captured(model, optimizer, loop))
    assert losses == pytest.approx(eager(model, optimizer, loop), rel=1e-5)
    assert int(state["seen"]) == int(model.seen) == 4 * STEPS
    torch.testing.assert_close(state["mean"], model.mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("micro", [1, 4])
def test_a_mean_over_the_items_of_all_micro_batches(micro: int) -> None:
    """A mean of means differs where micro-batches hold different numbers of items."""
    torch.manual_seed(3)
    data = {"x": torch.randn(24, 6), "y": torch.randint(0, 3, (24,)).where(torch.rand(24) < 0.6, -100)}
    order = torch.randint(0, 24, (STEPS, 8))
    lost = nn.CrossEntropyLoss(reduction="sum")

    def run(loop: Loop) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        optimizer = SGD(model.parameters(), 0.5)
        found, _ = native(capture(model, lost, optimizer, tuple(data.values()), order, loop))
        for rows in order:
            optimizer.zero_grad()
            total = (data["y"][rows] != -100).sum()
            for part in rows.reshape(micro, -1):
                (lost(model(data["x"][part]), data["y"][part]) / total).backward()
            optimizer.step()
        return found, dict(model.named_parameters())

    state, expected = run(Loop(accumulation=micro, items=lambda x, y: (y != -100).sum()))
    for name, tensor in expected.items():
        torch.testing.assert_close(state[name], tensor.detach(), rtol=1e-5, atol=1e-6)


def test_averages_are_state_that_nothing_reads() -> None:
    model = network()
    model[0].bias.requires_grad_(False)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    averaged.n_averaged += 1  # torch's first call would copy; ours begins with the initial weights
    optimizer = SGD(model.parameters(), 0.3)
    plain = captured(model, optimizer)
    result = captured(model, optimizer, Loop(ema=0.8))
    state, _ = native(result)
    expected, _ = native(plain)
    for _ in range(STEPS):
        eager(model, optimizer, Loop(), steps=range(_, _ + 1))
        averaged.update_parameters(model)
    for name, parameter in averaged.module.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(state[f"ema.{name}"], parameter, rtol=1e-5, atol=1e-6)
            assert torch.equal(state[name], expected[name])
        else:
            assert f"ema.{name}" not in state
    kinds = {entry.name: entry.component for entry in result.aten.slots}
    assert kinds["ema.2.weight"] is Component.BUFFER


def test_everything_together_has_the_same_bits_and_trains_like_the_users_loop() -> None:
    model = network()
    twin = copy.deepcopy(model)
    optimizer = AdamW(groups(model), 1e-2, foreach=False)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    loop = Loop(scheduler=scheduler, clip_norm=0.3, accumulation=2, ema=0.9)
    result = captured(model, optimizer, loop)
    for parameter, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(parameter, other)
    state = canonical(result, 5)
    averages = {name: p.detach().clone() for name, p in model.named_parameters()}
    for step in range(5):
        eager(model, optimizer, loop, scheduler, range(step, step + 1))
        for name, parameter in model.named_parameters():
            averages[name].lerp_(parameter.detach(), 0.1)
    assert_near(state, model, optimizer, 2e-5)
    for name, average in averages.items():
        np.testing.assert_allclose(state[f"ema.{name}"], average.numpy(), rtol=1e-4, atol=1e-6)
    rates = [name for name in result.names.constants if name.startswith("schedule.rate")]
    assert rates == ["schedule.rate.0", "schedule.rate.1"]


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}]
)
def test_muon_trains_matrices_beside_an_optimizer_of_the_rest(options: dict[str, Any]) -> None:
    model = network()
    muon = Muon([p for p in model.parameters() if p.dim() == 2], 0.02, **options)
    rest = AdamW([p for p in model.parameters() if p.dim() == 1], 1e-2, foreach=False)
    result = capture(model, functional.cross_entropy, [muon, rest], (X, LABELS), ORDER)
    assert {"0.weight:0.momentum_buffer", "0.bias:1.exp_avg"} <= set(result.names.slots)
    state = canonical(result, 2)
    for step in range(2):
        model.zero_grad()
        functional.cross_entropy(model(X[ORDER[step]]), LABELS[ORDER[step]]).backward()
        muon.step()
        rest.step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(state[name], parameter.detach().numpy(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (LBFGS, r"LBFGS has no definition: it computes the loss several times.*use Adam"),
        (SparseAdam, r"SparseAdam has no definition: it takes sparse gradients.*sparse=False"),
    ],
)
def test_optimizers_that_can_be_no_program_are_refused(make: Make, message: str) -> None:
    model = network()
    with pytest.raises(UnsupportedError, match=message):
        captured(model, make(list(model.parameters())))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulation": 0}, "1 or more"),
        ({"accumulation": 3}, "8 examples cannot be cut into 3"),
        ({"clip_norm": 1.0, "clip_value": 1.0}, "not both"),
        ({"clip_norm": -1.0}, "clip_norm is a positive number"),
        ({"clip_value": math.inf}, "clip_value is a positive number"),
        ({"ema": 1.0}, "ema is a decay"),
        ({"precision": "fp16"}, "precision 'fp16'"),
        ({"scheduler": 3}, "scheduler is a int"),
        ({"scheduler": lambda step: 1 / (3 - step) if step != 3 else math.inf}, "lr is not finite"),
    ],
)
def test_a_loop_that_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    model = network()
    with pytest.raises(UnsupportedError, match=message):
        captured(model, SGD(model.parameters(), 0.1), Loop(**options))


def test_schedulers_that_need_the_training_are_refused() -> None:
    model = network()
    optimizer, other = SGD(model.parameters(), 0.1), SGD(model.parameters(), 0.1)
    with pytest.raises(UnsupportedError, match="ReduceLROnPlateau depends"):
        captured(model, optimizer, Loop(scheduler=lr_scheduler.ReduceLROnPlateau(optimizer)))
    with pytest.raises(UnsupportedError, match="another optimizer"):
        captured(model, optimizer, Loop(scheduler=lr_scheduler.StepLR(other, 1)))


def test_distances_look_closely_at_averages_of_squares() -> None:
    model = network()
    program = captured(model, AdamW(model.parameters()))
    names = [entry.name for entry in program.aten.slots]
    scales = {name.rpartition(":")[2]: slot.scale for name, slot in zip(names, program.program.slots, strict=True)}
    assert (scales["exp_avg"], scales["exp_avg_sq"]) == (0, SQUARES_SCALE)
