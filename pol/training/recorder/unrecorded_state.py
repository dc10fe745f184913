"""State of a running program that its recorder doesn't hold; `pol doctor` reports it as missing.

The search covers local variables of all running functions, the user's objects behind them, and attributes of the
model's modules. It takes digests and changes nothing.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pol.commitments.array import array_root
from pol.commitments.keccak import keccak256
from pol.errors import PolError
from pol.training.state import components, tensors
from pol.training.state.trainer_state import Stateful, TrainerState

MAX_DEPTH = 4
MAX_ITEMS = 256
GENERATOR, MODULE, STATEFUL, ATTRIBUTE, GRADIENTS, VALUE, TENSOR, LOADER = (
    "generator",
    "module",
    "stateful",
    "attribute",
    "gradients",
    "value",
    "tensor",
    "loader",
)
_LOADER = ("dataset", "sampler", "batch_sampler", "generator")
_LIBRARIES = tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib"))
_OWN = str(Path(__file__).resolve().parents[2])
_MODULE_OWN = frozenset(vars(nn.Module())) | {"training"}


def unrecorded(state: TrainerState) -> dict[str, tuple[str, str]]:
    """Kind and digest of all state found, under names that are equal in every run of the program."""
    search = _Search(state)
    gradients = {name: p.grad for name, p in state.model.named_parameters() if p.grad is not None}
    if gradients and not state.gradients:
        search.found["gradients"] = (GRADIENTS, _digest(gradients) or "")
    for name, module in state.model.named_modules():
        where = f"module {name}" if name else "the model"
        for attribute, value in vars(module).items():
            if attribute not in _MODULE_OWN:
                search.look(value, f"attribute {attribute} of {where}", MAX_DEPTH - 1, ATTRIBUTE)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_users(file):
            function = frame.f_code.co_name
            place = Path(file).name if function == "<module>" else f"{function} in {Path(file).name}"
            for name, value in list(frame.f_locals.items()):
                if not name.startswith("__"):
                    search.look(value, f"{name} ({place})", 0, VALUE)
        frame = frame.f_back
    return search.found


class _Search:
    def __init__(self, state: TrainerState):
        known: list[object] = [
            state,
            state.model,
            *state.model.modules(),
            *state.parts.values(),
            *state.random.named.values(),
        ]
        known += [*state.model.parameters(), *state.model.buffers()]
        self._seen = {id(thing) for thing in known}
        self._kept: list[object] = [known]  # an id is unique only as long as its object lives
        self.found: dict[str, tuple[str, str]] = {}

    def look(self, value: object, label: str, depth: int, kind: str) -> None:
        """Note the state of a value and of the objects behind it."""
        if isinstance(value, bool | int | float | str):
            self.found.setdefault(label, (kind, repr(value)))
            return
        if value is None or isinstance(value, ModuleType | FunctionType | type) or id(value) in self._seen:
            return
        if len(self.found) >= MAX_ITEMS * MAX_ITEMS or depth > MAX_DEPTH:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        own = _own_kind(value)
        if isinstance(value, DataLoader):
            self.found.setdefault(label, (LOADER, ""))
        elif _is_data(value) and kind == VALUE:
            own = TENSOR
        if own is not None or isinstance(value, Tensor | np.ndarray):
            digest = _digest(value)
            if digest is not None:
                self.found.setdefault(label, (own or kind, digest))
        if own is None or own == STATEFUL:
            for name, below in _below(value):
                self.look(below, _joined(label, name), depth + 1, kind)


def _own_kind(value: object) -> str | None:
    if isinstance(value, torch.Generator | np.random.Generator | np.random.RandomState | random.Random):
        return GENERATOR
    if isinstance(value, nn.Module):
        return MODULE
    if not isinstance(value, DataLoader) and isinstance(value, Stateful):
        return STATEFUL
    return None


def _is_data(value: object) -> bool:
    """A tensor without gradient: a batch, not the loss."""
    return isinstance(value, np.ndarray) or (isinstance(value, Tensor) and not value.requires_grad)


def _below(value: object) -> Iterator[tuple[str, object]]:
    """The content of a container, a loader or an object of the user's classes."""
    if isinstance(value, dict):
        yield from ((str(name), item) for name, item in list(value.items())[:MAX_ITEMS])
    elif isinstance(value, list | tuple):
        yield from ((str(i), item) for i, item in enumerate(value[:MAX_ITEMS]))
    elif isinstance(value, DataLoader):
        yield from ((name, getattr(value, name)) for name in _LOADER)
    elif _is_users(getattr(inspect.getmodule(type(value)), "__file__", None)):
        yield from getattr(value, "__dict__", {}).items()


def _joined(label: str, name: str) -> str:
    head, space, tail = label.partition(" (")
    return f"{head}.{name}{space}{tail}"


def _digest(value: object) -> str | None:
    try:
        return keccak256(b"".join(_pieces(value))).hex()
    except (PolError, RuntimeError, TypeError, ValueError, AttributeError, KeyError):
        return None  # an object that can't give its state right now: nothing to compare


def _pieces(value: object) -> Iterator[bytes]:
    if isinstance(value, Tensor):
        yield array_root(tensors.of_tensor(value, "a tensor"))
    elif isinstance(value, np.ndarray):
        yield array_root(tensors.of_numpy(value, "an array"))
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, np.random.Generator):
        yield repr(value.bit_generator.state).encode()
    elif isinstance(value, np.random.RandomState):
        yield components.encode({"state": value.get_state(legacy=False)}).root
    elif isinstance(value, random.Random):
        yield repr(value.getstate()).encode()
    else:
        state: Any = value if isinstance(value, Mapping) else value.state_dict()  # type: ignore[attr-defined]  # a module or Stateful
        yield components.encode({"state": dict(state)}).root


@functools.cache
def _is_users(file: str | None) -> bool:
    """Whether a file belongs to the user's program, not to a library or this package."""
    if file is None or file.startswith("<"):
        return False
    path = str(Path(file).resolve())
    return not path.startswith((*_LIBRARIES, f"{_OWN}/")) and "site-packages" not in path
