"""The training whose record is kept: the same bits on every machine, so a resumption has one right end."""

from __future__ import annotations

from pathlib import Path

import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn

import pol
from pol import Recorder, Store
from pol.training.record.learning_record import HEAD, LearningRecord
from pol.training.storage.stored_checkpoint import load_document

STEPS, INTERRUPTED, EVERY = 12, 8, 4
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
"""Everybody knows it: a kept record proves nothing about its author."""


def model_and_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    """First weights that are the same everywhere."""
    with pol.TaskRandomness(7).initialization():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def last_tensors(folder: Path) -> dict[str, str]:
    """Roots of the tensors after the last step; the environment, which a complete root holds as well, may differ."""
    store = Store(str(folder))
    record = LearningRecord.decode(store.read(HEAD))
    entries = load_document(store, record.checkpoints[-1].object).entries
    return {entry.name: entry.content.hex() for entry in entries if entry.type is not None}


def train(folder: Path, until: int) -> LearningRecord:
    """Go on from what the folder holds until so many steps are done."""
    torch.manual_seed(0)
    numbers = torch.randint(-8, 9, (64, 4), generator=torch.Generator().manual_seed(1))
    data, labels = numbers / 8, (numbers.sum(1) > 0).long()
    model, optimizer = model_and_optimizer()
    step = pol.exact(model, nn.functional.cross_entropy, optimizer, steps=STEPS, seed=7, threads=1)
    recorder = Recorder(str(folder), model, optimizer, every=EVERY, parts={"exact": step}, key=KEY)
    recorder.resume()
    while recorder.steps < until:
        rows = torch.randint(0, 64, (8,))
        step(data[rows], labels[rows])
        recorder.step()
    return recorder.close()
