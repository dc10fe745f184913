"""The recorder in a plain loop: every component is in the root, and resumption is exact wherever the run was cut."""

import itertools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import chosen_rows
from pol import Recorder
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage.store import Store

EPOCHS = 3


class Cut(Exception):
    """The run ends here."""


def train(store: str, stop: int | None = None, own_generator: bool = False, background: bool = True) -> LearningRecord:
    """A run with dropout, batch norm, a schedule and a shuffled loader; `stop` leaves it after so many steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    x = torch.randn(100, 8, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2) if own_generator else None
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=10, shuffle=True, generator=generator)
    with Recorder(
        store, model, optimizer, every=7, scheduler=scheduler, checkpoints=Checkpoints(background=background)
    ) as recorder:
        for _ in range(recorder.resume(), EPOCHS):
            for inputs, targets in recorder.batches(loader):
                loss = ((model(inputs) - targets) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                recorder.step()
                if recorder.steps == stop:
                    raise Cut
        return recorder.close()


@pytest.mark.parametrize("own_generator", [False, True])
@pytest.mark.parametrize("stop", chosen_rows.first([7, 26, 1, 10, 20], 2, others=pytest.mark.long))
def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path, stop: int, own_generator: bool) -> None:
    whole = train(f"file://{tmp_path}/whole", own_generator=own_generator, background=False)
    with pytest.raises(Cut):
        train(f"file://{tmp_path}/cut", stop, own_generator)
    cut = train(f"file://{tmp_path}/cut", own_generator=own_generator)
    assert [c.step for c in cut.checkpoints] == [0, 7, 14, 21, 28, 30]
    assert [c.root for c in cut.checkpoints] == [c.root for c in whole.checkpoints]
    assert len({c.root for c in cut.checkpoints}) == 6


def test_a_step_needs_a_start(tmp_path: Path) -> None:
    recorder = Recorder(f"file://{tmp_path}", nn.Linear(2, 2))
    with pytest.raises(ProtocolError, match=r"resume\(\) before the first step"):
        recorder.step()


def test_two_recorders_on_one_store(tmp_path: Path) -> None:
    one, two = (
        Recorder(f"file://{tmp_path}", nn.Linear(2, 2), every=1, checkpoints=Checkpoints(background=False))
        for _ in range(2)
    )
    one.resume()
    two.resume()
    one.step()
    with pytest.raises(ProtocolError, match="another process"):
        two.step()


def test_a_checkpoint_is_of_its_moment(tmp_path: Path) -> None:
    """What changes while a checkpoint is stored beside the training isn't in it."""
    model = nn.Linear(300, 300)
    roots = []
    for name, background in (("beside", True), ("waiting", False)):
        with torch.no_grad():
            model.weight.fill_(1.0)
        recorder = Recorder(f"file://{tmp_path}/{name}", model, every=1, checkpoints=Checkpoints(background=background))
        recorder.resume()
        for value in range(5):
            with torch.no_grad():
                model.weight.fill_(value)
            recorder.step()
        roots.append([checkpoint.root for checkpoint in recorder.close().checkpoints])
    assert roots[0] == roots[1]


def no_room(*_: object) -> None:
    raise OperationalError("no space left on device")


def test_a_store_that_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes out, the training goes on, and only the checkpoint that failed is missing."""
    recorder = Recorder(f"file://{tmp_path}", nn.Linear(2, 2), every=1)
    recorder.resume()
    recorder.step()
    recorder.close()
    with monkeypatch.context() as full:
        full.setattr(Store, "put_file", no_room)
        recorder.step()
        with pytest.raises(OperationalError, match="no space"):
            recorder.close()
    recorder.step()
    assert [checkpoint.step for checkpoint in recorder.close().checkpoints] == [0, 1, 3]


@pytest.mark.parametrize("background", [True, False])
def test_closing_again_records_the_end_that_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    recorder = Recorder(f"file://{tmp_path}", nn.Linear(2, 2), every=10, checkpoints=Checkpoints(background=background))
    recorder.resume()
    recorder.step()
    recorder.flush()
    with monkeypatch.context() as full:
        full.setattr(Store, "put_file", no_room)
        for _ in range(2):
            with pytest.raises(OperationalError, match="no space"):
                recorder.close()
    assert [checkpoint.step for checkpoint in recorder.close().checkpoints] == [0, 1]


@pytest.mark.parametrize("key", [None, Ed25519PrivateKey.from_private_bytes(bytes(32))], ids=["unsigned", "signed"])
def test_a_checkpoint_costs_the_same_however_many_came_before(tmp_path: Path, key: Ed25519PrivateKey | None) -> None:
    """Calls that the recorder makes: hashes, entries that are serialised, loops over what was recorded before."""
    model = nn.Linear(2, 1)
    recorder = Recorder(f"file://{tmp_path}", model, every=1, checkpoints=Checkpoints(background=False), key=key)
    recorder.resume()
    calls: list[int] = []
    for _ in range(130):
        count = itertools.count()
        sys.setprofile(lambda *_, count=count: next(count))
        try:
            recorder.step()
        finally:
            sys.setprofile(None)
        calls.append(next(count))
    assert max(calls[120:]) < 1.05 * min(calls[10:20])
    assert learning_record.load_record(recorder.store) == recorder.record


GENERATORS: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
    "torch": (lambda: torch.Generator().manual_seed(5), lambda g: float(torch.rand(1, generator=g))),
    "numpy": (lambda: np.random.default_rng(5), lambda g: float(g.random())),
    "numpy of old": (lambda: np.random.RandomState(5), lambda g: float(g.rand())),
    "python": (lambda: random.Random(5), lambda g: float(g.random())),
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_generator_is_a_part_like_any_other(tmp_path: Path, kind: str) -> None:
    make, draw = GENERATORS[kind]

    def run(steps: int) -> list[float]:
        noise = make()
        recorder = Recorder(f"file://{tmp_path}", nn.Linear(2, 2), every=1, parts={"noise": noise})
        recorder.resume()
        drawn = []
        while recorder.steps < steps:
            drawn.append(draw(noise))
            recorder.step()
        recorder.close()
        return drawn

    whole = make()
    assert run(2) + run(5) == [draw(whole) for _ in range(5)]


def test_options_out_of_range(tmp_path: Path) -> None:
    for number in (0, 1001):
        with pytest.raises(ProtocolError, match="give 1 to 1000"):
            Checkpoints(full_every=number)
    with pytest.raises(ProtocolError, match="give 1 or more"):
        Recorder(f"file://{tmp_path}", nn.Linear(2, 2), every=0)
