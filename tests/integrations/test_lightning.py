"""Trainer of Lightning: a run that was cut in the middle of an epoch ends with the same complete roots."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from accelerate_ranks import Data
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping, EMAWeightAveraging, StochasticWeightAveraging
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.lightning import LightningRecording
from pol.training.record.learning_record import LearningRecord

# Advice of Lightning about speed and logs, which is right for trainings of this size, and a deprecation inside of it.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
    pytest.mark.filterwarnings("ignore:.*smaller than the logging interval.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),
]


class Stop(Exception):
    pass


class StopAt(Callback):
    """A machine that fails: in the middle of a step."""

    def __init__(self, step: int):
        self.step = step

    def on_before_optimizer_step(self, trainer: Any, *others: Any) -> None:
        if trainer.global_step == self.step:
            raise Stop


class Endless(torch.utils.data.IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        return iter(lambda: torch.randn(8), None)


class Module(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
        self.register_buffer("drawn", torch.zeros(()), persistent=False)

    def loss(self, batch: Any) -> Tensor:
        x, y = batch
        return ((self.body(x).squeeze(1) - y) ** 2).mean()

    def training_step(self, batch: Any, index: int) -> Tensor:
        self.drawn += torch.rand(())
        return self.loss(batch)

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("loss", self.loss(batch) + 0 * torch.rand(()))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def train(
    folder: Path,
    store: str,
    stop: int | None = None,
    module: type[Module] = Module,
    more: Sequence[Callback] = (),
    **changes: Any,
) -> LearningRecord | None:
    """7 batches of 10 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    lightning.seed_everything(0, verbose=False)
    recording = LightningRecording(f"file://{folder}/{store}", every=3)
    data = Data()
    options = {
        "accelerator": "cpu", "max_epochs": 3, "accumulate_grad_batches": 2, "precision": "bf16-mixed",
        "val_check_interval": 3, "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
        "enable_checkpointing": False,
    }  # fmt: skip
    callbacks = [recording, *more, EarlyStopping("loss", patience=100)] + ([StopAt(stop)] if stop is not None else [])
    trainer = Trainer(default_root_dir=folder, callbacks=callbacks, **(options | changes))
    train_batches = recording.batches(DataLoader(data, batch_size=10, shuffle=True))
    arguments = (module(), train_batches, DataLoader(data, batch_size=10))
    if stop is not None:
        with pytest.raises(Stop):
            trainer.fit(*arguments, ckpt_path=recording.resume())
        return None
    trainer.fit(*arguments, ckpt_path=recording.resume())
    assert recording.recorder is not None
    return recording.recorder.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> LearningRecord:
    record = train(tmp_path_factory.mktemp("whole"), "whole")
    assert record is not None
    return record


@pytest.mark.parametrize("stops", [[2], [5], [4, 8], [11]])
def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path, whole: LearningRecord, stops: list[int]) -> None:
    for stop in stops:
        train(tmp_path, "cut", stop)
    cut = train(tmp_path, "cut")
    assert cut is not None
    assert [c.step for c in cut.checkpoints] == [0, 3, 6, 9, 12]
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
    assert len({c.root for c in cut.checkpoints}) == 5


def test_a_finished_run_goes_on_where_it_ended(tmp_path: Path, whole: LearningRecord) -> None:
    """More epochs than were planned: the same as if they had been planned."""
    assert train(tmp_path, "parts", max_epochs=1) is not None
    parts = train(tmp_path, "parts")
    assert parts is not None
    assert [c.step for c in parts.checkpoints] == [0, 3, 4, 6, 9, 12]
    assert parts.checkpoints[-1].root == whole.checkpoints[-1].root


class Two(Module):
    """Two optimizers that a batch steps in turn, without Lightning's own optimization."""

    automatic_optimization = False

    def training_step(self, batch: Any, index: int) -> None:
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            optimizer.step()

    def configure_optimizers(self) -> Any:
        first, last = self.body[:3].parameters(), self.body[3].parameters()
        return [torch.optim.Adam(first, lr=1e-2), torch.optim.SGD(last, lr=1e-3, momentum=0.9)]


