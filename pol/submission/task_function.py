"""What a user's function gives for a task: a captured step, or the parts of one; and the names of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pol.errors import ProtocolError
from pol.graph.capture.assemble import capture
from pol.graph.captured_step import Capture

STEPS, BATCH = 300, 32
PARTS = ("model", "loss", "optimizer", "dataset", "order")
MEANT = (
    "return (model, loss, optimizer, dataset), with an order of the samples as fifth part if you have one, a "
    "dictionary of the arguments of pol.capture, or what pol.capture returns"
)


@dataclass(frozen=True)
class TaskStepOfUser:
    """A captured step; ``model`` and ``optimizer`` describe it to people.

    ``weights`` maps the names of the model's state_dict to slots of the program; None if the model isn't known.
    """

    capture: Capture
    steps: int
    model: str = ""
    optimizer: str = ""
    weights: Mapping[str, str] | None = None


def captured_step(made: Any, steps: int | None = None, batch: int | None = None, seed: int = 0) -> TaskStepOfUser:
    """The step of what a function of the user made.

    Where it gives no order of the samples, each of ``steps`` steps sees ``batch`` of them, in one shuffle after
    another from ``seed``.

    Raises:
        UnsupportedError: an operation without a definition, with the user's line.
    """
    if isinstance(made, Capture):
        rows = made.program.constants[made.names.constants.index("order")].shape[0]
        return TaskStepOfUser(made, rows)
    parts = task_parts(made, steps, batch, seed)
    model, known = parts["model"], capture(**parts)
    weights = _weights(model, known.names.slots)
    return TaskStepOfUser(known, len(parts["order"]), _described(model), _described_optimizer(parts), weights)


def task_parts(made: Any, steps: int | None = None, batch: int | None = None, seed: int = 0) -> dict[str, Any]:
    """The arguments of `pol.capture` in what a function of the user made, with an order of the samples."""
    parts = dict(made) if isinstance(made, Mapping) else _by_name(made)
    if missing := [name for name in PARTS[:4] if name not in parts]:
        raise ProtocolError(f"the function's dictionary has no {' and no '.join(missing)}: {MEANT}")
    model = parts["model"]
    if not isinstance(model, nn.Module):
        raise ProtocolError(f"the function's model is a {type(model).__name__}, not a torch.nn.Module: {MEANT}")
    if parts.get("order") is None:
        parts["order"] = shuffled_order(_samples(parts["dataset"]), steps or STEPS, batch, seed)
    elif steps is not None or batch is not None:
        raise ProtocolError("the function gives the order of the samples, which fixes steps and batch: leave them out")
    return parts


def shuffled_order(samples: int, steps: int, batch: int | None = None, seed: int = 0) -> Tensor:
    """The samples of each step: (steps, batch) int64, one shuffle after another, each without its remainder."""
    size = min(BATCH, samples) if batch is None else batch
    if not 1 <= size <= samples:
        raise ProtocolError(f"a batch of {size} can't be drawn from {samples} samples: choose another --batch")
    generator = np.random.Generator(np.random.Philox(key=seed))
    rows = samples // size
    shuffles = [generator.permutation(samples)[: rows * size].reshape(rows, size) for _ in range(-(-steps // rows))]
    return torch.from_numpy(np.concatenate(shuffles)[:steps].astype(np.int64))


def _by_name(made: Any) -> dict[str, Any]:
    if not isinstance(made, Sequence) or isinstance(made, str) or len(made) not in {4, 5}:
        told = f"{len(made)} parts" if isinstance(made, Sequence) and not isinstance(made, str) else type(made).__name__
        raise ProtocolError(f"the function returns {told}: {MEANT}")
    return dict(zip(PARTS, made, strict=False))


def _samples(dataset: Any) -> int:
    tensors = list(dataset.values()) if isinstance(dataset, Mapping) else dataset
    if not isinstance(tensors, Sequence) or not tensors or not all(isinstance(each, Tensor) for each in tensors):
        raise ProtocolError(f"the function's dataset is no tuple of tensors, one row per example: {MEANT}")
    return len(tensors[0])


def _weights(model: nn.Module, slots: Sequence[str]) -> dict[str, str]:
    """By name in the state_dict: the slot. Tied tensors have several names and one slot."""
    named = [*model.named_parameters(), *model.named_buffers()]
    known = {id(tensor): name for name, tensor in named if name in slots}
    kept = model.state_dict(keep_vars=True)
    return {name: known[id(tensor)] for name, tensor in kept.items() if id(tensor) in known}


def _described(model: nn.Module) -> str:
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} of {count:,} parameters"


def _described_optimizer(parts: Mapping[str, Any]) -> str:
    given = parts["optimizer"]
    return " and ".join(type(each).__name__ for each in (given if isinstance(given, Sequence) else (given,)))
