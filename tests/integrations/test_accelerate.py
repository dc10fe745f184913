"""A loop over prepared objects: a run that was cut in the middle of an epoch ends with the same complete roots."""

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate_ranks import Data
from torch import nn
from torch.utils.data import DataLoader

from pol.integrations.accelerate import AcceleratedRecorder
from pol.training import Checkpoints
from pol.training.record.learning_record import LearningRecord


def train(store: str, stop: int | None = None, seed: int = 0, seeded_order: bool = True) -> LearningRecord | None:
    """7 batches of 10 in an epoch, two to a step: 4 steps an epoch, the last one of a single batch."""
    AcceleratorState._reset_state(reset_partial_state=True)  # a new process has none
    GradientState._reset_state()
    torch.manual_seed(seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
    accelerator.dataloader_config.use_seedable_sampler = seeded_order
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    loader = DataLoader(Data(), batch_size=10, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    recorder = AcceleratedRecorder(
        store, accelerator, model, optimizer, every=3, scheduler=scheduler, checkpoints=Checkpoints(background=False)
    )
    batches = 0
    for _ in range(recorder.resume(), 3):
        for x, y in recorder.batches(loader):
            with accelerator.accumulate(model):
                accelerator.backward(((model(x).squeeze(1) - y) ** 2).mean())
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            recorder.step()
            batches += 1
            if batches == stop:
                return None
    return recorder.close()


@pytest.mark.long
@pytest.mark.parametrize("seeded_order", [True, False])
def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path, seeded_order: bool) -> None:
    """Cut before the first checkpoint, after an epoch, in the middle of one; resumed by a script without the seed."""
    whole = train(f"file://{tmp_path}/whole", seeded_order=seeded_order)
    assert whole is not None
    for number, stops in enumerate(([5], [7], [15, 4, 3])):
        store = f"file://{tmp_path}/cut{number}"
        for stop in stops:
            assert train(store, stop, seeded_order=seeded_order) is None
        cut = train(store, seed=9, seeded_order=seeded_order)
        assert cut is not None
        assert [c.step for c in cut.checkpoints] == [0, 3, 6, 9, 12]
        assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
        assert len({c.root for c in cut.checkpoints}) == 5
