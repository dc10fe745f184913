"""A small learning record made by the real recorder: four checkpoints of a linear model."""

from pathlib import Path
from typing import Any

import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn

from pol import Recorder
from pol.training import Checkpoints
from pol.training.record.learning_record import LearningRecord
from pol.training.storage.store import Store

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)


def train(
    store: Store | str,
    steps: int,
    key: Ed25519PrivateKey | Path | str | None = KEY,
    updates: bool = False,
    **options: Any,
) -> LearningRecord:
    """Go on until `steps` steps are done."""
    torch.manual_seed(0)
    model = nn.Linear(40, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    checkpoints = Checkpoints(background=False, updates=updates)
    recorder = Recorder(store, model, optimizer, every=2, key=key, checkpoints=checkpoints)
    recorder.resume()
    while recorder.steps < steps:
        optimizer.zero_grad()
        model(torch.randn(8, 40)).square().mean().backward()
        optimizer.step()
        recorder.step()
    return recorder.close()
