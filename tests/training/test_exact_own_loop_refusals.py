"""Lines of a loop that an exact step can't follow: each is refused with what to do, and nothing else is trained."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from own_loop_training import Training, batches, cosine, network, squares, training
from torch import nn
from torch.nn import functional

import chosen_rows
from pol.errors import PolError, ProtocolError, UnsupportedError

OUTPUT = "only the loss can take it: name the loss by"
GRADIENTS = "an exact step keeps no gradients: leave out the line"
ARGUMENTS = r"two arguments: call loss\(model\(x\), target\)"
STALE = r"not that of the last model\(x\), or it had its loss"
UNUSED = r"the output of the last model\(x\) had no loss"
BEFORE = "has a gradient before backward.*call optimizer.zero_grad"
WITHOUT = r"optimizer.step\(\) without a backward\(\): call loss"
HAD = r"backward\(\) of a loss that had it"
NOT_TAKEN = r"the step of the last loss was not taken: after loss\(...\) come backward\(\)"
CHANGED = r"has changed between model\(x\) and optimizer.step\(\): change it before or after the two"
GRADIENT = "the gradient of 0.weight has changed between"


class Loop:
    """A training inside of its loop, with one batch."""

    def __init__(self, now: Training, loss: Callable[..., Any]) -> None:
        self.now, self.loss = now, loss
        self.optimizer, self.step = now.optimizer, now.step
        self.model: Any = now.model
        self.scheduler: Any = now.scheduler
        self.x, self.y = next(batches())
        self.weight = next(now.model.parameters())

    @property
    def output(self) -> Any:
        """Of a call of the model."""
        return self.model(self.x)

    @property
    def value(self) -> Any:
        """A loss."""
        return self.loss(self.output, self.y)

    @property
    def gradient(self) -> Any:
        """Of the first weight."""
        return self.weight.grad

    def backward(self) -> Any:
        """All lines up to backward; the loss."""
        self.optimizer.zero_grad()
        value = self.value
        value.backward()
        return value

    def whole(self) -> Any:
        """All lines of a step; the loss."""
        value = self.backward()
        self.optimizer.step()
        return value

    def set_gradient(self) -> bool:
        """Another one for the first weight."""
        self.weight.grad = torch.zeros(7, 6)
        return True

    def penalty(self) -> Any:
        """Another term, in torch."""
        return torch.stack([parameter.square().sum() for parameter in self.model.parameters()]).sum()


Lines = Callable[[Loop], object]


def no_grad(lines: Lines) -> Lines:
    return lambda t: torch.no_grad()(lambda: lines(t))()


OF_THE_OUTPUT: dict[str, tuple[str, Lines]] = {
    "another function": (OUTPUT, lambda t: functional.mse_loss(t.output, t.x[:, :3])),
    "other options": (ARGUMENTS, lambda t: functional.cross_entropy(t.output, t.y, label_smoothing=0.5)),
    "the target first": (OUTPUT, lambda t: functional.cross_entropy(t.y, t.output)),
    "named arguments": (ARGUMENTS, lambda t: t.loss(t.output, target=t.y)),
    "a method": (OUTPUT, lambda t: t.loss(t.output.float(), t.y)),
    "a size": (OUTPUT, lambda t: t.output.shape),
    "an operator": (OUTPUT, lambda t: t.loss(t.output * 2, t.y)),
    "an operator of a tensor": (OUTPUT, lambda t: t.loss(t.x[:, :3] + t.output, t.y)),
    "equality": (OUTPUT, lambda t: t.output == 3),
    "an element": (OUTPUT, lambda t: t.loss(t.output[0], t.y)),
    "as a tuple": (OUTPUT, lambda t: [*t.output]),
    "its class": (OUTPUT, lambda t: isinstance(t.output, tuple)),
    "its attributes": (OUTPUT, lambda t: hasattr(t.output, "logits")),
    "printed": (OUTPUT, lambda t: f"{t.output}"),
    "a module": (OUTPUT, lambda t: nn.Linear(3, 3)(t.output)),
    "as the target": (ARGUMENTS, lambda t: [t.loss(output, output) for output in [t.output]]),
    "evaluation with gradients": (OUTPUT, lambda t: t.model.eval()(t.x).argmax(1)),
    "accuracy after the loss": (OUTPUT, lambda t: [(t.loss(output, t.y), output.argmax(1)) for output in [t.output]]),
    "an older one": (UNUSED, lambda t: [t.loss(output, t.y) for output in (t.output, t.output)]),
    "none": (UNUSED, lambda t: [t.output, t.whole()]),
    "none at the end": (UNUSED, lambda t: [t.whole(), t.output]),
    "none with a step": (f"{WITHOUT}|{UNUSED}", lambda t: [t.whole(), t.output, t.optimizer.step()]),
    "two losses": (STALE, lambda t: [t.loss(output, t.y) for output in [t.output] * 2]),
}
OF_THE_ORDER: dict[str, tuple[str, Lines]] = {
    "named inputs": (r"called with input=: an exact step calls model\(\*inputs\)", lambda t: t.model(input=t.x)),
    "autocast": ("under torch.autocast: leave it", lambda t: torch.autocast("cpu", torch.bfloat16)(lambda: t.output)()),
    "a scaled loss": ("multiplied by 0.25 .*accumulation=", lambda t: (t.value / 4).backward()),
    "a scaler": (
        "multiplied by 65536 .* leave out a gradient scaler",
        lambda t: torch.amp.GradScaler("cpu").scale(t.value).backward(),
    ),
    "a term beside the loss": (f"{BEFORE}|{GRADIENTS}", lambda t: (t.value + t.penalty()).backward()),
    "a term before the loss": (BEFORE, lambda t: [t.penalty().backward(), t.value.backward()]),
    "a term after the loss": (GRADIENTS, lambda t: [t.backward(), t.penalty().backward()]),
    "backward twice": (HAD, lambda t: t.backward().backward()),
    "backward after the step": (HAD, lambda t: t.whole().backward()),
    "no zero_grad": (BEFORE, lambda t: [t.whole(), t.value.backward()]),
    "zero_grad to zeros": (GRADIENTS, lambda t: [t.whole(), t.optimizer.zero_grad(set_to_none=False)]),
    "zero_grad before the step": (GRADIENT, lambda t: [t.backward(), t.model.zero_grad(), t.optimizer.step()]),
    "a gradient set": (GRADIENT, lambda t: [t.backward(), t.set_gradient(), t.optimizer.step()]),
    "clipping": (GRADIENTS, lambda t: [t.backward(), nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)]),
    "clipping by value": (GRADIENTS, lambda t: [t.backward(), nn.utils.clip_grad_value_(t.model.parameters(), 1.0)]),
    "a gradient read": (GRADIENTS, lambda t: [t.backward(), t.gradient.norm()]),
    "a gradient changed": (GRADIENTS, lambda t: [t.backward(), t.gradient.data.mul_(2)]),
    "a gradient read after the step": (GRADIENTS, lambda t: [t.whole(), t.gradient.sum()]),
    "a step without a loss": (WITHOUT, lambda t: t.optimizer.step()),
    "a step without backward": (WITHOUT, lambda t: [t.value, t.optimizer.step()]),
    "a step after backward under no_grad": (WITHOUT, lambda t: [no_grad(lambda t: t.value)(t), t.optimizer.step()]),
    "two steps": (WITHOUT, lambda t: [t.whole(), t.optimizer.step()]),
    "a step of torch's": (GRADIENTS, lambda t: [t.backward(), type(t.optimizer).step(t.optimizer)]),
    "a closure": (r"step\(closure\): call loss", lambda t: t.optimizer.step(lambda: 0.0)),
    "a step past the model's call": (
        WITHOUT,
        lambda t: [t.loss(t.model.forward(t.x), t.y).backward(), t.optimizer.step()],
    ),
    "backward without a step": (NOT_TAKEN, lambda t: [t.backward(), t.output]),
    "a loss without a step": (NOT_TAKEN, lambda t: [t.value, t.output]),
    "a loss without a step at the end": (NOT_TAKEN, lambda t: [t.whole(), t.optimizer.zero_grad(), t.value]),
    "another optimizer": (
        GRADIENTS,
        lambda t: [t.backward(), torch.optim.SGD(t.model.parameters()).step(), t.optimizer.step()],
    ),
    "other weights in the call": (
        f"0.bias {CHANGED}",
        lambda t: [
            t.loss(torch.func.functional_call(t.model, {"0.bias": torch.ones(7)}, t.x), t.y).backward(),
            t.optimizer.step(),
        ],
    ),
    "the step itself": (r"step\(...\) inside of its own_loop\(\)", lambda t: t.step(t.x, t.y)),
    "a loop in the loop": ("calls of the model are replaced already", lambda t: t.step.own_loop().__enter__()),
    "a batch without a meaning": ("data.1 holds 9, but there are 3 classes", lambda t: t.loss(t.output, t.y + 7)),
}
CHANGES: dict[str, tuple[str, Lines]] = {
    "weights": (f"0.weight {CHANGED}", no_grad(lambda t: t.weight.mul_(2))),
    "data": (f"0.weight {CHANGED}", lambda t: t.weight.data.mul_(2)),
    "the last of seven": (f"0.bias {CHANGED}", lambda t: t.model[0].bias.data[-1:].add_(1)),
    "the last of an even number": (f"0.weight {CHANGED}", lambda t: t.weight.data[-1, -1:].add_(1)),
    "memory": (f"0.weight {CHANGED}", lambda t: setattr(t.weight, "data", t.weight.data.clone())),
    "memory of the optimizer": (
        f"the state of the optimizer {CHANGED}",
        lambda t: [setattr(item, "data", item.data.clone()) for item in [t.optimizer.state[t.weight]["exp_avg"]]],
    ),
    "buffers": (f"1.running_mean {CHANGED}", no_grad(lambda t: t.output)),
    "rate": (CHANGED, lambda t: t.optimizer.param_groups[0].update(lr=1.0)),
    "freezing": (CHANGED, lambda t: t.weight.requires_grad_(False)),
    "mode": (CHANGED, lambda t: t.model.eval()),
    "rate of dropout": (CHANGED, lambda t: setattr(t.model[3], "p", 0.5)),
    "optimizer": (f"the state of the optimizer {CHANGED}", lambda t: t.optimizer.state[t.weight]["exp_avg"].zero_()),
}


@cache
def after(steps: int) -> dict[str, Any]:
    """The state of a training after so many exact steps."""
    fresh = training()
    for _ in range(steps):
        fresh.step(*next(batches()))
    return fresh.state()


@pytest.mark.parametrize("name", chosen_rows.each([*OF_THE_OUTPUT, *OF_THE_ORDER], 3, others=pytest.mark.slow))
def test_what_would_be_another_training_is_refused(name: str) -> None:
    """What was trained until then is exact."""
    said, lines = {**OF_THE_OUTPUT, **OF_THE_ORDER}[name]
    now = training()
    with pytest.raises(PolError, match=said), now.step.own_loop() as loss:
        lines(Loop(now, loss))
    for part in ("model", "optimizer"):
        assert now.state()[part] == after(now.step.number)[part]


@pytest.mark.parametrize("name", chosen_rows.each(CHANGES, 3, others=pytest.mark.slow))
def test_what_changes_between_the_model_and_the_step_is_named(name: str) -> None:
    """And it's no error before the model's call, nor after the step."""
    said, change = CHANGES[name]
    now = training(network)

    def run() -> None:
        with now.step.own_loop() as loss:
            loop = Loop(now, loss)
            loop.whole()
            change(loop)
            if name == "freezing":
                loop.weight.requires_grad_(True)
            loop.whole()
            loop.backward()
            if name in {"mode", "rate of dropout", "rate"}:
                loop.model.train()
                loop.model[3].p = 0.25
                now.optimizer.param_groups[0]["lr"] = 0.5
            else:
                change(loop)
            now.optimizer.step()

    with pytest.raises(ProtocolError, match=said):
        run()
    assert now.step.number == 2


def test_gradients_of_a_loss_are_refused_by_torch() -> None:
    now = training()
    with pytest.raises(RuntimeError, match="not have been used in the graph"), now.step.own_loop() as loss:
        torch.autograd.grad(Loop(now, loss).value, list(now.model.parameters()))


SCHEDULES: dict[str, tuple[str, Lines]] = {
    "before a step": (r"scheduler.step\(\) without an optimizer.step\(\)", lambda t: t.scheduler.step()),
    "twice": ("without an optimizer.step", lambda t: [t.whole(), t.scheduler.step(), t.scheduler.step()]),
    "never": (r"scheduler.step\(\) was not called", lambda t: [t.whole(), t.whole()]),
    "by a number": ("with a number is another schedule", lambda t: [t.whole(), t.scheduler.step(3)]),
    "not at the end": (r"scheduler.step\(\) was not called", lambda t: t.whole()),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_scheduler_is_stepped_once_after_each_step(name: str) -> None:
    said, lines = SCHEDULES[name]

    def run() -> None:
        now = training(schedule=cosine)
        with now.step.own_loop() as loss:
            lines(Loop(now, loss))

    with pytest.raises(PolError, match=said):
        run()


def test_a_compiled_model_is_refused() -> None:
    now = training()
    now.model.compile(backend="eager")
    with pytest.raises(ProtocolError, match=r"replaced already, by model.compile\(\)"), now.step.own_loop():
        pass


def test_a_loss_of_ones_own_is_named_by_the_loop() -> None:
    """Called by itself it finds an output without numbers."""
    now = training(loss=squares)
    x, y = next(batches())
    with pytest.raises(UnsupportedError, match=OUTPUT), now.step.own_loop():
        squares(now.model(x), y)


def test_a_loss_of_a_loop_that_is_over() -> None:
    now = training()
    kept = []
    with pytest.raises(ProtocolError, match=NOT_TAKEN), now.step.own_loop() as loss:
        kept.append(Loop(now, loss).value)
    with pytest.raises(ProtocolError, match=HAD):
        kept[0].backward()
