"""Small trainings whose steps `pol.exact` takes, by a call or by the lines of an ordinary loop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW, Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from pol import Loop, TaskRandomness, exact

ROWS, BATCH, STEPS = 40, 8, 6
X, LABELS = torch.randn(ROWS, 6, generator=torch.manual_seed(2)), torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (STEPS, BATCH), generator=torch.manual_seed(3))


def squares(output: Tensor, target: Tensor) -> Tensor:
    """A loss of the user's own."""
    return functional.cross_entropy(output, target) + 0.01 * output.square().mean()


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Dropout(0.25), nn.Linear(7, 3))


class Pair(nn.Module):
    """Takes two inputs, gives two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        return self.left(left), self.right(right)


def of_pair(outputs: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    return squares(outputs[0] + outputs[1], target)


def batches(first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    for step in range(first, STEPS):
        yield X[ORDER[step]], LABELS[ORDER[step]]


@dataclass
class Training:
    """Objects of a training with the step that was made of them."""

    model: nn.Module
    optimizer: Optimizer
    scheduler: LRScheduler | None
    step: Any

    def losses(self) -> list[float]:
        """Those of all steps, taken by calls."""
        return [self.step(x, y).item() for x, y in batches()]

    def lines(self, loss: Callable[..., Any], x: Tensor, y: Tensor) -> float:
        """The lines of one step of an ordinary loop; the loss."""
        self.optimizer.zero_grad()
        value = loss(self.model(x), y)
        value.backward()
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return float(value.item())

    def state(self) -> dict[str, Any]:
        """Everything that a step changes, as bytes where it's numbers."""
        parts = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "step": self.step}
        return {name: bytes_of(part.state_dict()) for name, part in parts.items() if part is not None}


def bytes_of(value: Any) -> Any:
    """A nested state with bytes for tensors."""
    if isinstance(value, Tensor):
        return value.dtype, value.shape, value.detach().numpy().tobytes()
    if isinstance(value, dict):
        return {key: bytes_of(item) for key, item in value.items()}
    return [bytes_of(item) for item in value] if isinstance(value, list | tuple) else value


def training(
    make: Callable[[], nn.Module] = plain,
    loss: Any = functional.cross_entropy,
    schedule: Callable[[Optimizer], LRScheduler] | None = None,
    **around: Any,
) -> Training:
    with TaskRandomness(7).initialization():
        model = make()
    optimizer = AdamW(model.parameters(), lr=1e-2)
    scheduler = None if schedule is None else schedule(optimizer)
    step = exact(model, loss, optimizer, Loop(scheduler, **around), steps=STEPS, seed=5, check=False)
    return Training(model, optimizer, scheduler, step)


def cosine(optimizer: Optimizer) -> LRScheduler:
    return lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


def joined(optimizer: Optimizer) -> LRScheduler:
    parts = [lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    return lr_scheduler.SequentialLR(optimizer, parts, [2])


def chained(optimizer: Optimizer) -> LRScheduler:
    return lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(optimizer, 0.9), lr_scheduler.ConstantLR(optimizer, 0.5, 3)]
    )
