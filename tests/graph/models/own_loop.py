"""A captured training beside the user's own loop: the numbers of torch, the same bits in both executors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, capture
from pol.graph.step_program import Component

ROWS, BATCH, STEPS, CLASSES = 8, 2, 2, 3

Loss = Callable[[Any, Any], Tensor]
Setup = tuple[nn.Module, Loss, list[Tensor]]


def labels() -> Tensor:
    return torch.randint(0, CLASSES, (ROWS,))


def require_own_loop(
    model: nn.Module, loss: Loss, dataset: Sequence[Tensor], dtype: torch.dtype = torch.float64
) -> Capture:
    """Captures two steps and compares every node between executors, loss and parameters with the model's own steps.

    Those are taken in binary64, since torch's roundings differ between processors and the program's don't: how far the
    two are apart is then the same number everywhere. The capture itself has compared with steps in binary32.
    """
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    order = torch.randint(0, ROWS, (STEPS, BATCH))
    result = capture(model, loss, optimizer, dataset, order)
    NativeExecutor(result.aten)
    reference, cpu = (kind(result.program, result.constants) for kind in (ReferenceExecutor, CpuExecutor))
    words = result.state
    wide = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in dataset]
    model.to(dtype)  # in place: its parameters stay those of the optimizer
    own = deepcopy(loss).to(dtype) if isinstance(loss, nn.Module) else loss
    for step in range(STEPS):
        optimizer.zero_grad()
        with made_as(dtype):
            value = own(model(*(tensor[order[step]] for tensor in wide[:-1])), wide[-1][order[step]])
            value.backward()
        optimizer.step()
        outputs = reference.run(words, step)
        for number, (expected, got) in enumerate(zip(outputs, cpu.run(words, step), strict=True)):
            np.testing.assert_array_equal(got, expected, err_msg=str(result.names.nodes[number]))
        words = next_state(result.program, outputs)
        canonical = float(outputs[result.names.observed["loss"]].view(np.float32))
        # A small loss is the difference of scores that are not.
        assert canonical == pytest.approx(value.item(), rel=1e-5, abs=1e-6)
    trained = dict(model.named_parameters())
    for entry, canonical_words in zip(result.aten.slots, words, strict=True):
        if entry.component is Component.PARAMETER:
            got = torch.from_numpy(canonical_words.view(np.float32)).to(dtype)
            torch.testing.assert_close(got, trained[entry.name].detach(), rtol=1e-5, atol=2e-6)
    return result


@contextmanager
def made_as(dtype: torch.dtype) -> Iterator[None]:
    """Tensors that a model makes itself have this type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Around(nn.Module):
    """A learned layer, a function of it, and a linear layer that classifies the result."""

    def __init__(self, first: nn.Module, function: Callable[[Tensor], Tensor], *shape: int) -> None:
        super().__init__()
        self.first = first
        self.function = function
        with torch.no_grad():
            width = function(first(torch.zeros(1, *shape))).numel()
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.function(self.first(x)).flatten(1))
        return scores
