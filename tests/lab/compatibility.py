"""Keeps files of this release for all later ones: ``PYTHONPATH=tests python -m lab.compatibility``.

Writes ``fixtures/compatibility/VERSION``, once: what exists isn't written again.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import nn

import pol
from lab.json_rows import json_rows
from pol import Recorder, Store, capture, load, measure_profile, publish
from pol.decentralised import DiLoCo, diloco_plan, diloco_round, local_key, run_workers
from pol.decentralised.parts.small_gpt import Shape
from pol.execution.cpu import CpuExecutor
from pol.roles.solver.solver import train_canonically
from pol.rounds import audit
from pol.training.record.learning_record import HEAD, LearningRecord
from pol.training.storage.stored_checkpoint import load_document
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment

STEPS, INTERRUPTED, EVERY = 12, 8, 4
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
"""Everybody knows it: a kept record proves nothing about its author."""


def model_and_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    """First weights that are the same everywhere."""
    with pol.TaskRandomness(7).initialization():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def last_tensors(folder: Path) -> dict[str, str]:
    """Roots of the tensors after the last step; the environment, which a complete root holds as well, may differ."""
    store = Store(str(folder))
    record = LearningRecord.decode(store.read(HEAD))
    entries = load_document(store, record.checkpoints[-1].object).entries
    return {entry.name: entry.content.hex() for entry in entries if entry.type is not None}


def train(folder: Path, until: int) -> LearningRecord:
    """Go on from what the folder holds until so many steps are done."""
    torch.manual_seed(0)
    numbers = torch.randint(-8, 9, (64, 4), generator=torch.Generator().manual_seed(1))
    data, labels = numbers / 8, (numbers.sum(1) > 0).long()
    model, optimizer = model_and_optimizer()
    step = pol.exact(model, nn.functional.cross_entropy, optimizer, steps=STEPS, seed=7, threads=1)
    recorder = Recorder(str(folder), model, optimizer, every=EVERY, parts={"exact": step}, key=KEY)
    recorder.resume()
    while recorder.steps < until:
        rows = torch.randint(0, 64, (8,))
        step(data[rows], labels[rows])
        recorder.step()
    return recorder.close()


ROOT = Path(__file__).parents[2] / "fixtures" / "compatibility"
TASK_STEPS, INTERVAL = 12, 3


def main() -> None:
    """Write the folder of this release."""
    release = ".".join(pol.__version__.split(".")[:2])
    target = ROOT / release
    if target.exists():
        sys.exit(f"{target} is kept as release {release} has written it; remove it yourself if that was never released")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        expected = {"pol": pol.__version__, **record(folder), **proof(folder), **rounds(folder)}
        (folder / "expected.json").write_text(json_rows(expected, sort_keys=True))
        shutil.copytree(folder, target)


def record(folder: Path) -> dict[str, object]:
    """An interrupted exact training, and the tensors at the end of the same one without an interruption."""
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    train(folder / "record", INTERRUPTED)
    train(folder / "whole", STEPS)
    tensors = last_tensors(folder / "whole")
    shutil.rmtree(folder / "whole")
    return {"tensors": tensors}


def proof(folder: Path) -> dict[str, object]:
    """A task, a learning proof with the defined bits, and a profile of the task."""
    torch.manual_seed(1)
    x, order = torch.randn(60, 4), torch.randint(0, 60, (TASK_STEPS, 5))
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    captured = capture(model, nn.functional.cross_entropy, optimizer, (x, (x.sum(1) > 0).long()), order)
    store = Store(str(folder / "proof"))
    digest, _ = publish(store, captured, steps=TASK_STEPS, interval=INTERVAL)
    task = load(store, digest)
    recorder = TaskRecorder(store, task)
    train_canonically(task, recorder, executors=CpuExecutor)
    proven, _ = recorder.publish(environment(exact=True))
    return {"task": digest, "proof": proven, "profile": store.put(measure_profile(task).encode())}


def rounds(folder: Path) -> dict[str, object]:
    """One round of two workers."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place)
        shared = Store(f"file://{run}/store")
        shape = Shape(layers=1, width=8, heads=2, length=4)
        options = DiLoCo(rounds=1, steps=2, seats=2, sizes=(2,), rows=16, shape=shape)
        plan = diloco_plan(shared, options, local_key(-1).name, bytes(32))
        run_workers(run, plan, diloco_round, workers=2)
        shutil.copytree(run / "store", folder / "rounds" / "store", dirs_exist_ok=True)
    return {"claims": len(audit(Store(str(folder / "rounds" / "store"))).claims)}


if __name__ == "__main__":
    main()
