"""Trainer of transformers: a run that was cut in the middle of an epoch ends with the same complete roots."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from stopped_trainer import Stop, StopAt
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed
from transformers_ranks import Data, Model

import chosen_rows
from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Loop, capture
from pol.integrations.transformers import TransformersRecording
from pol.training.record.learning_record import LearningRecord
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_training import to_tensor
from pol.training.task.task_training import train as train_task

pytestmark = pytest.mark.long


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
        model=Model(16), args=TrainingArguments(**(arguments | changes)), train_dataset=Data(), eval_dataset=Data()
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


@pytest.mark.parametrize("stops", chosen_rows.first([[4, 8], [5], [11]], 1, others=pytest.mark.slow))
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


def test_the_default_mean_over_tokens_is_captured_as_it_is(tmp_path: Path) -> None:
    """Micro-batches with different numbers of labels: Trainer's update is that of the capture."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 32, (16, 10), generator=generator)
    lengths = torch.randint(2, 10, (16, 1), generator=generator)
    labels = tokens.where(torch.arange(10) < lengths, -100)
    given = {"input_ids": tokens, "labels": labels}
    size = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**size, num_attention_heads=2, max_position_embeddings=16))
    loop = Loop(accumulation=4, items=lambda input_ids, labels: (labels[:, 1:] != -100).sum())
    order = torch.arange(16).reshape(2, 8)
    step = capture(model, None, torch.optim.SGD(model.parameters(), 0.1), given, order, loop)
    store = Store(f"file://{tmp_path}")
    task = load(store, publish(store, step, steps=2, interval=1)[0])
    ends: list[list[Words]] = []
    train_task(task, NativeExecutor(task.aten), lambda index, words: ends.append(words))

    arguments = TrainingArguments(
        str(tmp_path), per_device_train_batch_size=2, gradient_accumulation_steps=4, max_steps=2, learning_rate=0.1,
        optim="sgd", lr_scheduler_type="constant", max_grad_norm=0.0, use_cpu=True, report_to="none",
        save_strategy="no", logging_strategy="no", disable_tqdm=True, train_sampling_strategy="sequential",
    )  # fmt: skip
    rows = [{name: tensor[row] for name, tensor in given.items()} for row in range(16)]
    Trainer(model=model, args=arguments, train_dataset=rows).train()  # type: ignore[arg-type]  # a list is a data set
    expected = dict(model.named_parameters())
    for slot, words in zip(task.aten.slots[: len(expected)], ends[-1], strict=False):
        torch.testing.assert_close(to_tensor(slot.type, words), expected[slot.name].detach(), rtol=1e-4, atol=1e-5)
