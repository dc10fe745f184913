"""A Trainer of Lightning on several processes, which it starts itself or torchrun does; its argument: the store."""

import sys
import tempfile
from typing import Any

import lightning
import torch
from accelerate_ranks import Data
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pol.integrations.lightning import LightningRecording


class Module(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 33), nn.BatchNorm1d(33), nn.Dropout(0.2), nn.Linear(33, 1))

    def loss(self, batch: Any) -> Tensor:
        x, y = batch
        return ((self.body(x).squeeze(1) - y) ** 2).mean()

    def training_step(self, batch: Any, index: int) -> Tensor:
        return self.loss(batch)

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("loss", self.loss(batch))  # each process its own: EarlyStopping's states differ

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def main(store: str, strategy: str = "ddp") -> None:
    """On two processes, 7 batches of 5 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    recording = LightningRecording(store, every=3)
    trainer = Trainer(
        accelerator="cpu", devices=2, strategy=strategy, max_epochs=4, accumulate_grad_batches=2, val_check_interval=3,
        logger=False, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
        callbacks=[recording, EarlyStopping("loss", patience=100)], default_root_dir=tempfile.mkdtemp(),
    )  # fmt: skip
    torch.manual_seed(100 + trainer.global_rank)
    train = recording.batches(DataLoader(Data(), batch_size=5, shuffle=True))
    trainer.fit(Module(), train, DataLoader(Data(), batch_size=5), ckpt_path=recording.resume())
    assert recording.recorder is not None
    print([checkpoint.step for checkpoint in recording.recorder.close().checkpoints], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
