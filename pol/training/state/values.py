"""Plain variables of a loop as a part, with what a state dictionary doesn't say of them: order of keys, one object."""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from pol.errors import ProtocolError, UnsupportedError
from pol.training.state import plain_data

KEYS = "keys"
"""In which order the dictionaries of a `Values` hold their keys: a loop may go over them, or drop the eldest."""

SHARED = "shared"
"""Places of `Values` that hold an object which another place before holds, and where that is: they change together."""

KINDS = "kinds"
"""Which dictionaries of `Values` are ordered, or make missing values by a function, and what is trained, by path."""

TRAINED = "trained"


def _unnamed() -> Any:
    raise ProtocolError("a checkpoint can't name the function that makes missing values: give it to pol.Values again")


_MADE = (int, float, bool, str, list, dict, set, tuple, Counter, deque, _unnamed)
_KINDS: Mapping[str, Any] = {"ordered": OrderedDict, "none": None, **{made.__name__: made for made in _MADE}}


class Values:
    """Plain variables of a loop as a part: `pol.Values(best=0.0, bad_epochs=0)`; read and set them as attributes."""

    def __init__(self, **values: Any):
        vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no value {name}: name it when Values is made")

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        vars(self)[name] = value

    def state_dict(self) -> dict[str, Any]:
        """The values."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them; a dictionary keeps a default for missing keys that has no name, and what is trained its tensor."""
        held = dict(vars(self))
        vars(self).clear()
        vars(self).update({name: _kept(value, held.get(name)) for name, value in state.items()})
        for name, value in state.items():
            if getattr(value, "default_factory", None) is _unnamed:
                value.default_factory = getattr(held.get(name), "default_factory", _unnamed)


def _kept(value: Any, held: Any) -> Any:
    """The value; a tensor that requires a gradient is the one that was held, as an optimizer has that, too."""
    if isinstance(value, Tensor) and value.requires_grad and isinstance(held, Tensor) and held.requires_grad:
        if held.is_leaf and (held.shape, held.dtype) == (value.shape, value.dtype):
            with torch.no_grad():
                return held.copy_(value)
    elif type(value) in (list, tuple) and isinstance(held, list | tuple) and len(held) == len(value):
        return type(value)(map(_kept, value, held))
    elif isinstance(value, dict) and isinstance(held, dict):
        for key, item in value.items():
            value[key] = _kept(item, held.get(key))  # no update(): a Counter would add
    return value


def beside(parts: Mapping[str, object], weights: Iterable[Tensor]) -> dict[str, dict[str, Any]]:
    """`KEYS`, `KINDS` and `SHARED` of each part that is a `Values`, where there are any.

    Raises:
        UnsupportedError: a value is one of the model's ``weights``, or makes values by a function without a name.
    """
    own, places, found = {_memory(tensor) for tensor in weights} - {0}, dict[int, str](), dict[str, dict[str, Any]]()
    for name, part in parts.items():
        if isinstance(part, Values):
            more: dict[str, dict[str, Any]] = {KEYS: {}, KINDS: {}, SHARED: {}}
            for attribute, value in vars(part).items():
                _look(value, f"{name}/{attribute}", own, places, more)
            found[name] = {kind: held for kind, held in more.items() if held}
    return found


def join(parts: Mapping[str, object], components: Mapping[str, Any]) -> None:
    """Put one object into the places that shared one. Raises ProtocolError: there is no such place."""
    held = {name: vars(part) for name, part in parts.items() if isinstance(part, Values)}
    for name in held:
        for path, first in components[name].get(SHARED, {}).items():
            try:
                _put(
                    held, path.split("/"), functools.reduce(lambda at, part: at[_key(at, part)], first.split("/"), held)
                )
            except (LookupError, TypeError, ValueError, StopIteration) as error:
                raise ProtocolError(f"{path} isn't a place that can hold what {first} holds") from error


def _put(holder: Any, path: Sequence[str], value: Any) -> Any:
    """What holds the value at a path now: a tuple is made anew."""
    if not path:
        return value
    key = _key(holder, path[0])
    item = _put(holder[key], path[1:], value)
    if isinstance(holder, tuple):
        return (*holder[:key], item, *holder[key + 1 :])
    holder[key] = item
    return holder


def _key(holder: Any, part: str) -> Any:
    return (
        int(part)
        if isinstance(holder, list | tuple | deque)
        else next(k for k in holder if plain_data.segment(k) == part)
    )


def _look(value: Any, path: str, own: set[int], places: dict[int, str], more: Mapping[str, dict[str, Any]]) -> None:
    """Note order and sameness of a value at a path."""
    if type(value) is Tensor and _memory(value) in own:
        raise UnsupportedError(
            f"{path} is the model's own tensor and changes with it, which it wouldn't after a resumption: keep a "
            "copy, as by copy.deepcopy(model.state_dict())"
        )
    is_changeable = isinstance(value, list | dict | set | deque | Tensor | np.ndarray)
    if is_changeable and (first := places.setdefault(id(value), path)) != path:
        more[SHARED][path] = first
        return
    inner = f"/{path.partition('/')[2]}"
    if isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
        more[KINDS][inner] = TRAINED
    if isinstance(value, Mapping) and len(value) > 1:
        more[KEYS][inner] = list(value)
    if type(value) in (OrderedDict, defaultdict):
        made = getattr(value, "default_factory", OrderedDict)
        more[KINDS][inner] = next((kind for kind, known in _KINDS.items() if known is made), _unnamed.__name__)
        if more[KINDS][inner] == _unnamed.__name__ and path.count("/") > 1:
            raise UnsupportedError(
                f"{path} makes missing values by {made}, which a checkpoint can't name: use int, float, list, dict or "
                "set, or let it be a value of its own, which is made again with pol.Values"
            )
    for key, item in _items(value):
        _look(item, f"{path}/{key}", own, places, more)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((plain_data.segment(key), item) for key, item in value.items())
    return ((str(n), item) for n, item in enumerate(value if isinstance(value, list | tuple | deque) else ()))


def _memory(tensor: Tensor) -> int:
    """Where a tensor lies, of a spread one its shard; others that only wrap tensors have no memory of their own."""
    tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    has_own = not (tensor.is_meta or tensor.layout != torch.strided or is_traceable_wrapper_subclass(tensor))
    return tensor.untyped_storage().data_ptr() if has_own else 0


def as_they_were(value: Any, more: Mapping[str, Any], path: str = "") -> Any:
    """The value with the `KINDS` of its dictionaries, and their keys in the order of `KEYS`."""
    keys, kinds = more.get(KEYS, {}), more.get(KINDS, {})
    if not keys and not kinds:
        return value
    if type(value) in (list, tuple, deque):
        items = (as_they_were(item, more, f"{path}/{number}") for number, item in enumerate(value))
        return deque(items, value.maxlen) if isinstance(value, deque) else type(value)(items)
    if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.requires_grad_(kinds.get(path) == TRAINED)
    if not isinstance(value, dict):
        return value
    order, kind = keys.get(path, list(value)), kinds.get(path)
    if set(order) != value.keys() or len(order) != len(value) or kind not in (None, *_KINDS):
        raise ProtocolError(f"the dictionary {path} has other keys than their order says, or is of an unknown kind")
    ordered = {key: as_they_were(value[key], more, f"{path}/{plain_data.segment(key)}") for key in order}
    if isinstance(value, Counter):
        return Counter(ordered)
    if kind in (None, "ordered"):
        return OrderedDict(ordered) if kind else ordered
    return defaultdict(_KINDS[kind], ordered)
