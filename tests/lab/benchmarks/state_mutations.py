"""Does every byte of a complete state count? One byte or value is changed anywhere, and the root compared."""

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lab.benchmarks.figure import Figure
from pol.commitments.array import Array, ElementType, array_root
from pol.commitments.complete_state import CompleteState, StateEntry, complete_root, document_root
from pol.training.state import components
from pol.training.state.random_state import RandomSources
from pol.training.state.trainer_state import Stateful, TrainerState


@dataclass(frozen=True)
class Mutations:
    """How many changes were made, by component, and which of them left the root as it was."""

    made: Mapping[str, int]
    missed: tuple[str, ...]


def trained() -> dict[str, object]:
    """The components of a trainer in the middle of an epoch that uses everything that a recorder can hold."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4, dtype=torch.float32)
    )
    model.register_buffer("mask", torch.tensor([True, False, True]), persistent=False)
    model.register_buffer("bfloat16s", torch.randn(5).bfloat16())
    optimizer = torch.optim.AdamW(
        [{"params": model[0].parameters(), "lr": 1e-2}, {"params": model[4].parameters(), "weight_decay": 0.2}]
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100)
    scaler = torch.amp.GradScaler("cpu")
    random = RandomSources({"augmentation": np.random.default_rng(3), "order": torch.Generator().manual_seed(4)})
    parts: dict[str, Stateful] = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    state = TrainerState(model, parts, random, gradients=True)
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=8, shuffle=True)
    for number, (inputs, targets) in enumerate(state.data.batches(loader)):
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(inputs), targets)).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        if number == 4:
            break
    return {**state.components(), "progress": {"steps": 5}}


def mutate(state: Mapping[str, object], count: int, seed: int) -> Mutations:
    """Make ``count`` drawn changes, one at a time, the same number to each component."""
    draw = np.random.default_rng(seed)
    base = components.encode(state)
    entries = {entry.name: entry for entry in base.entries}
    places = {name: _places(name, value, base) for name, value in state.items()}
    made: Counter[str] = Counter()
    missed = []
    for number in range(count):
        name = sorted(state)[number % len(state)]
        where, change = places[name][draw.integers(len(places[name]))]
        changed = change(draw)
        made[name] += 1
        if complete_root([changed if e.name == changed.name else e for e in entries.values()]) == base.root:
            missed.append(where)
    return Mutations(dict(made), tuple(missed))


_Change = Callable[[np.random.Generator], StateEntry]


def _places(name: str, value: object, base: CompleteState) -> list[tuple[str, _Change]]:
    """Everything in a component that can change: every array, every plain value in its document, and every name."""
    found: list[tuple[str, _Change]] = []
    for path, array in base.arrays.items():
        if path.startswith(f"{name}/") and array.data.size:
            found.append((path, lambda draw, path=path, array=array: _flipped(path, array, draw)))  # type: ignore[misc]  # mypy infers no lambda with a default

    def visit(part: object, rebuild: Callable[[object], object], where: str) -> None:
        if isinstance(part, dict):
            for key, item in part.items():
                visit(item, lambda new, key=key: rebuild({**part, key: new}), f"{where}/{key}")  # type: ignore[misc]  # as above
        elif isinstance(part, list | tuple):
            for i, item in enumerate(part):
                visit(item, lambda new, i=i: rebuild(type(part)([*part[:i], new, *part[i + 1 :]])), f"{where}/{i}")  # type: ignore[misc]  # as above
        elif part is None or type(part) in (bool, int, float, str, bytes):
            found.append((where, lambda draw: _document(name, rebuild(_changed(part, draw)))))

    visit(value, lambda new: new, name)
    return found


def _changed(value: Any, draw: np.random.Generator) -> object:
    """Another value: one bit of it flipped."""
    if value is None:
        return False
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value ^ 1 << int(draw.integers(62))
    if type(value) is float:
        bits = int.from_bytes(struct.pack(">d", value), "big") ^ 1 << int(draw.integers(64))
        return struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    if type(value) is str:
        data = value or "x"
        place = int(draw.integers(len(data)))
        return data[:place] + chr(ord(data[place]) ^ 1) + data[place + 1 :] if value else data
    place = int(draw.integers(len(value)))
    return value[:place] + bytes([value[place] ^ 1 << int(draw.integers(8))]) + value[place + 1 :]


def _flipped(path: str, array: Array, draw: np.random.Generator) -> StateEntry:
    """The entry of an array with one byte changed."""
    data = array.data.copy()
    data[draw.integers(data.size)] ^= 1 if array.type.element is ElementType.BOOL else int(draw.integers(1, 256))
    return StateEntry(path, array.type, array_root(replace(array, data=data), 1))


def _document(name: str, value: object) -> StateEntry:
    """The entry of a component's document with one value changed."""
    return StateEntry(name, None, document_root(components.encode({name: value}).documents[name]))


def mutation_figures() -> dict[str, Figure]:
    """Whether every byte of a state is in its root."""
    mutations = mutate(trained(), count=11_000, seed=1)
    return {
        "mutations": Figure(sum(mutations.made.values()), "changes"),
        "mutations_missed": Figure(len(mutations.missed), "changes"),
    }
