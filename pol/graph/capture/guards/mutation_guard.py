"""What tracing must not change: attributes of the model, the loss and the optimizer, and random number generators.

A trace runs the user's Python. Whatever that writes outside of tensors that the trace follows would be a constant of
the program, and would stay in the user's objects. So everything reachable is recorded before, compared and put back.
"""

from __future__ import annotations

import functools
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.graph.capture.guards import user_state

_PLAIN = (bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, types.NoneType)
_TABLES = ("_parameters", "_buffers", "_modules")
_CACHES = {nn.RNNBase: ("_flat_weights", "_flat_weight_refs")}
"""Attributes in which torch's own modules keep track of their parameters: they follow whatever the parameters are."""
_ABSENT = object()


@dataclass
class _Record:
    """One object: its parts by their names for people, how to read them now, and how to put the object back."""

    parts: Mapping[str, Any]
    read: Callable[[], Mapping[str, Any]]
    restore: Callable[[], object]


@dataclass(frozen=True)
class _Kept:
    """One tensor with a copy of its numbers."""

    name: str
    tensor: Tensor
    memory: Tensor
    copy: Tensor
    version: int | None
    gradient: Tensor | None

    @property
    def is_changed(self) -> bool:
        """Whether somebody has written into the tensor."""
        if self.version is None:
            return not torch.equal(self.tensor, self.copy)
        return self.version != self.tensor._version

    def put_back(self) -> None:
        """Memory and numbers as they were. Batch normalisation and `.data` write without a new version."""
        if self.tensor.untyped_storage()._cdata != self.memory.untyped_storage()._cdata:
            self.tensor.data = self.memory
        if not torch.equal(self.tensor, self.copy):
            with torch.no_grad():
                self.tensor.copy_(self.copy)


