"""A small training in the user's own loop, and the same steps from a capture."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import Optimizer

from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, Loop, capture
from pol.training.task.task_training import to_tensor

ROWS, BATCH, STEPS = 40, 8, 10
X, LABELS = torch.randn(ROWS, 6, generator=torch.manual_seed(2)), torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (STEPS, BATCH), generator=torch.manual_seed(3))
Make = Callable[[Any], Optimizer]


def network() -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3))


def eager(
    model: nn.Module, optimizer: Optimizer, loop: Loop, scheduler: Any = None, steps: range = range(STEPS)
) -> list[float]:
    """What a user writes; the losses."""
    losses = []
    base = [group["lr"] for group in optimizer.param_groups]
    for step in steps:
        if scheduler is None and callable(loop.scheduler):
            for group, lr in zip(optimizer.param_groups, base, strict=True):
                group["lr"] = lr * loop.scheduler(step)
        optimizer.zero_grad()
        total = 0.0
        for rows in ORDER[step].reshape(loop.accumulation, -1):
            loss = functional.cross_entropy(model(X[rows]), LABELS[rows]) / loop.accumulation
            loss.backward()
            total += loss.item()
        if loop.clip_norm is not None:
            clip_grad_norm_(model.parameters(), loop.clip_norm, foreach=False)
        if loop.clip_value is not None:
            clip_grad_value_(model.parameters(), loop.clip_value, foreach=False)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(total)
    return losses


def captured(model: nn.Module, optimizer: Optimizer, loop: Loop = Loop()) -> Capture:  # noqa: B008  # immutable
    return capture(model, functional.cross_entropy, optimizer, (X, LABELS), ORDER, loop)


def native(result: Capture, steps: int = STEPS) -> tuple[dict[str, Tensor], list[float]]:
    """The state by name after training with torch's kernels, and the losses."""
    executor = NativeExecutor(result.aten)
    constants = [to_tensor(e.type, words) for e, words in zip(result.aten.constants, result.constants, strict=True)]
    state = [to_tensor(e.type, words) for e, words in zip(result.aten.slots, result.state, strict=True)]
    losses = []
    for step in range(steps):
        state, observed = executor.run(state, constants, step)
        losses.append(float(observed["loss"]))
    return dict(zip(result.names.slots, state, strict=True)), losses


def canonical(result: Capture, steps: int) -> dict[str, np.ndarray[Any, Any]]:
    """The state by name after canonical steps; every node has the same bits in both executors."""
    fast, slow = CpuExecutor(result.program, result.constants), ReferenceExecutor(result.program, result.constants)
    words = result.state
    for step in range(steps):
        outputs = slow.run(words, step)
        for number, (left, right) in enumerate(zip(fast.run(words, step), outputs, strict=True)):
            np.testing.assert_array_equal(left, right, err_msg=result.names.nodes[number].name)
        words = next_state(result.program, outputs)
    return {name: w.view(np.float32) for name, w in zip(result.names.slots, words, strict=True)}


def assert_near(actual: Mapping[str, Any], model: nn.Module, optimizer: Optimizer, tolerance: float) -> None:
    """Parameters and optimizer state, relative to the size of each tensor."""
    for name, parameter in model.named_parameters():
        expected = {name: parameter, **{f"{name}:{key}": value for key, value in optimizer.state[parameter].items()}}
        for slot, tensor in expected.items():
            if slot in actual:
                difference = np.linalg.norm(np.asarray(actual[slot]) - tensor.detach().numpy())
                assert difference <= tolerance * np.linalg.norm(tensor.detach().numpy()) + 1e-12, slot
