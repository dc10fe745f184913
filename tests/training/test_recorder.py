"""The recorder in a plain loop: every component is in the root, and resumption is exact wherever the run was cut."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pol.errors import ProtocolError
from pol.training import Recorder
from pol.training.record import LearningRecord

EPOCHS = 3


def train(store: str, stop: int | None = None, own_generator: bool = False, workers: int = 0) -> LearningRecord | None:
    """A run with dropout, batch norm, a schedule and a shuffled loader; `stop` leaves it after so many steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    x = torch.randn(100, 8, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2) if own_generator else None
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=10, shuffle=True, generator=generator, num_workers=workers)
    recorder = Recorder(store, model, optimizer, every=7, scheduler=scheduler)
    for _ in range(recorder.resume(), EPOCHS):
        for inputs, targets in recorder.batches(loader):
            loss = ((model(inputs) - targets) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            recorder.step()
            if recorder.steps == stop:
                return None
    return recorder.close()


@pytest.mark.parametrize("own_generator", [False, True])
@pytest.mark.parametrize("stop", [1, 7, 10, 20, 26])
def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path, stop: int, own_generator: bool) -> None:
    whole = train(f"file://{tmp_path}/whole", own_generator=own_generator)
    assert train(f"file://{tmp_path}/cut", stop, own_generator) is None
    cut = train(f"file://{tmp_path}/cut", own_generator=own_generator)
    assert whole is not None
    assert cut is not None
    assert [c.step for c in cut.checkpoints] == [0, 7, 14, 21, 28, 30]
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
    assert len({c.root for c in cut.checkpoints}) == 6


def test_a_step_needs_a_start(tmp_path: Path) -> None:
    recorder = Recorder(f"file://{tmp_path}", nn.Linear(2, 2))
    with pytest.raises(ProtocolError, match=r"resume\(\) before the first step"):
        recorder.step()