class Snapshot:
    """Everything reachable from some objects, as it is now."""

    def __init__(self, roots: Mapping[str, object]) -> None:
        self._records: list[_Record] = []
        self._tensors: list[_Kept] = []
        self._generators = _generators()
        seen: dict[int, object] = {}
        pending: deque[tuple[str, object]] = deque(roots.items())
        while pending:
            name, item = pending.popleft()
            if isinstance(item, _PLAIN) or id(item) in seen:
                continue
            seen[id(item)] = item
            pending += self._record(name, item)

    def require_unchanged(self, first_run: bool) -> None:
        """Raises UnsupportedError that names what the user's code changed outside of the traced tensors.

        In a first run an attribute may take a plain value, such as a size: if it stays, every step sees the same.
        """
        for name in self._changes(first_run):
            raise UnsupportedError(
                f"attribute {name} changes during the step. Only parameters and buffers of the model are the state of "
                f"a training: {way_out(name)}, or use a local variable"
            )
        now = _generators()
        for name, (state, _) in self._generators.items():
            if now[name][0] != state:
                raise UnsupportedError(
                    f"the model or the loss draws random numbers from {name}; they would be constants of the program. "
                    "Draw with torch's own operations, or draw before and put the numbers into the data set"
                )

    def settle(self) -> None:
        """From now on compare with what is there now; `restore` still goes back to the beginning."""
        for record in self._records:
            record.parts = record.read()

    def name_of(self, tensor: Tensor) -> str:
        """What the recorded tensor with the same memory is called, or an empty string."""
        storage = tensor.untyped_storage()._cdata
        return next((kept.name for kept in self._tensors if kept.tensor.untyped_storage()._cdata == storage), "")

    def restore(self) -> None:
        """Put everything back."""
        for record in self._records:
            record.restore()
        for kept in self._tensors:
            kept.put_back()
            if kept.tensor.is_leaf and kept.tensor.grad is not kept.gradient:
                kept.tensor.grad = kept.gradient
        for _, put_back in self._generators.values():
            put_back()

    def _changes(self, first_run: bool) -> Iterator[str]:
        for record in self._records:
            now = record.read()
            for name in [*record.parts, *(name for name in now if name not in record.parts)]:
                old, new = record.parts.get(name, _ABSENT), now.get(name, _ABSENT)
                if not is_same(old, new) and not (first_run and _is_plain(new)):
                    yield name
        yield from (kept.name for kept in self._tensors if kept.is_changed)

    def _record(self, name: str, item: object) -> Iterable[tuple[str, object]]:
        """Record one object; returns its parts."""
        if isinstance(item, Tensor):
            version = None if item.is_inference() else item._version
            gradient = item.grad if item.is_leaf else None
            self._tensors.append(_Kept(name, item, item.detach(), item.detach().clone(), version, gradient))
            return ()
        if isinstance(item, np.ndarray):
            copy = item.copy()
            self._add(lambda: {name: (item.shape, item.tobytes())}, lambda: np.copyto(item, copy))
            return ()
        if isinstance(item, dict):
            return self._dictionary(item, lambda key: f"{name}[{_key(key)}]")
        if isinstance(item, list | set | deque):
            members = list(item)
            self._add(lambda: _numbered(name, item), lambda: _refill(item, members))
            return _numbered(name, members).items()
        if isinstance(item, tuple):
            return _numbered(name, item).items()
        if isinstance(item, types.FunctionType):
            return [*self._closure(name, item), *self._function(name, item)]
        if isinstance(item, types.MethodType):
            return ((name, item.__self__), (name, item.__func__))
        if isinstance(item, functools.partial):
            return ((name, item.func), (name, item.args), (name, item.keywords))
        if isinstance(item, type):
            return self._class(item) if item in user_state.classes(item) else ()
        behind, place = user_state.wrapped(item), user_state.position(item)
        if behind or place is not None:
            if place is not None:
                read, go_back = place
                self._add(lambda: {name: read()}, go_back)
            return [(name, function) for function in behind]
        found = [(kind.__name__, kind) for kind in user_state.classes(item)]
        return [*found, *self._slots(name, item), *self._attributes(name, item)]

    def _attributes(self, name: str, item: object) -> Iterable[tuple[str, object]]:
        if not _has_attributes(item):
            return ()
        caches = [cache for kind, names in _CACHES.items() if isinstance(item, kind) for cache in names]
        parts = list(self._dictionary(vars(item), lambda key: f"{name}.{key}", caches))
        if isinstance(item, nn.Module):
            tables = [vars(item)[table] for table in _TABLES]
            parts = [part for part in parts if not any(part[1] is table for table in tables)]
            for table in tables:
                parts += self._dictionary(table, lambda key: f"{name}.{key}")
        return parts

    def _dictionary(
        self, item: dict[Any, Any], path: Callable[[Any], str], caches: Sequence[str] = ()
    ) -> Iterable[tuple[str, object]]:
        """Record a dictionary; `caches` are put back, but nothing is said about changes of them."""
        pairs = dict(item)

        def restore() -> None:
            if list(item) != list(pairs) or any(item[key] is not value for key, value in pairs.items()):
                item.clear()
                item.update(pairs)

        self._add(lambda: {path(key): value for key, value in item.items() if key not in caches}, restore)
        return [(path(key), value) for key, value in pairs.items() if key not in caches]

    def _closure(self, name: str, function: types.FunctionType) -> Iterable[tuple[str, object]]:
        names = function.__code__.co_freevars
        cells = [(f"{name}: {key}", cell) for key, cell in zip(names, function.__closure__ or (), strict=True)]
        filled = {key: cell.cell_contents for key, cell in cells if _is_filled(cell)}

        def restore() -> None:
            for key, cell in cells:
                if key in filled:
                    cell.cell_contents = filled[key]

        self._add(lambda: {key: cell.cell_contents for key, cell in cells if _is_filled(cell)}, restore)
        return filled.items()

    def _function(self, name: str, function: types.FunctionType) -> Iterable[tuple[str, object]]:
        """What a function of the user's reaches besides its closure: globals, defaults, attributes of its own."""
        if not user_state.is_user_file(function.__code__.co_filename):
            return []
        places = user_state.named_globals(function)

        def read() -> dict[str, Any]:
            values = {f"global {key}": space.get(entry, _ABSENT) for key, (space, entry) in places.items()}
            # A module may be imported on the way.
            return {key: value for key, value in values.items() if not isinstance(value, types.ModuleType)}

        found = read()

        def restore() -> None:
            for key, (space, entry) in places.items():
                before = found.get(f"global {key}", _ABSENT)
                if before is _ABSENT and not isinstance(space.get(entry), types.ModuleType):
                    space.pop(entry, None)
                elif before is not _ABSENT and space.get(entry) is not before:
                    space[entry] = before

        self._add(read, restore)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return [
            *((key, value) for key, value in found.items() if user_state.is_followed(value)),
            *_numbered(f"{name}: default ", defaults).items(),
            *self._dictionary(vars(function), lambda key: f"{name}.{key}"),
        ]

    def _class(self, kind: type) -> Iterable[tuple[str, object]]:
        before = user_state.members(kind)

        def read() -> dict[str, Any]:
            return {f"{kind.__name__}.{key}": value for key, value in user_state.members(kind).items()}

        self._add(read, lambda: user_state.put_members_back(kind, before))
        return [pair for pair in read().items() if user_state.is_followed(pair[1])]

    def _slots(self, name: str, item: object) -> Iterable[tuple[str, object]]:
        before = user_state.slots(item)
        if not before:
            return []

        def read() -> dict[str, Any]:
            return {f"{name}.{key}": value for key, value in user_state.slots(item).items()}

        self._add(read, lambda: user_state.put_slots_back(item, before))
        return list(read().items())

    def _add(self, read: Callable[[], Mapping[str, Any]], restore: Callable[[], object]) -> None:
        self._records.append(_Record(read(), read, restore))


