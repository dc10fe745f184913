"""Exact steps on a device: the bits of the processor in the user's own tensors."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import AdamW

from pol import Loop, exact
from pol.errors import ProtocolError

STEPS, ROWS = 4, 8


def trained(**options: Any) -> tuple[list[float], dict[str, bytes]]:
    """Losses of each step; parameters, buffers and optimizer state at the end. The last batch is a smaller one."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    step = exact(
        model, functional.cross_entropy, optimizer, Loop(scheduler=schedule), steps=STEPS, check=False, **options
    )
    losses = []
    for number in range(STEPS):
        rows = ROWS if number < STEPS - 1 else ROWS // 2
        generator = torch.Generator().manual_seed(number)
        losses.append(float(step(torch.randn(rows, 6, generator=generator), torch.arange(rows) % 3)))
    tensors = {
        **model.state_dict(),
        **{f"{i}.{key}": t for i, own in optimizer.state_dict()["state"].items() for key, t in own.items()},
    }
    return losses, {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def test_the_bytes_of_the_processor() -> None:
    assert trained(device="host") == trained(threads=1)


def test_names() -> None:
    with pytest.raises(ProtocolError, match="there is no device 'gpu'"):
        trained(device="gpu")
