"""Everything reachable from the user's objects, each part with how to read it now and how to put it back."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.optim import Optimizer
from torch.utils._pytree import tree_flatten

from pol.errors import UnsupportedError
from pol.graph.capture.guards import user_state

PLAIN = (bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, types.NoneType)


def is_same(old: object, new: object) -> bool:
    """Whether two readings of one attribute are the same object, or equal immutable values."""
    return old is new or (is_plain(old) and type(old) is type(new) and repr(old) == repr(new))


def is_plain(value: object) -> bool:
    """Whether a value is immutable and means the same in every step."""
    if isinstance(value, tuple | frozenset):
        return all(is_plain(item) for item in value)
    return isinstance(value, PLAIN)


def form_of(value: object) -> object:
    """The form of a tensor of a trace, or of a container of such tensors and immutable values; None of anything else.

    Equal forms differ in the numbers of tensors alone.
    """
    leaves, tree = tree_flatten(value)
    parts: list[object] = []
    for leaf in leaves:
        if isinstance(leaf, FakeTensor) and not isinstance(leaf, nn.Parameter):
            parts.append((leaf.dtype, tuple(leaf.shape)))
        elif is_plain(leaf):
            parts.append((type(leaf), repr(leaf)))
        else:
            return None
    return tree, parts


_TABLES = ("_parameters", "_buffers", "_modules")
_CACHES = {nn.RNNBase: ("_flat_weights", "_flat_weight_refs")}
"""Attributes of torch's own modules that follow their parameters."""
_WEIGHT_HOOKS = (WeightNorm, SpectralNorm)
"""Hooks that compute an attribute anew before every forward pass."""
ABSENT = object()
"""Stands for a part that is not there."""


@dataclass
class RecordedObject:
    """One object: its parts by the names that messages use, how to read them now, and how to put the object back."""

    parts: Mapping[str, Any]
    read: Callable[[], Mapping[str, Any]]
    restore: Callable[[], object]


@dataclass(frozen=True)
class RecordedTensor:
    """One tensor with a copy of its numbers."""

    name: str
    tensor: Tensor
    memory: Tensor
    copy: Tensor
    version: int | None
    gradient: Tensor | None

    @property
    def is_changed(self) -> bool:
        """Whether the tensor has been written into."""
        if self.version is None and not self.tensor.is_meta:
            return not torch.equal(self.tensor, self.copy)
        return self.version != self.tensor._version

    def restore(self) -> None:
        """Restore memory and numbers. Batch normalization and `.data` write without a new version."""
        if self.tensor.untyped_storage()._cdata != self.memory.untyped_storage()._cdata:
            self.tensor.data = self.memory
        # A tensor on the meta device has no numbers.
        if not self.tensor.is_meta and not torch.equal(self.tensor, self.copy):
            with torch.no_grad():
                self.tensor.copy_(self.copy)
        if self.tensor.is_leaf and self.tensor.grad is not self.gradient:
            self.tensor.grad = self.gradient


class ReachableObjects:
    """Records everything reachable from some objects, as it is now; tensors with a copy, with ``versions`` without."""

    def __init__(self, roots: Mapping[str, object], versions: bool = False) -> None:
        self._versions = versions
        self.objects: list[RecordedObject] = []
        self.tensors: list[RecordedTensor] = []
        seen: dict[int, object] = {}
        pending: deque[tuple[str, object]] = deque(roots.items())
        while pending:
            name, item = pending.popleft()
            if isinstance(item, PLAIN) or id(item) in seen:
                continue
            seen[id(item)] = item
            pending += self._record(name, item)

    def _record(self, name: str, item: object) -> Iterable[tuple[str, object]]:
        """Record one object; returns its parts."""
        if isinstance(item, Tensor):
            if item.layout != torch.strided:
                raise UnsupportedError(
                    f"{name} is {item.layout}, which has no definition: keep a sparse matrix as buffers of its indices "
                    "and values, and multiply by it as torch.zeros_like(x).index_add(0, rows, values[:, None] * "
                    "x[columns]), or take .to_dense()"
                )
            version = None if item.is_inference() else item._version
            gradient = item.grad if item.is_leaf else None
            plain = item.detach()
            kept = plain if self._versions else plain.clone()
            self.tensors.append(RecordedTensor(name, item, plain, kept, version, gradient))
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
        if isinstance(item, nn.Module):
            caches += [hook.name for hook in item._forward_pre_hooks.values() if isinstance(hook, _WEIGHT_HOOKS)]
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
        """Record a dictionary; `caches` are put back, but may change."""
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
        """The globals, defaults and attributes of a user's function."""
        if not user_state.is_user_file(function.__code__.co_filename):
            return []
        places = user_state.named_globals(function)

        def read() -> dict[str, Any]:
            values = {f"global {key}": space.get(entry, ABSENT) for key, (space, entry) in places.items()}
            # The step may import a module.
            return {key: value for key, value in values.items() if not isinstance(value, types.ModuleType)}

        found = read()

        def restore() -> None:
            for key, (space, entry) in places.items():
                before = found.get(f"global {key}", ABSENT)
                if before is ABSENT and not isinstance(space.get(entry), types.ModuleType):
                    space.pop(entry, None)
                elif before is not ABSENT and space.get(entry) is not before:
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
        self.objects.append(RecordedObject(read(), read, restore))


def _has_attributes(item: object) -> bool:
    """Whether to look into the attributes of an object: it is not the internal of a library."""
    if isinstance(item, nn.Module | Optimizer | types.SimpleNamespace):
        return True
    library = type(item).__module__.partition(".")[0]
    foreign = isinstance(item, type | types.ModuleType) or library == "torch" or library in sys.stdlib_module_names
    return not foreign and isinstance(getattr(item, "__dict__", None), dict)


def _key(key: object) -> str:
    """A key as messages show it; distinct for distinct keys."""
    return repr(key) if isinstance(key, PLAIN) else f"{type(key).__name__} {id(key):x}"


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