@contextmanager
def untouched(roots: Mapping[str, object]) -> Iterator[Snapshot]:
    """A snapshot of everything reachable from `roots`, which is put back afterwards, whatever happens."""
    snapshot = Snapshot(roots)
    try:
        yield snapshot
    finally:
        snapshot.restore()


def way_out(name: str) -> str:
    """What to do about state in a place that is no state of a training."""
    if name.startswith("optimizer"):
        return "keep it as a tensor in the optimizer's state of a parameter, self.state[p]"
    if name.startswith("model"):
        return "make it a buffer with register_buffer"
    return "move it into the model, as a buffer (register_buffer)"


def _generators() -> dict[str, tuple[object, Callable[[], None]]]:
    """By name: a comparable state, and how to put it back."""
    python, legacy, native = random.getstate(), np.random.get_state(legacy=True), torch.get_rng_state()
    return {
        "Python's random": (python, lambda: random.setstate(python)),
        "numpy.random": (repr([np.asarray(part).tobytes() for part in legacy]), lambda: np.random.set_state(legacy)),
        "torch's generator": (native.numpy().tobytes(), lambda: torch.set_rng_state(native)),
    }


def is_same(old: object, new: object) -> bool:
    """Whether two readings of one place are the same object, or equal values that can't change."""
    return old is new or (_is_plain(old) and type(old) is type(new) and repr(old) == repr(new))


def _is_plain(value: object) -> bool:
    """Whether a value can't change and means the same in every step."""
    if isinstance(value, tuple | frozenset):
        return all(_is_plain(item) for item in value)
    return isinstance(value, _PLAIN)


def _has_attributes(item: object) -> bool:
    """Whether an object is one of the user's, and not of the library that it comes from."""
    if isinstance(item, nn.Module | Optimizer | types.SimpleNamespace):
        return True
    library = type(item).__module__.partition(".")[0]
    foreign = isinstance(item, type | types.ModuleType) or library == "torch" or library in sys.stdlib_module_names
    return not foreign and isinstance(getattr(item, "__dict__", None), dict)


def _key(key: object) -> str:
    """A key for people; distinct for distinct keys."""
    return repr(key) if isinstance(key, _PLAIN) else f"{type(key).__name__} {id(key):x}"


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _numbered(name: str, items: Iterable[object]) -> dict[str, object]:
    return {f"{name}[{number}]": item for number, item in enumerate(items)}


def _refill(container: list[Any] | set[Any] | deque[Any], members: list[Any]) -> None:
    container.clear()
    if isinstance(container, set):
        container.update(members)
    else:
        container.extend(members)
