"""Optimizers without a rule: their own step is traced, and counts in tables."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer, lr_scheduler

import chosen_rows
from optimizer_training import Make, assert_near, canonical, captured, eager, native, network
from pol.errors import UnsupportedError
from pol.graph.capture import Loop
from pol.graph.capture.optimizers import RULES, Number, OptimizerState, Options, defines


class Plain(Optimizer):
    """An optimizer of a user's, without state and without a rule."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            self.begin(group)
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, group)

    def begin(self, group: dict[str, Any]) -> None:
        """What comes before the parameters of a group."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        p.sub_(p.grad.sign() * group["lr"])


class Counted(Plain):
    def update(self, p: Any, group: dict[str, Any]) -> None:
        self.state[p]["step"] = self.state[p].get("step", 0) + 1
        p.sub_(p.grad * (group["lr"] / self.state[p]["step"]))


class Handwritten(Plain):
    """Adam as people write it: a counter, roots of Python, corrections as numbers."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        state = self.state[p]
        if len(state) == 0:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        state["step"] += 1
        state["exp_avg"].mul_(0.9).add_(p.grad, alpha=1 - 0.9)
        state["exp_avg_sq"].mul_(0.99).addcmul_(p.grad, p.grad, value=1 - 0.99)
        root = math.sqrt(1 - 0.99 ** state["step"])
        divisor = (state["exp_avg_sq"].sqrt() / root).add_(1e-8)
        p.mul_(1 - group["lr"] * 0.01)
        p.addcdiv_(state["exp_avg"], divisor, value=-group["lr"] / (1 - 0.9 ** state["step"]))


class CountingInGroup(Plain):
    def begin(self, group: dict[str, Any]) -> None:
        group["k"] = group.get("k", 0) + 1

    def update(self, p: Any, group: dict[str, Any]) -> None:
        p.sub_(p.grad * (group["lr"] / group["k"]))


class CountingInTensor(Plain):
    """A counter in a tensor that the step reads, as torch's own optimizers have it."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"], state["average"] = torch.tensor(0.0), torch.zeros_like(p)
        state["step"] += 1
        state["average"].lerp_(p.grad, 0.1)
        p.add_(state["average"] / (1 - 0.9 ** state["step"].item()), alpha=-group["lr"])


class OwnAdamW(AdamW):
    """A subclass, which may do anything."""

    def step(self, closure: Any = None) -> Any:
        result = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.clamp_(-0.5, 0.5)
        return result


class Centralized(AdamW):
    """Writes into the gradients before its step."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.sub_(p.grad.mean(0, keepdim=True)).clamp_(-0.1, 0.1)
        return super().step(closure)


class EverySecond(Plain):
    def update(self, p: Any, group: dict[str, Any]) -> None:
        self.state[p]["step"] = self.state[p].get("step", 0) + 1
        if self.state[p]["step"] % 2:
            p.sub_(p.grad * group["lr"])


class LaterOperand(Plain):
    """Takes other tensors from its third step on, by operations with the same numbers."""

    later: Callable[[Tensor, Tensor], Tensor]

    def update(self, p: Any, group: dict[str, Any]) -> None:
        state = self.state[p]
        state["step"] = state.get("step", 0) + 1
        before = state.setdefault("before", torch.zeros_like(p))
        taken = p.grad if state["step"] < 3 else self.later(p.grad, before)
        p.sub_(taken * group["lr"])
        before.copy_(p.grad)


class LaterDifference(LaterOperand):
    later = staticmethod(torch.sub)


class LaterState(LaterOperand):
    later = staticmethod(lambda _, before: before)


class LaterRoll(Plain):
    """The places of a roll, which are no numbers of a table, follow from a counter."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        self.state[p]["step"] = self.state[p].get("step", 0) + 1
        p.sub_(torch.roll(p.grad, [self.state[p]["step"]]) * group["lr"])


class Reading(Plain):
    def update(self, p: Any, group: dict[str, Any]) -> None:
        p.sub_(p.grad * (group["lr"] / p.grad.abs().max().item()))


def test_an_optimizer_without_a_rule_is_traced_itself() -> None:
    model = network()
    optimizer = Plain(model.parameters(), 0.01)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    state, _ = native(captured(model, optimizer, Loop(scheduler=scheduler)))
    eager(model, optimizer, Loop(), scheduler)
    assert_near(state, model, optimizer, 1e-6)


class Lookahead(Plain):
    """Makes its state in the first step: averages from zero, and a copy of the parameter."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["average"] = torch.zeros_like(p)
            state["slow"] = p.detach().clone()
        state["average"].mul_(0.9).add_(p.grad, alpha=0.1)
        p.sub_(state["average"] * group["lr"])
        state["slow"].lerp_(p, 0.5)