def test_a_batch_in_which_two_optimizers_step_is_one_step(tmp_path: Path) -> None:
    options: dict[str, Any] = {"module": Two, "accumulate_grad_batches": 1}
    whole = train(tmp_path, "whole", **options)
    train(tmp_path, "cut", 18, **options)
    cut = train(tmp_path, "cut", **options)
    assert whole is not None
    assert cut is not None
    assert [c.step for c in cut.checkpoints] == [0, 3, 6, 9, 12, 15, 18, 21]
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]


class Counting(Module):
    """Counts in an attribute, which it adds to checkpoints itself, and follows the count."""

    count = 0

    def training_step(self, batch: Any, index: int) -> Tensor:
        self.count += 1
        return super().training_step(batch, index) * (1 + self.count % 3)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["count"] = self.count

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.count = checkpoint["count"]


class Daily(Module):
    """One rate an epoch, which weight averaging takes over."""

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


@pytest.mark.parametrize(
    ("module", "more"),
    [
        (Counting, list),
        (Module, lambda: [EMAWeightAveraging(decay=0.9)]),
        (Daily, lambda: [StochasticWeightAveraging(1e-2, swa_epoch_start=1)]),
    ],
    ids=["hooks", "average", "swa"],
)
@pytest.mark.filterwarnings("ignore:.*SWA")
def test_what_hooks_add_to_checkpoints_comes_back(tmp_path: Path, module: type[Module], more: Any) -> None:
    whole = train(tmp_path, "whole", None, module, more())
    for stop in (4, 8, 11):
        train(tmp_path, "cut", stop, module, more())
    cut = train(tmp_path, "cut", None, module, more())
    assert whole is not None
    assert cut is not None
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
    if module is Daily:
        train(tmp_path, "late", 12, module, more())
        with pytest.raises(ProtocolError, match="can't be resumed inside of StochasticWeightAveraging's last pass"):
            train(tmp_path, "late", None, module, more())


class Averaging(Module):
    """Logs the number of each batch, and keeps the mean over the epoch that Lightning makes of them."""

    means: list[float]

    def training_step(self, batch: Any, index: int) -> Tensor:
        self.log("mean", float(index), on_epoch=True, on_step=False)
        return super().training_step(batch, index)

    def on_train_epoch_end(self) -> None:
        self.means.append(float(self.trainer._results["training_step.mean"].compute()))


def test_a_mean_over_the_resumed_epoch_is_that_of_its_rest(tmp_path: Path) -> None:
    """Lightning keeps the sums of logged values in no checkpoint: docs/guides/integrations.md says so."""
    Averaging.means = []
    train(tmp_path, "cut", 3, Averaging)
    train(tmp_path, "cut", module=Averaging)
    assert Averaging.means == [6.0, 3.0, 3.0]


def test_what_was_forgotten_is_said(tmp_path: Path) -> None:
    train(tmp_path, "cut", 5)
    data = DataLoader(Data(), batch_size=10)
    options: dict[str, Any] = {"accelerator": "cpu", "max_epochs": 1, "logger": False, "enable_checkpointing": False}
    recording = LightningRecording(f"file://{tmp_path}/cut", every=3)
    with pytest.raises(ProtocolError, match=r"ckpt_path=recording.resume\(\)"):
        Trainer(callbacks=[recording], **options).fit(Module(), recording.batches(data), data)
    recording = LightningRecording(f"file://{tmp_path}/new", every=3)
    with pytest.raises(ProtocolError, match=r"recording.batches\(loader\)"):
        Trainer(callbacks=[recording], **options).fit(Module(), data, data)
    recording = LightningRecording(f"file://{tmp_path}/new", every=3)
    with pytest.raises(ProtocolError, match=r"callbacks=\[recording\]"):
        Trainer(**options).fit(Module(), recording.batches(data), data)
    with pytest.raises(UnsupportedError, match="no length"):
        recording.batches(DataLoader(Endless()))
