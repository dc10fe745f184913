"""A loader with a state of its own goes to its place when a training is resumed, and no used batch is drawn again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from pol.training.record.learning_record import LearningRecord
from pol.training.recorder.recorder import Recorder


class Packed:
    """Cuts an endless text into lines of random length; it stands between two lines, and counts what it reads."""

    def __init__(self) -> None:
        self.text = torch.randn(4000, generator=torch.Generator().manual_seed(1))
        self.at = self.lines = self.read = 0

    def __iter__(self) -> Iterator[Tensor]:
        torch.rand(())  # as loaders draw a seed for their workers
        return self._lines()

    def _lines(self) -> Iterator[Tensor]:
        while self.lines % 10 or not self.lines:
            length = int(torch.randint(8, 20, ()))
            self.at, self.lines, self.read = self.at + length, self.lines + 1, self.read + 1
            yield self.text[self.at - length : self.at][:8]
        self.lines += 1

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at, "lines": self.lines}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at, self.lines = state["at"], state["lines"]


def train(store: str, loader: Any, steps: int, stop: int | None = None) -> LearningRecord | None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    recorder = Recorder(store, model, optimizer, every=3, parts={"loader": loader})
    recorder.resume()
    while recorder.steps < steps:
        for batch in recorder.batches(loader):
            optimizer.zero_grad()
            model(batch[0] if isinstance(batch, list) else batch).square().mean().backward()
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


def test_it_goes_to_its_place(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = roots(train(f"file://{tmp_path}/whole", Packed(), 24))
    torch.manual_seed(0)
    train(f"file://{tmp_path}/cut", Packed(), 24, 8)
    loader = Packed()
    torch.manual_seed(5)
    assert roots(train(f"file://{tmp_path}/cut", loader, 24)) == whole
    assert loader.read == 24 - 6, "the six lines before the checkpoint aren't read again"


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
