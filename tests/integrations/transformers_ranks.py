"""A Trainer of transformers on several processes; its arguments: how, and the store."""

import os
import sys
import tempfile

import numpy as np
import torch
from accelerate_ranks import Data as Points
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments, set_seed

from pol.integrations.transformers import TransformersRecording


class Data(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __init__(self) -> None:
        self.points = Points()

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        x, y = self.points[index]
        return {"x": x, "labels": y}


class Model(nn.Module):
    def __init__(self, width: int = 33) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.Dropout(0.2), nn.Linear(width, 1))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        y = self.body(x).squeeze(1)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}


def main(kind: str, store: str) -> None:
    """On two processes, 7 batches of 5 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    torch.set_num_threads(1)
    set_seed(3)
    sharded = {"fsdp": True, "fsdp_config": {"version": 2}} if kind == "fsdp2" else {}
    sharded |= {"accelerator_config": {"use_seedable_sampler": False}} if kind == "unseeded" else {}
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=5, gradient_accumulation_steps=2,
        num_train_epochs=4, learning_rate=1e-2, lr_scheduler_type="cosine", logging_steps=3, save_strategy="no",
        eval_strategy="steps", eval_steps=2, use_cpu=True, report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, seed=3, **sharded,
    )  # fmt: skip
    trainer = Trainer(model=Model(), args=arguments, train_dataset=Data(), eval_dataset=Data())
    np.random.seed(arguments.process_index)
    torch.manual_seed(100 + arguments.process_index)
    recording = TransformersRecording(trainer, store, every=3)
    trainer.train(resume_from_checkpoint=recording.resume())
    assert recording.recorder is not None
    print([checkpoint.step for checkpoint in recording.recorder.close().checkpoints], flush=True)
    os._exit(0)  # torch may wait for ever when it frees sharded tensors and gloo's threads at the end of a process


if __name__ == "__main__":
    main(*sys.argv[1:])
