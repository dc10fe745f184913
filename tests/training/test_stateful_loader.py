"""A loader with a state of its own goes to its place when a training is resumed, and no used batch is drawn again."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pol.training.record.learning_record import LearningRecord
from pol.training.recorder.recorder import Recorder


def train(store: str, loader: Any, steps: int, stop: int | None = None) -> LearningRecord | None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    recorder = Recorder(store, model, optimizer, every=3, parts={"loader": loader})
    recorder.resume()
    while recorder.steps < steps:
        for batch in recorder.batches(loader):
            optimizer.zero_grad()
            model(batch[0]).square().mean().backward()
            optimizer.step()
            recorder.step()
            if recorder.steps in (stop, steps):
                break
        if recorder.steps == stop:
            recorder.flush()
            return None
    return recorder.close()


def roots(record: LearningRecord | None) -> list[str]:
    assert record is not None
    assert [checkpoint.step for checkpoint in record.checkpoints] == list(range(0, 25, 3))
    return [checkpoint.root.hex() for checkpoint in record.checkpoints]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stops", [[2, 11], [10], [20]])
def test_torchdata(tmp_path: Path, workers: int, stops: list[int]) -> None:
    loaders = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata isn't installed")
    data = TensorDataset(torch.randn(100, 8, generator=torch.Generator().manual_seed(1)))

    def loader() -> DataLoader[Any]:
        made: DataLoader[Any] = loaders.StatefulDataLoader(data, batch_size=10, shuffle=True, num_workers=workers)
        return made

    torch.manual_seed(0)
    whole = roots(train(f"file://{tmp_path}/whole", loader(), 24))
    torch.manual_seed(0)
    for stop in stops:
        train(f"file://{tmp_path}/cut", loader(), 24, stop)
    torch.manual_seed(5)
    assert roots(train(f"file://{tmp_path}/cut", loader(), 24)) == whole
