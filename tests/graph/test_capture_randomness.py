"""Random operations in ordinary code become draws of the step program: same numbers in a loop of one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from graph.test_lowering_operations import outputs_of
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import philox
from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.aten_graph import AtenGraph
from pol.graph.capture import Capture, capture
from pol.graph.lowering import lower
from pol.training.task.task_randomness import TaskRandomness
from pol.training.task.task_training import to_tensor

INPUTS, LABELS = torch.randn(24, 6, generator=torch.Generator().manual_seed(1)), torch.arange(24) % 3
ORDER = torch.arange(24).view(4, 6)


class Augmented(nn.Module):
    """Flips, noise, and dropout as a function and as a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 10), nn.Linear(10, 3)
        self.drop = nn.Dropout(0.25)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.where(torch.rand(len(x), 1) < 0.5, -x, x)
        x = x + 0.1 * torch.randn_like(x)
        x = functional.dropout(x, 0.1, inplace=True)
        return self.second(self.drop(torch.relu(self.first(x))))  # type: ignore[no-any-return]  # torch: Any


class Function(nn.Module):
    """A linear layer before a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.linear(x))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(4)


def captured(model: nn.Module, seed: int = 0) -> Capture:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, seed=seed)


def operations(graph: AtenGraph) -> list[tuple[Any, ...]]:
    """The draws: name, ordinal, shape and parameters."""
    return [(node.operation.split(".")[1], *node.arguments[2:]) for node in graph.nodes if node.operation[:4] == "pol."]


def draw_words(found: Capture, step: int) -> list[Words]:
    """What the nodes that hold a draw give at a step, by the reference."""
    outputs = ReferenceExecutor(found.program, found.constants).run(found.state, step)
    return [outputs[i] for i, name in enumerate(found.names.nodes) if "pol." in name.operation]


def test_draws_are_counted_in_the_order_of_the_forward_pass() -> None:
    found = captured(Augmented())
    assert operations(found.aten) == [
        ("uniform", 0, (6, 1), 0.0, 1.0),
        ("normal", 1, (6, 6), 0.0, 1.0),
        ("bernoulli", 2, (6, 6), 0.9),
        ("bernoulli", 3, (6, 10), 0.75),
    ]
    source = next(node.source for node in found.aten.nodes if node.operation == "pol.normal.default")
    assert source.startswith("test_capture_randomness.py:")
    assert "randn_like" in source
    assert lower(AtenGraph.from_dict(found.aten.to_dict()))[0] == found.program


def test_the_seed_is_a_constant_only_where_numbers_are_drawn() -> None:
    found = captured(Augmented(), seed=2**63 + 5)
    assert [entry.name for entry in found.aten.constants] == ["data.0", "data.1", "order", "seed"]
    assert found.constants[-1].tolist() == [5, 2**31]
    assert "seed" not in [entry.name for entry in captured(nn.Linear(6, 3), seed=9).aten.constants]


def test_kernels_give_the_bits_of_the_reference() -> None:
    found = captured(Augmented(), seed=3)
    state = found.state
    for step in range(3):
        state = next_state(found.program, outputs_of(found.program, state, found.constants, step))


def test_same_seed_same_bytes_and_every_step_and_seed_its_own_numbers() -> None:
    model = Augmented()
    first, same, other = captured(model, 3), captured(model, 3), captured(model, 4)
    assert first.program == same.program == other.program
    assert all(np.array_equal(a, b) for a, b in zip(first.constants, same.constants, strict=True))
    drawn = [draw_words(found, step) for found, step in ((first, 0), (same, 0), (first, 1), (other, 0))]
    assert len(drawn[0]) >= 3
    for a, b, c, d in zip(*drawn, strict=True):
        assert np.array_equal(a, b)
        assert not any(np.array_equal(x, y) for x, y in ((a, c), (a, d), (c, d)))


def test_a_mask_is_where_words_are_below_the_threshold() -> None:
    found = captured(Function(nn.Dropout(0.25)), seed=6)
    key = [np.array(word, np.uint32) for word in (6, 0)]
    element = np.arange(18, dtype=np.uint32)
    words = run(philox(), [element, np.array(2, np.uint32), np.array(0, np.uint32), *key])
    mask, *_ = draw_words(found, 2)
    assert mask.reshape(-1).tolist() == (words < 3 * 2**30).astype(int).tolist()


def test_native_steps_and_ones_own_loop_draw_the_numbers_of_the_program() -> None:
    model = Augmented()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, seed=12)
    constants = [to_tensor(e.type, words) for e, words in zip(found.aten.constants, found.constants, strict=True)]
    state = [to_tensor(e.type, words) for e, words in zip(found.aten.slots, found.state, strict=True)]
    words = found.state
    random = TaskRandomness(12)
    native, canonical = NativeExecutor(found.aten), CpuExecutor(found.program, found.constants)
    for step in range(4):
        state, observed = native.run(state, constants, step)
        outputs = canonical.run(words, step)
        words = next_state(found.program, outputs)
        with random.step(step):
            loss = functional.cross_entropy(model(INPUTS[ORDER[step]]), LABELS[ORDER[step]])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
        # Losses of steps with other numbers differ in the first digit.
        expected = float(outputs[found.names.observed["loss"]].view(np.float32))
        assert float(loss.detach()) == pytest.approx(expected, abs=1e-6)
        assert float(observed["loss"]) == pytest.approx(expected, abs=1e-6)
    for parameter, after in zip(model.parameters(), state, strict=True):
        torch.testing.assert_close(parameter, after, rtol=1e-5, atol=1e-6)


CASES: dict[str, tuple[Callable[[Tensor], Tensor], list[tuple[Any, ...]]]] = {
    "rand": (lambda x: x + torch.rand(6, 3), [("uniform", 0, (6, 3), 0.0, 1.0)]),
    "uniform_": (lambda x: x + torch.empty_like(x).uniform_(-1, 2), [("uniform", 0, (6, 3), -1.0, 2.0)]),
    "randn": (lambda x: x * torch.randn(3), [("normal", 0, (3,), 0.0, 1.0)]),
    "normal_": (lambda x: x + torch.zeros(6, 3).normal_(1, 2), [("normal", 0, (6, 3), 1.0, 2.0)]),
    "normal": (lambda x: x + torch.normal(0.5, 2.0, (3,)), [("normal", 0, (3,), 0.5, 2.0)]),
    "normal of tensors": (lambda x: x + torch.normal(torch.full((3,), 2.0), 0.5), [("normal", 0, (3,), 0.0, 1.0)]),
    "bernoulli": (lambda x: x * torch.bernoulli(torch.sigmoid(x)), [("uniform", 0, (6, 3), 0.0, 1.0)]),
    "bernoulli_": (lambda x: x * torch.empty(6, 1).bernoulli_(0.25), [("bernoulli", 0, (6, 1), 0.25)]),
    "bernoulli_ of a tensor": (
        lambda x: x * torch.zeros(6, 3).bernoulli_(torch.full((3,), 0.5)),
        [("uniform", 0, (6, 3), 0.0, 1.0)],
    ),
    "randint": (lambda x: x + torch.randint(-2, 5, (6, 3)), [("integers", 0, (6, 3), -2, 5)]),
    "randint_like": (lambda x: x + torch.randint_like(x, 4), [("integers", 0, (6, 3), 0, 4)]),
    "native_dropout": (lambda x: torch.native_dropout(x, 0.5, True)[0], [("bernoulli", 0, (6, 3), 0.5)]),
    "dropout1d": (lambda x: functional.dropout1d(x.view(2, 3, 3), 0.5).view(6, 3), [("bernoulli", 0, (2, 3, 1), 0.5)]),
    "two": (lambda x: x * torch.rand(3) + torch.rand(3), [("uniform", n, (3,), 0.0, 1.0) for n in (0, 1)]),
    "dropout of nothing": (lambda x: functional.dropout(x, 0.0), []),
}


@pytest.mark.parametrize("name", CASES)
def test_torch_operations_are_draws(name: str) -> None:
    function, draws = CASES[name]
    model = Function(function)
    found = captured(model, seed=1)
    assert operations(found.aten) == draws
    outputs = CpuExecutor(found.program, found.constants).run(found.state, 3)
    before = torch.get_rng_state()
    with TaskRandomness(1).step(3):
        loss = functional.cross_entropy(model(INPUTS[ORDER[3]]), LABELS[ORDER[3]])
    assert torch.equal(torch.get_rng_state(), before)
    expected = float(outputs[found.names.observed["loss"]].view(np.float32))
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x + torch.poisson(x.abs()), r"aten\.poisson"),
        (lambda x: x + torch.rand(3, generator=torch.Generator()), "leave the generator out"),
        (lambda x: x + torch.zeros(3).normal_(generator=torch.Generator()), "leave the generator out"),
    ],
)
def test_other_random_operations_are_refused_with_their_line(
    function: Callable[[Tensor], Tensor], message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        captured(Function(function))
    assert "test_capture_randomness.py:" in str(caught.value)


def test_draws_of_a_hook_in_the_backward_pass_are_refused() -> None:
    def noisy(x: Tensor) -> Tensor:
        y = x.clone()
        y.register_hook(lambda gradient: gradient + torch.randn_like(gradient))  # type: ignore[no-untyped-call]  # torch declares no types
        return y

    with pytest.raises(UnsupportedError, match="random numbers in the backward pass that are not those"):
        captured(Function(noisy))


def test_a_state_of_the_generator_that_is_put_back_repeats_its_draws() -> None:
    def twice(x: Tensor) -> Tensor:
        before = torch.get_rng_state()
        first = torch.rand(3)
        torch.set_rng_state(before)
        return x * first * torch.rand(3)

    assert operations(captured(Function(twice)).aten) == [("uniform", 0, (3,), 0.0, 1.0)] * 2


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "7"])
def test_a_seed_is_an_integer_of_64_bits(seed: Any) -> None:
    with pytest.raises(UnsupportedError, match="seed"):
        captured(nn.Linear(6, 3), seed)
