"""Trainer of transformers: a run that was cut in the middle of an epoch ends with the same complete roots."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from stopped_trainer import Stop, StopAt
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments, set_seed

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.transformers import TransformersRecording
from pol.training.record.learning_record import LearningRecord


class Data(torch.utils.data.Dataset[dict[str, Tensor]]):
    """70 points; each time one is read it is moved at random, as augmentation does."""

    def __init__(self) -> None:
        self.x = torch.randn(70, 8, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self.x[index] + 0.01 * torch.randn(8), "labels": self.x[index].sum()}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        y = self.body(x).squeeze(1)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}


def make(folder: Path, **changes: Any) -> Trainer:
    """7 batches of 10 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    set_seed(0)
    arguments = {
        "output_dir": str(folder / "out"), "per_device_train_batch_size": 10, "gradient_accumulation_steps": 2,
        "num_train_epochs": 3, "learning_rate": 1e-2, "lr_scheduler_type": "cosine", "warmup_steps": 2, "bf16": True,
        "logging_steps": 3, "save_strategy": "no", "eval_strategy": "steps", "eval_steps": 2, "use_cpu": True,
        "report_to": "none", "disable_tqdm": True, "dataloader_pin_memory": False, "seed": 3,
    }  # fmt: skip
    return Trainer(
        model=Model(),
        args=TrainingArguments(**(arguments | changes)),
        train_dataset=Data(),
        eval_dataset=Data(),
    )


def train(folder: Path, store: str, stop: int | None = None, draw: int = 0, **changes: Any) -> LearningRecord | None:
    trainer = make(folder, **changes)
    torch.manual_seed(draw)
    recording = TransformersRecording(trainer, f"file://{folder}/{store}", every=3)
    if stop is not None:
        trainer.add_callback(StopAt(stop))
        with pytest.raises(Stop):
            trainer.train(resume_from_checkpoint=recording.resume())
        if recording.recorder is not None:
            recording.recorder.flush()
        return None
    trainer.train(resume_from_checkpoint=recording.resume())
    assert recording.recorder is not None
    return recording.recorder.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> LearningRecord:
    record = train(tmp_path_factory.mktemp("whole"), "whole")
    assert record is not None
    return record


@pytest.mark.parametrize("stops", [[5], [4, 8], [11]])
def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path, whole: LearningRecord, stops: list[int]) -> None:
    for stop in stops:
        train(tmp_path, "cut", stop)
    cut = train(tmp_path, "cut", draw=5)
    assert cut is not None
    assert [c.step for c in cut.checkpoints] == [0, 3, 6, 9, 12]
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
    assert len({c.root for c in cut.checkpoints}) == 5


def test_a_finished_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    """More epochs than were planned: with a constant rate, the same as if they had been planned."""
    constant = {"lr_scheduler_type": "constant", "warmup_steps": 0}
    whole = train(tmp_path, "whole", **constant)
    assert train(tmp_path, "parts", num_train_epochs=1, **constant) is not None
    parts = train(tmp_path, "parts", **constant)
    assert whole is not None
    assert parts is not None
    assert [c.step for c in parts.checkpoints] == [0, 3, 4, 6, 9, 12]
    assert parts.checkpoints[-1].root == whole.checkpoints[-1].root


def test_a_trainer_that_starts_anew_over_a_record_is_stopped(tmp_path: Path) -> None:
    train(tmp_path, "cut", 5)
    trainer = make(tmp_path)
    TransformersRecording(trainer, f"file://{tmp_path}/cut", every=3)
    with pytest.raises(ProtocolError, match="resume_from_checkpoint=recording"):
        trainer.train()


class Endless(torch.utils.data.IterableDataset[dict[str, Tensor]]):
    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return itertools.cycle(Data()[i] for i in range(70))


def test_data_without_a_length_is_refused(tmp_path: Path) -> None:
    trainer = make(tmp_path, max_steps=3)
    trainer.train_dataset = Endless()
    recording = TransformersRecording(trainer, f"file://{tmp_path}/new", every=3)
    with pytest.raises(UnsupportedError, match="no length"):
        trainer.train(resume_from_checkpoint=recording.resume())
