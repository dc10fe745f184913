"""State and options of an optimizer that a program would take for constants are refused, and no others."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adafactor, Adagrad, Adam, AdamW, Optimizer, RMSprop
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

import chosen_rows
from pol.errors import UnsupportedError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, Loop, capture
from pol.graph.capture.optimizers import Lion
from pol.training.task.task_training import to_tensor

STEPS = 8
GENERATOR = torch.Generator().manual_seed(2)
X, LABELS = torch.randn(20, 4, generator=GENERATOR), torch.arange(20) % 3
ORDER = torch.randint(0, 20, (STEPS, 5), generator=GENERATOR)
Make = Callable[[Any], Optimizer]


def network() -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def captured(make: Make, loop: Callable[[Optimizer], Loop] = lambda _: Loop(), check: bool = False) -> Capture:
    model = network()
    optimizer = make(model.parameters())
    return capture(model, functional.cross_entropy, optimizer, (X, LABELS), ORDER, loop(optimizer), check=check)


class Own(Optimizer):
    """An optimizer without a rule: descends, and does something else before or after."""

    def __init__(self, params: Any, rest: Callable[[Any], Any], before: bool = False, **options: Any) -> None:
        super().__init__(params, {"lr": 0.1, **options})
        self.rest = rest
        self.before = before
        self.count = 0
        self.norm = torch.tensor(1.0)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        if self.before:
            self.rest(self)
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad * group["lr"], alpha=-1.0 / group.get("step", 1))
        if not self.before:
            self.rest(self)


def counts_in_group(optimizer: Any) -> None:
    optimizer.param_groups[0]["step"] += 1


def decays_in_group(optimizer: Any) -> None:
    optimizer.param_groups[0]["lr"] *= 0.5


def adds_an_option(optimizer: Any) -> None:
    optimizer.param_groups[0]["warm"] = True


def counts_in_attribute(optimizer: Any) -> None:
    optimizer.count += 1


def assigns_attribute(optimizer: Any) -> None:
    optimizer.norm = optimizer.norm * 1.1


def writes_attribute(optimizer: Any) -> None:
    optimizer.norm.mul_(1.1)


def keeps_global_state(optimizer: Any) -> None:
    optimizer.state["global"] = {"norm": torch.tensor(1.0)}


OWN = [
    (assigns_attribute, {}, "step changes its attribute 'norm'"),
    (writes_attribute, {}, r"Own has no rule, and its step changes .*norm"),
    (keeps_global_state, {}, "keeps the state 'global', which belongs to no parameter"),
]


@pytest.mark.parametrize(("rest", "options", "message"), OWN, ids=[rest.__name__ for rest, *_ in OWN])
def test_what_an_own_step_keeps_outside_of_the_state_of_parameters_is_refused(
    rest: Callable[[Any], Any], options: dict[str, Any], message: str
) -> None:
    optimizers = []

    def make(parameters: Any) -> Optimizer:
        optimizers.append(Own(parameters, rest, **options))
        return optimizers[-1]

    with pytest.raises(UnsupportedError, match=message):
        captured(make)
    (optimizer,) = optimizers
    assert (optimizer.count, optimizer.norm, optimizer.param_groups[0]["lr"]) == (0, 1.0, 0.1)
    assert not optimizer.state


@pytest.mark.parametrize(
    "loop",
    chosen_rows.first(
        [lambda o: Loop(scheduler=LambdaLR(o, lambda step: 0.9**step)), lambda _: Loop()], 1, others=pytest.mark.slow
    ),
)
@pytest.mark.parametrize(
    ("rest", "options"),
    [
        (counts_in_group, {"step": 0, "before": True}),
        (decays_in_group, {}),
        (adds_an_option, {}),
        (counts_in_attribute, {}),
    ],
)
def test_what_an_own_step_counts_beside_tensors_is_known_in_advance(
    rest: Callable[[Any], Any], options: dict[str, Any], loop: Callable[[Optimizer], Loop]
) -> None:
    assert_like_the_users_loop(lambda parameters: Own(parameters, rest, **options), loop)


def test_global_state_that_was_there_before_is_refused() -> None:
    def make(parameters: Any) -> Optimizer:
        optimizer = Own(parameters, lambda self: self.state["global"]["norm"].mul_(1.1), before=True)
        keeps_global_state(optimizer)
        return optimizer

    with pytest.raises(UnsupportedError, match="keeps the state 'global'"):
        captured(make)


class Course(LRScheduler):
    """Sets one option of every group, as a function of the step."""

    def __init__(self, optimizer: Optimizer, key: str, value: Callable[[int], Any]) -> None:
        self.key, self.value = key, value
        super().__init__(optimizer)

    def get_lr(self) -> Any:
        for group in self.optimizer.param_groups:
            group[self.key] = self.value(self.last_epoch)
        return self.base_lrs


def later(step: int) -> bool:
    return step >= 3


STRUCTURE: list[tuple[str, Make, str, Callable[[int], Any]]] = [
    ("sgd nesterov", lambda p: SGD(p, 0.1, momentum=0.9), "nesterov", later),
    ("sgd maximize", lambda p: SGD(p, 0.1), "maximize", later),
    ("sgd momentum on", lambda p: SGD(p, 0.1), "momentum", lambda t: 0.9 * later(t)),
    ("sgd momentum off", lambda p: SGD(p, 0.1, momentum=0.9), "momentum", lambda t: 0.9 * (not later(t))),
    ("sgd momentum gap", lambda p: SGD(p, 0.1, momentum=0.9), "momentum", lambda t: 0.9 * (t != 2)),
    ("adam amsgrad", lambda p: Adam(p, 0.01), "amsgrad", later),
    ("adam maximize", lambda p: Adam(p, 0.01), "maximize", later),
    ("adamw maximize", lambda p: AdamW(p, 0.01), "maximize", later),
    ("rmsprop momentum", lambda p: RMSprop(p, 0.01), "momentum", lambda t: 0.9 * later(t)),
    ("rmsprop centered", lambda p: RMSprop(p, 0.01, centered=True), "centered", lambda t: not later(t)),
    ("rmsprop maximize", lambda p: RMSprop(p, 0.01), "maximize", later),
    ("adagrad maximize", lambda p: Adagrad(p, 0.1), "maximize", later),
    ("adafactor maximize", lambda p: Adafactor(p, 0.1), "maximize", later),
    ("adafactor d", lambda p: Adafactor(p, 0.1), "d", lambda t: 1.0 + t),
    ("adafactor eps", lambda p: Adafactor(p, 0.1), "eps", lambda t: (None, 1e-3 * (1 + t))),
]


@pytest.mark.parametrize(("make", "key", "value"), [case[1:] for case in STRUCTURE], ids=[c[0] for c in STRUCTURE])
def test_a_schedule_of_an_option_that_a_rule_reads_once_is_refused(
    make: Make, key: str, value: Callable[[int], Any]
) -> None:
    with pytest.raises(
        UnsupportedError, match=rf"schedule changes '?{key}.* of {type(make([torch.ones(1)])).__name__}"
    ):
        captured(make, lambda optimizer: Loop(scheduler=Course(optimizer, key, value)))


NUMBERS: list[tuple[str, Make, str, Callable[[int], Any]]] = [
    ("sgd momentum", lambda p: SGD(p, 0.1, momentum=0.9), "momentum", lambda t: 0.5 + 0.05 * t),
    ("adam betas", lambda p: Adam(p, 0.01), "betas", lambda t: (0.5 + 0.04 * t, 0.9 + 0.01 * t)),
    ("adafactor decay on", lambda p: Adafactor(p, 0.05), "weight_decay", lambda t: 0.5 * later(t)),
    ("lion betas", lambda p: Lion(p, 0.01), "betas", lambda t: (0.5 + 0.04 * t, 0.9)),
    ("sgd decay on", lambda p: SGD(p, 0.1, momentum=0.9), "weight_decay", lambda t: 0.1 * later(t)),
    ("sgd dampening", lambda p: SGD(p, 0.1, momentum=0.9), "dampening", lambda t: 0.1 * t),
    ("sgd tensor", lambda p: SGD(p, torch.tensor(0.1)), "lr", lambda t: torch.tensor(0.1 / (1 + t))),
    ("adam decay on", lambda p: Adam(p, 0.01), "weight_decay", lambda t: 0.1 * later(t)),
    ("adam tensor", lambda p: Adam(p, torch.tensor(0.01)), "lr", lambda t: torch.tensor(0.01 / (1 + t))),
    ("adamw decay on", lambda p: AdamW(p, 0.01, weight_decay=0.0), "weight_decay", lambda t: 0.5 * later(t)),
    ("rmsprop alpha", lambda p: RMSprop(p, 0.01), "alpha", lambda t: 0.9 - 0.05 * t),
    ("rmsprop decay on", lambda p: RMSprop(p, 0.01, momentum=0.5), "weight_decay", lambda t: 0.1 * later(t)),
    ("adagrad decay on", lambda p: Adagrad(p, 0.1), "weight_decay", lambda t: 0.1 * later(t)),
]


@pytest.mark.parametrize(
    ("make", "key", "value"),
    chosen_rows.first((case[1:] for case in NUMBERS), 4, others=pytest.mark.slow),
    ids=[c[0] for c in NUMBERS],
)
def test_a_schedule_of_numbers_equals_the_users_loop(make: Make, key: str, value: Callable[[int], Any]) -> None:
    assert_like_the_users_loop(make, lambda optimizer: Loop(scheduler=Course(optimizer, key, value)))


def assert_like_the_users_loop(make: Make, loop: Callable[[Optimizer], Loop]) -> None:
    result = captured(make, loop)
    native = NativeExecutor(result.aten)
    constants = [to_tensor(e.type, words) for e, words in zip(result.aten.constants, result.constants, strict=True)]
    state = [to_tensor(e.type, words) for e, words in zip(result.aten.slots, result.state, strict=True)]
    model = network()
    optimizer = make(model.parameters())
    scheduler = loop(optimizer).scheduler
    for step in range(STEPS):
        state, _ = native.run(state, constants, step)
        optimizer.zero_grad()
        functional.cross_entropy(model(X[ORDER[step]]), LABELS[ORDER[step]]).backward()
        optimizer.step()
        if isinstance(scheduler, LRScheduler):
            scheduler.step()
    for found, parameter in zip(state, model.parameters(), strict=False):
        torch.testing.assert_close(found, parameter.detach(), rtol=2e-4, atol=2e-6)


def test_a_refusal_of_an_own_step_is_one_line() -> None:
    def reads(optimizer: Any) -> None:
        weight = optimizer.param_groups[0]["params"][0]
        weight.mul_(1 / (1 + weight.grad.norm().item()))

    with pytest.raises(UnsupportedError, match="its step reads the numbers of a tensor") as refusal:
        captured(lambda p: Own(p, reads))
    assert "\n" not in str(refusal.value)


def by_norm(parameters: list[Tensor]) -> float:
    return 1 / sum(float(p.detach().norm()) for p in parameters)


class ByNorm(LRScheduler):
    """Reads parameters at every step."""

    def get_lr(self) -> Any:
        return [by_norm(group["params"]) for group in self.optimizer.param_groups]


@pytest.mark.parametrize(
    "scheduler",
    [
        ByNorm,
        lambda o: LambdaLR(o, lambda step: by_norm(o.param_groups[0]["params"])),
        lambda o: lambda step: by_norm(o.param_groups[0]["params"]),
        lambda o: Course(o, "lr", lambda step: 0.1 if not step else o.param_groups[0]["params"][0].data[0, 0].item()),
    ],
)
def test_a_schedule_that_reads_the_training_is_refused(scheduler: Callable[[Optimizer], Any]) -> None:
    with pytest.raises(UnsupportedError, match="the schedule reads a parameter"):
        captured(lambda p: SGD(p, 0.1), lambda optimizer: Loop(scheduler=scheduler(optimizer)))


def test_a_schedule_may_ask_for_sizes() -> None:
    captured(
        lambda p: SGD(p, 0.1), lambda o: Loop(scheduler=lambda step: 1 / (len(o.param_groups[0]["params"][0]) + step))
    )
