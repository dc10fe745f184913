"""Modules as people write them: auxiliary losses, wrapped and tied modules, frozen parts, averages, inner gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD

from graph.test_lowering_operations import outputs_of
from pol.errors import UnsupportedError
from pol.execution.reference import next_state
from pol.graph.capture import Capture, capture
from pol.training.exact.exact_loop import exact

ROWS = 12
INPUTS, LABELS = torch.randn(ROWS, 6, generator=torch.manual_seed(1)), torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (4, 6), generator=torch.manual_seed(2))
Loss = Callable[[Any, Tensor], Tensor]


def network() -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3))


def captured(model: nn.Module, loss: Loss = functional.cross_entropy) -> Capture:
    return capture(model, loss, SGD(model.parameters(), 0.1, momentum=0.9), (INPUTS, LABELS), ORDER)


def assert_trains_like_the_users_loop(model: nn.Module, loss: Loss = functional.cross_entropy) -> Capture:
    """Two canonical steps, with the same bits in both executors, beside two of torch."""
    optimizer = SGD(model.parameters(), 0.1, momentum=0.9)
    result = capture(model, loss, optimizer, (INPUTS, LABELS), ORDER)
    words = result.state
    for step in range(2):
        words = next_state(result.program, outputs_of(result.program, words, result.constants, step))
        optimizer.zero_grad()
        loss(model(INPUTS[ORDER[step]]), LABELS[ORDER[step]]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
    state = dict(zip(result.names.slots, words, strict=True))
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        own = state[name].view(np.float32 if tensor.is_floating_point() else np.int32)
        np.testing.assert_allclose(own, tensor.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
    return result


def plain(x: Tensor) -> Tensor:
    return x * torch.tanh(functional.softplus(x)) + 1


class Experts(nn.Module):
    """A mixture whose balance is a loss of its own, kept in an attribute."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.gate, self.experts = nn.Linear(6, 3), nn.ModuleList(nn.Linear(6, 3) for _ in range(3))
        self.how = how
        self.aux: Any = None
        self.parts: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(-1)
        balance = shares.mean(0).pow(2).sum()
        self.parts = []
        if self.how == "list":
            self.parts.append(balance)
        elif self.how == "dict":
            self.aux = {"balance": balance, "name": "balance"}
        else:
            self.aux = balance
        return (torch.stack([expert(x) for expert in self.experts], 1) * shares[..., None]).sum(1)

    def auxiliary(self) -> Tensor:
        return sum(self.parts) if self.how == "list" else self.aux["balance"] if self.how == "dict" else self.aux


@pytest.mark.parametrize("how", ["attribute", "list", "dict"])
def test_an_auxiliary_loss_in_an_attribute(how: str) -> None:
    model = Experts(how)
    before = model.aux, model.parts
    assert_trains_like_the_users_loop(
        model, lambda output, target: functional.cross_entropy(output, target) + 0.1 * model.auxiliary()
    )
    fresh = Experts(how)
    captured(fresh, lambda output, target: functional.cross_entropy(output, target) + fresh.auxiliary())
    assert (fresh.aux, fresh.parts) == before == (None, [])


@pytest.mark.long
# torch.compile loads parts of torch that torch itself calls deprecated.
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_what_torch_compile_wraps_is_captured_as_it_was_written() -> None:
    expected = captured(network())

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.compile(network())

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)  # type: ignore[no-any-return]  # torch: Any

    compiled, in_place = network(), network()
    in_place.compile()
    for model in (torch.compile(compiled), in_place):
        result = captured(model)
        assert result.program == expected.program
        assert result.names.slots == expected.names.slots
    assert captured(network(), torch.compile(functional.cross_entropy)).program == expected.program
    assert captured(Inside()).program == expected.program
    model = torch.compile(network())
    step = exact(model, functional.cross_entropy, SGD(model.parameters(), 0.1), steps=2)
    step(INPUTS, LABELS)
    with step.own_loop() as loss:
        loss(model(INPUTS), LABELS).backward()
        step._optimizer.step()


def test_a_parallel_model_is_captured_without_its_wrapper() -> None:
    assert captured(nn.DataParallel(network())).names.slots == captured(network()).names.slots


def test_a_teacher_that_follows_its_student() -> None:
    class Student(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.online, self.teacher = network(), network().requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                for mine, theirs in zip(self.teacher.parameters(), self.online.parameters(), strict=True):
                    mine.lerp_(theirs, 0.1)
                expected = self.teacher(x)
            own = self.online(x)
            return own + 0.1 * (own - expected).pow(2).mean()

    assert_trains_like_the_users_loop(Student())


def test_gradients_inside_of_the_loss() -> None:
    model = network()
    parameters = dict(model.named_parameters())

    def adapted(output: Tensor, target: Tensor) -> Tensor:
        """One inner step of descent, then the loss of the adapted weights."""
        inner = functional.cross_entropy(output, target)
        gradients = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
        moved = {name: p - 0.1 * g for (name, p), g in zip(model.named_parameters(), gradients, strict=True)}
        return functional.cross_entropy(torch.func.functional_call(model, moved, (INPUTS[:3],)), LABELS[:3])

    def through_the_model(output: Tensor, target: Tensor) -> Tensor:
        inner = functional.cross_entropy(output, target)
        gradients = torch.autograd.grad(inner, list(model.parameters()), create_graph=True)
        moved = {name: p - 0.1 * g for (name, p), g in zip(model.named_parameters(), gradients, strict=True)}
        return functional.cross_entropy(torch.func.functional_call(model, moved, (INPUTS[:3],)), LABELS[:3])

    assert_trains_like_the_users_loop(model, through_the_model)
    with pytest.raises(UnsupportedError):
        captured(model, adapted)


def test_a_penalty_on_the_gradient_and_hooks_on_activations() -> None:
    class Hooked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: Tensor) -> Tensor:
            x = x.clone().requires_grad_()
            output: Tensor = self.net(x)
            output.register_hook(lambda gradient: gradient.clamp(-0.05, 0.05))  # type: ignore[no-untyped-call]  # torch declares no types
            (gradient,) = torch.autograd.grad(output.sum(), x, create_graph=True)
            return output + gradient.pow(2).sum(1, keepdim=True)

    assert_trains_like_the_users_loop(Hooked())


def test_a_lazy_module_is_captured_once_it_has_shapes() -> None:
    model = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(3))
    model(INPUTS)
    assert "0.weight" in captured(model).names.slots


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_function_is_its_operations() -> None:
    model, scripted = network(), torch.jit.script(plain)
    assert_trains_like_the_users_loop(model, lambda output, target: functional.cross_entropy(scripted(output), target))


def test_mixed_derivatives_of_torch_func_are_refused_with_a_way_out() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))

    def curvature(how: Any) -> Callable[[Any, Tensor], Tensor]:
        def loss(output: Any, target: Tensor) -> Tensor:
            found = torch.func.vmap(how(lambda point: model(point).squeeze(-1)))(INPUTS[:3])
            return found.square().sum() + output.square().mean()  # type: ignore[no-any-return]  # of nn.Module

        return loss

    with pytest.raises(UnsupportedError, match=r"hessian.*write jacrev\(jacrev\(f\)\)"):
        captured(model, curvature(torch.func.hessian))
    captured(model, curvature(lambda f: torch.func.jacrev(torch.func.jacrev(f))))
