"""State of the user's Python outside of objects' attributes is refused by its name, and put back where it can be."""

import functools
import itertools
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pol.errors import UnsupportedError
from pol.graph.capture import Capture, capture
from pol.graph.capture.guards.mutation_guard import Snapshot

torch.manual_seed(5)
INPUTS, LABELS = torch.randn(12, 4), torch.arange(12) % 3
ORDER = torch.arange(12).reshape(3, 4)
COUNTS = [0]
NUMBER = 0
SETTINGS = types.SimpleNamespace(rate=1.0)
MEAN = torch.tensor(0.5)
GENERATOR = random.Random(3)
Loss = Callable[[Tensor, Tensor], Tensor]


def captured(loss: Loss, model: nn.Module | None = None) -> Capture:
    model = nn.Linear(4, 3) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return capture(model, loss, optimizer, (INPUTS, LABELS), ORDER, check=False)


def counted(output: Tensor, target: Tensor) -> Tensor:
    COUNTS[0] += 1
    return functional.cross_entropy(output, target) / COUNTS[0]


def numbered(output: Tensor, target: Tensor) -> Tensor:
    global NUMBER  # noqa: PLW0603  # what is refused
    NUMBER += 1
    return functional.cross_entropy(output, target) / NUMBER


def decaying(output: Tensor, target: Tensor) -> Tensor:
    def rate() -> float:
        SETTINGS.rate *= 0.9
        return float(SETTINGS.rate)

    return functional.cross_entropy(output, target) * rate()


def averaging(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target) * MEAN.mul_(0.9)


def drawing(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target) * GENERATOR.random()


def with_attribute(output: Tensor, target: Tensor) -> Tensor:
    with_attribute.calls += 1  # type: ignore[attr-defined]
    return functional.cross_entropy(output, target) / with_attribute.calls  # type: ignore[attr-defined]


with_attribute.calls = 0  # type: ignore[attr-defined]


def with_default(output: Tensor, target: Tensor, seen: list[int] = [0]) -> Tensor:  # noqa: B006
    seen[0] += 1
    return functional.cross_entropy(output, target) / seen[0]


def with_keyword(output: Tensor, target: Tensor, *, seen: list[int] = [0]) -> Tensor:  # noqa: B006
    seen[0] += 1
    return functional.cross_entropy(output, target) / seen[0]


@functools.wraps(counted)
def decorated(*arguments: Tensor) -> Tensor:
    return counted(*arguments)


class Weighted:
    calls = 0

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target) / self.weight()

    @classmethod
    def weight(cls) -> int:
        cls.calls += 1
        return cls.calls


class Slotted:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        self.calls += 1
        return functional.cross_entropy(output, target) / self.calls


