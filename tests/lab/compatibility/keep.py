"""Keeps files of this release for all later ones: ``PYTHONPATH=tests python -m lab.compatibility.keep``.

Writes ``fixtures/compatibility/VERSION``, once: what exists isn't written again.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import pol
from lab.compatibility.old_training import INTERRUPTED, STEPS, last_tensors, train
from pol import Store, capture, load, measure_profile, publish
from pol.decentralised import DiLoCo, diloco_plan, diloco_round, local_key, run_workers
from pol.decentralised.parts.small_gpt import Shape
from pol.execution.cpu import CpuExecutor
from pol.roles.solver.solver import train_canonically
from pol.rounds import audit
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment

ROOT = Path(__file__).parents[3] / "fixtures" / "compatibility"
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
        (folder / "expected.json").write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n")
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