class Stepping(Plain):
    """Its first state is the first gradient."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        if "average" not in self.state[p]:
            self.state[p]["average"] = p.grad.clone()
        p.sub_(self.state[p]["average"].lerp_(p.grad, 0.1) * group["lr"])


class Quantized(Plain):
    """Momentum in 8 bits with a scale for each tensor."""

    def update(self, p: Any, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["codes"] = torch.zeros_like(p, dtype=torch.int8)
            state["scale"] = torch.ones(())
        average = state["codes"].float() * state["scale"] * 0.9 + p.grad
        scale = average.abs().amax().clamp(min=1e-12) / 127
        state["codes"].copy_((average / scale).round().clamp(-127, 127).to(torch.int8))
        state["scale"].copy_(scale)
        p.sub_(average * group["lr"])


@pytest.mark.parametrize("kind", [Counted, Handwritten, CountingInGroup, CountingInTensor, OwnAdamW, Centralized])
@pytest.mark.parametrize("taken", chosen_rows.first([3, 0], 1, others=pytest.mark.slow))
def test_an_own_step_that_counts_has_its_numbers_in_tables(kind: Any, taken: int) -> None:
    model = network()
    optimizer = kind(model.parameters(), 0.05)
    for group in optimizer.param_groups:
        group["foreach"] = False
    eager(model, optimizer, Loop(), steps=range(taken))
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + 0.1 * step))
    before = repr(optimizer.state_dict())
    result = captured(model, optimizer, Loop(scheduler=scheduler))
    assert repr(optimizer.state_dict()) == before
    canonical(result, 2)
    state, _ = native(result, 5)
    eager(model, optimizer, Loop(), scheduler, range(5))
    assert_near(state, model, optimizer, 5e-6)


def test_the_state_that_an_own_step_makes_is_the_beginning() -> None:
    for kind in (Lookahead, Quantized):
        model = network()
        optimizer = kind(model.parameters(), 0.1)
        result = captured(model, optimizer)
        assert not optimizer.state
        canonical(result, 2)
        state, _ = native(result, 4)
        eager(model, optimizer, Loop(), steps=range(4))
        assert_near(state, model, optimizer, 2e-3 if kind is Quantized else 3e-6)
    model = network()
    with pytest.raises(UnsupportedError, match="Stepping has no rule, and its first step makes the state 'average'"):
        captured(model, Stepping(model.parameters(), 0.1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: EverySecond(p, 0.1), r"EverySecond has no rule, and its step 2 is of other operations.*RULES"),
        (lambda p: LaterDifference(p, 0.1), r"LaterDifference .* step 3 is of other operations"),
        (lambda p: LaterState(p, 0.1), r"LaterState .* step 3 is of other operations"),
        (lambda p: LaterRoll(p, 0.1), r"LaterRoll .* step 2 is of other operations"),
        (lambda p: Reading(p, 0.1), r"Reading has no rule.*RULES"),
    ],
)
def test_what_an_optimizers_own_step_cannot_be_is_refused(make: Make, message: str) -> None:
    model = network()
    with pytest.raises(UnsupportedError, match=message):
        captured(model, make(model.parameters()))


def test_a_user_adds_a_rule() -> None:
    try:

        @defines(Counted)
        class CountedRule:
            squares = frozenset[str]()

            def initial(self, options: Options, parameter: Tensor) -> OptimizerState:
                return {}

            def numbers(self, options: Options, step: int) -> Mapping[str, float]:
                return {"rate": options["lr"] / step}

            def update(
                self,
                options: Options,
                parameter: Tensor,
                gradient: Tensor,
                state: OptimizerState,
                numbers: Mapping[str, Number],
            ) -> tuple[Tensor, OptimizerState]:
                return parameter - gradient * numbers["rate"], {}

        model = network()
        optimizer = Counted(model.parameters(), 0.1)
        state, _ = native(captured(model, optimizer))
        eager(model, optimizer, Loop())
        assert_near(state, model, optimizer, 2e-6)
    finally:
        RULES.pop(Counted, None)
