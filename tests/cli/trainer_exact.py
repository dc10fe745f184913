"""A small trainer whose argument says what takes its steps: ``exact`` or ``eager``."""

import random
import sys

import numpy as np
import torch
from torch import Tensor, nn

import pol

STEPS = 12

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
numbers = torch.randint(-8, 9, (64, 40), generator=torch.Generator().manual_seed(1))
data, labels = numbers / 8, (numbers[:, :4].sum(1) > 0).long()
with pol.TaskRandomness(7).initialization():
    model = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
exact = pol.exact(model, nn.functional.cross_entropy, optimizer, steps=STEPS, seed=7)


def eager(x: Tensor, y: Tensor) -> None:
    """The ordinary step."""
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


recorder = pol.Recorder("build/run", model, optimizer, every=4, parts={"exact": exact})
recorder.resume()
while recorder.steps < STEPS:
    rows = torch.randint(0, 64, (32,))
    (exact if sys.argv[1] == "exact" else eager)(data[rows], labels[rows])
    recorder.step()
recorder.close()
