"""State of the user's own Python besides the attributes of objects: how to read it and put it back.

Functions name global variables and have defaults and attributes; classes have attributes; objects may have slots;
iterators and random number generators have a position. Code of libraries is left out: it is large, and its caches do
not affect the training.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

LARGE = 1 << 26
"""Bytes from which on a tensor or an array in a global variable is data: it is neither copied nor compared."""

_LIBRARIES = (
    *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    *(str(Path(str(module.__file__)).parent) for module in (torch, np)),
    str(Path(__file__).parents[3]),
    "<frozen",
)
_NO_STATE = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__"})
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, staticmethod, classmethod, property)
_FOLLOWED = (dict, list, set, tuple, deque, nn.Module, Optimizer, types.SimpleNamespace, *_FUNCTIONS)
_SAMPLES: tuple[Iterable[Any], ...] = ([], (), "", b"", range(1), range(1 << 70))
_SEQUENCES: tuple[type, ...] = tuple(type(iter(sample)) for sample in _SAMPLES)
_ITERATORS: tuple[type, ...] = (
    *(itertools.count, itertools.cycle, itertools.repeat, itertools.chain, itertools.islice, itertools.accumulate),
    *(map, filter, enumerate, zip, reversed, *_SEQUENCES),
)


def is_user_file(filename: object) -> bool:
    """Whether a file holds the user's code: a script, a notebook, a package in development."""
    return not filename or not (str(filename).startswith(_LIBRARIES) or "-packages/" in str(filename))


def classes(item: object) -> list[type]:
    """The user's classes that an object is an instance of; of a class, those that it is made of."""
    kinds = item.__mro__ if isinstance(item, type) else type(item).__mro__
    return [kind for kind in kinds if _is_user_class(kind)]


def members(kind: type) -> dict[str, Any]:
    """The attributes of a class."""
    return {key: value for key, value in vars(kind).items() if key not in _NO_STATE and not key.startswith("_abc")}


def put_members_back(kind: type, before: Mapping[str, Any]) -> None:
    """The attributes of a class as they were."""
    now = members(kind)
    for key in now.keys() - before.keys():
        type.__delattr__(kind, key)
    for key, value in before.items():
        if now.get(key) is not value:
            type.__setattr__(kind, key, value)


def slots(item: object) -> dict[str, Any]:
    """The values of the slots of an object of the user's class."""
    found = {}
    for key, descriptor in _slots(item).items():
        with suppress(AttributeError):
            found[key] = descriptor.__get__(item)
    return found


def put_slots_back(item: object, before: Mapping[str, Any]) -> None:
    """The slots of an object as they were."""
    now = slots(item)
    for key, descriptor in _slots(item).items():
        if key in before and now.get(key) is not before[key]:
            descriptor.__set__(item, before[key])
        elif key in now and key not in before:
            descriptor.__delete__(item)


def named_globals(function: types.FunctionType) -> dict[str, tuple[dict[str, Any], str]]:
    """The global variables that the code names, also those of modules of the user's: their dictionary and key."""
    space, names = function.__globals__, _names(function.__code__)
    found = {name: (space, name) for name in names}
    for module in [space.get(name) for name in names]:
        if isinstance(module, types.ModuleType) and is_user_file(getattr(module, "__file__", None) or "<frozen"):
            found |= {f"{module.__name__}.{name}": (vars(module), name) for name in names if name in vars(module)}
    return found


def is_followed(value: object) -> bool:
    """Whether to look into the value of a global variable or a class attribute: the user's objects, and containers."""
    if isinstance(value, Tensor | np.ndarray):
        return value.nbytes <= LARGE
    return isinstance(value, _FOLLOWED) or bool(classes(value) or wrapped(value)) or position(value) is not None


def wrapped(item: object) -> list[object]:
    """The functions behind a property or a decorator, and the object of a builtin method."""
    if isinstance(item, types.BuiltinMethodType | types.MethodWrapperType):
        owner = item.__self__
        return [] if isinstance(owner, types.ModuleType | type) else [owner]
    if isinstance(item, property):
        found = [item.fget, item.fset]
    elif isinstance(item, staticmethod | classmethod):
        found = [item.__func__]
    elif isinstance(item, functools.cached_property):
        found = [item.func]
    elif isinstance(item, functools._lru_cache_wrapper):
        found = [item.__wrapped__]
    else:
        found = []
    return [function for function in found if function is not None]


def position(item: object) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """Of an iterator or a random number generator: how to read its position, and how to go back there.

    Iterators over sequences can go back; other iterators and Python generators can't.
    """
    if isinstance(item, random.Random):
        state = item.getstate()
        return item.getstate, lambda: item.setstate(state)
    if isinstance(item, np.random.Generator):
        bits = item.bit_generator
        drawn = bits.state
        return lambda: repr(bits.state), lambda: setattr(bits, "state", drawn)
    if isinstance(item, np.random.RandomState):
        legacy = item.get_state()
        return lambda: repr([np.asarray(part).tobytes() for part in item.get_state()]), lambda: item.set_state(legacy)
    if isinstance(item, torch.Generator):
        native = item.get_state()
        return lambda: item.get_state().numpy().tobytes(), lambda: item.set_state(native)
    if isinstance(item, types.GeneratorType):
        return lambda: _of_frame(item.gi_frame), lambda: None
    if isinstance(item, _ITERATORS):
        reduced = item.__reduce__()
        return lambda: _of_iterator(item), lambda: _go_back(item, reduced)
    return None


def _is_user_class(kind: type) -> bool:
    """Whether a class is the user's; enumerations have no state."""
    module = sys.modules.get(kind.__module__)
    is_library = module is not None and getattr(module, "__file__", None) is None and kind.__module__ != "__main__"
    return not (issubclass(kind, Enum) or is_library) and is_user_file(getattr(module, "__file__", None))


def _slots(item: object) -> dict[str, types.MemberDescriptorType]:
    return {
        key: value
        for kind in reversed(classes(item))
        for key, value in vars(kind).items()
        if isinstance(value, types.MemberDescriptorType)
    }


def _names(code: types.CodeType) -> dict[str, None]:
    """The names that a function and those inside of it use."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _of_frame(frame: types.FrameType | None) -> object:
    if frame is None:
        return "finished"
    return (frame.f_lasti, *(f"{key}={value!r}" for key, value in frame.f_locals.items() if _is_number(value)))


def _of_iterator(item: object) -> object:
    """The position of an iterator, and of those that it reads from."""
    if not isinstance(item, _ITERATORS):
        return _of_frame(item.gi_frame) if isinstance(item, types.GeneratorType) else id(item)
    reduced: Any = item.__reduce__()
    if isinstance(item, _SEQUENCES):
        return reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else "finished"
    parts = [part for group in reduced[1:] for part in (group if isinstance(group, tuple) else (group,))]
    return tuple(part if _is_number(part) else _of_iterator(part) for part in parts)


def _go_back(item: Any, before: Any) -> None:
    is_sequence = isinstance(item, _SEQUENCES)
    if is_sequence and len(before) > 2:
        with suppress(AttributeError, TypeError):
            item.__setstate__(before[2])


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | str | types.NoneType)