class Scaled(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        Scaled.calls += 1
        return gradients[0] / Scaled.calls


def backward_counted(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(Scaled.apply(output), target)  # type: ignore[no-untyped-call]


STATE: list[tuple[Loss, str]] = [
    (counted, r"global COUNTS\[0\] changes.*move it into the model"),
    (numbered, r"global NUMBER changes"),
    (decaying, r"global SETTINGS\.rate changes"),
    (averaging, r"MEAN\.mul_.*writes into global MEAN"),
    (drawing, r"global GENERATOR changes"),
    (with_attribute, r"with_attribute\.calls changes|loss\.calls changes"),
    (with_default, r"loss: default \[0\]\[0\] changes"),
    (with_keyword, r"loss: default \[0\]\[0\] changes"),
    (decorated, r"global COUNTS\[0\] changes"),
    (functools.partial(counted), r"global COUNTS\[0\] changes"),
    (Weighted(), r"Weighted\.calls changes"),
    (Slotted(), r"loss\.calls changes"),
    (backward_counted, r"Scaled\.calls changes"),
]


def place(loss: Any) -> Any:
    numbers = (COUNTS[0], NUMBER, SETTINGS.rate, float(MEAN), GENERATOR.getstate(), Weighted.calls, Scaled.calls)
    defaults = getattr(loss, "__defaults__", None), getattr(loss, "__kwdefaults__", None), getattr(loss, "calls", None)
    return repr((numbers, defaults))


@pytest.mark.parametrize(("loss", "message"), STATE)
def test_state_of_code_is_refused_and_put_back(loss: Loss, message: str) -> None:
    before = place(loss)
    with pytest.raises(UnsupportedError, match=message):
        captured(loss)
    assert place(loss) == before


def test_a_hook_on_a_global_counter_is_refused() -> None:
    def hook(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        COUNTS[0] += 1
        return output / COUNTS[0]

    model = nn.Linear(4, 3)
    model.register_forward_hook(hook)
    with pytest.raises(UnsupportedError, match=r"global COUNTS\[0\] changes"):
        captured(functional.cross_entropy, model)
    assert COUNTS == [0]


class Taking(nn.Module):
    """Multiplies by the next number."""

    def __init__(self, numbers: Iterator[Any]) -> None:
        super().__init__()
        self.fc, self.numbers = nn.Linear(4, 3), numbers

    def forward(self, x: Tensor) -> Tensor:
        number = next(self.numbers)
        return self.fc(x) * (1.0 if (number[0] if isinstance(number, tuple) else number) < 100 else 0.5)


def generator() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


@pytest.mark.parametrize(
    "numbers",
    [
        itertools.count, generator, lambda: iter([1] * 9), lambda: iter((1,) * 9), lambda: iter(range(9)),
        lambda: map(float, [1] * 9), lambda: enumerate([1] * 9), lambda: zip([1] * 9, [2] * 9, strict=True),
        lambda: itertools.chain([1] * 9, [2]), lambda: itertools.cycle([1] * 3),
        lambda: itertools.islice(itertools.count(), 9),
    ],
)  # fmt: skip
def test_an_iterator_that_a_step_advances_is_refused(numbers: Callable[[], Iterator[Any]]) -> None:
    with pytest.raises(UnsupportedError, match=r"attribute model\.numbers changes"):
        captured(functional.cross_entropy, Taking(numbers()))


def test_an_iterator_over_a_sequence_goes_back() -> None:
    numbers = iter([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(UnsupportedError, match=r"attribute model\.numbers changes"):
        captured(functional.cross_entropy, Taking(numbers))
    assert next(numbers) == 1.0


@pytest.mark.parametrize(
    "source", [random.Random(3), np.random.default_rng(3), np.random.RandomState(3), torch.Generator().manual_seed(3)]
)
def test_generators_of_random_numbers_go_back(source: Any) -> None:
    def draw() -> float:
        if isinstance(source, torch.Generator):
            return float(torch.rand(1, generator=source))
        return float(source.random())

    snapshot = Snapshot({"model": [source]})
    first = draw()
    snapshot.settle()
    draw()
    with pytest.raises(UnsupportedError, match=r"attribute model\[0\] changes"):
        snapshot.require_unchanged(first_run=False)
    snapshot.restore()
    assert draw() == first


TABLE = {"a": torch.arange(3.0)}
WEIGHTS = np.array([1.0, 2.0, 3.0], np.float32)


class Constant:
    shift = 0.5

    @staticmethod
    @functools.lru_cache
    def scale(size: int) -> float:
        return 1 / size


def test_global_constants_and_caches_are_no_obstacle() -> None:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        weights = torch.from_numpy(WEIGHTS) * TABLE["a"]
        return functional.cross_entropy(output * weights + Constant.shift, target) * Constant.scale(len(output))

    captured(loss)


def test_libraries_are_not_walked() -> None:
    snapshot = Snapshot({"model": nn.TransformerEncoderLayer(4, 2), "loss": functional.cross_entropy})
    assert len(snapshot._objects) < 200
