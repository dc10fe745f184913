"""State inside of a loader: random generators wherever they are, and counters of its samplers and data sets."""

from __future__ import annotations

import functools
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from random import SystemRandom
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler

from pol.training.state.batch_digest import digest
from pol.training.state.random_state import Generator, RandomSources, as_plain

MAX_ITEMS, MAX_OBJECTS = 64, 2000
MAX_ORDER = 1 << 14
"""Most entries of a sampler's list of whole numbers, which it may shuffle in place, that is recorded with counters."""
_LEAVES = (Tensor, nn.Module, ModuleType, SystemRandom, type, str, bytes, int, float)
_OPTIONS = {"batch_size", "drop_last", "num_workers", "prefetch_factor"}
_RUNNING = "_iterator"
"""An attribute of torch's loader: its workers, which outlive an epoch if they are persistent."""


Count: TypeAlias = int | tuple[int, ...]


class LoaderParts:
    """The parts of a loader by their paths, such as `batch_sampler.sampler.generator`."""

    def __init__(self, loader: Any):
        self._loader = loader
        self.generators: dict[str, Generator] = {}
        self._counting: dict[str, Any] = {}
        waiting: deque[tuple[str, object]] = deque([("", loader)])
        seen: dict[int, object] = {}
        while waiting and len(seen) < MAX_OBJECTS:
            path, found = waiting.popleft()
            if isinstance(found, _LEAVES) or id(found) in seen:
                continue
            seen[id(found)] = found  # kept, as an id is unique only while its object lives
            if isinstance(found, Generator):
                self.generators[path] = found
                continue
            if isinstance(found, DataLoader | Dataset | Sampler) or _is_told(found):
                self._counting[path] = found
            waiting.extend((f"{path}.{name}".lstrip("."), item) for name, item in _inside(found))

    def counts(self) -> dict[str, Count]:
        """Whole numbers among the attributes of samplers, data sets and loaders; and lists of them in samplers."""
        return {
            f"{path}.{name}".lstrip("."): tuple(value) if isinstance(value, list) else value
            for path, owner in self._counting.items()
            for name, value in getattr(owner, "__dict__", {}).items()
            if (type(value) in (bool, int) and name not in _OPTIONS)
            or (isinstance(owner, Sampler) and type(value) is list and _is_order(value))
        }

    def data(self) -> dict[str, object]:
        """What shows that a loop has changed data: versions of tensors, identities of arrays, numbers and texts."""
        found: dict[str, object] = {}
        for path, owner in self._counting.items():
            for name, value in vars(owner).items() if hasattr(owner, "__dict__") else ():
                items = value[:MAX_ITEMS] if isinstance(value, list | tuple) else (value,)
                for number, item in enumerate(items):
                    if isinstance(item, Tensor):
                        found[f"{path}.{name}[{number}]"] = id(item), item._version
                    elif isinstance(item, np.ndarray) or (item is value and isinstance(item, float | str)):
                        found[f"{path}.{name}"] = id(item) if isinstance(item, np.ndarray) else item
        return found

    def kept(self) -> dict[str, int]:
        """How much data sets hold in containers: a cache grows as it is drawn from."""
        return {
            f"{path}.{name}": len(value) - (value[:MAX_OBJECTS].count(None) if isinstance(value, list) else 0)
            for path, owner in self._counting.items()
            for name, value in getattr(owner, "__dict__", {}).items()
            if isinstance(owner, Dataset) and (isinstance(value, dict | set) or type(value) is list)
        }

    def set_epoch(self, epoch: int, before: Mapping[str, Count]) -> None:
        """Tell the epoch to the loader and its samplers, unless they have counted on since ``before`` themselves."""
        now = self.counts()
        for path, owner in self._counting.items():
            own = [name for name in now if name.rpartition(".")[0] == path]
            is_sampler = not path or path.rpartition(".")[2] in ("sampler", "batch_sampler")
            if is_sampler and _is_told(owner) and all(now[name] == before.get(name) for name in own):
                owner.set_epoch(epoch)

    def restore(self, epoch: int, counts: Mapping[str, Count], varying: Collection[str]) -> None:
        """Set counters to ``counts`` of an epoch: those that are ``varying``, and those that `set_epoch` changes."""
        now = self.counts()
        if all(now.get(name) == value for name, value in counts.items()):
            return
        told = [owner for owner in self._counting.values() if _is_told(owner)]
        for owner in told:
            owner.set_epoch(epoch + 1)
        before = self.counts()
        for owner in told:
            owner.set_epoch(epoch)
        now = self.counts()
        for name, value in counts.items():
            if name in now and now[name] != value and (name in varying or before.get(name) != now[name]):
                path, _, attribute = name.rpartition(".")
                if isinstance(value, tuple):
                    getattr(self._counting[path], attribute)[:] = value
                else:
                    setattr(self._counting[path], attribute, value)

    @property
    def workers(self) -> int:
        """The number of processes of its own that make batches."""
        return max((getattr(owner, "num_workers", 0) for owner in self._counting.values()), default=0)

    @property
    def size(self) -> int | None:
        """The number of batches of the loader, if it tells it."""
        try:
            return len(self._loader)
        except (TypeError, NotImplementedError):
            return None

    def iterator(self, place: object) -> Iterator[Any]:
        """A new iteration over the loader. Without a part that holds its ``place``, its workers begin anew."""
        if place is None and self.stop_workers():
            warnings.warn(
                "persistent workers are started anew for each epoch: what they hold is in no checkpoint", stacklevel=4
            )
        return iter(self._loader)

    def stop_workers(self) -> bool:
        """Let persistent workers of torch's loader end; whether there were such. Their state is in no checkpoint."""
        loaders = [owner for owner in self._counting.values() if isinstance(owner, DataLoader)]
        running = [own for o in loaders if (own := vars(o)).get(_RUNNING) is not None and own["num_workers"] > 0]
        for own in running:
            own[_RUNNING] = None
        return bool(running)


class ChangedData:
    """Warns of data of a loader that changes as it is drawn from, or between two draws: no checkpoint holds it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shown: dict[str, object] = {}
        """What was seen of the data when it was last drawn from."""
        self._kept: dict[str, int] = {}
        self._told: set[str] = set()

    def look_before(self, parts: LoaderParts) -> None:
        """Before a draw: what the loop has changed since the last one."""
        now, self._kept = parts.data(), parts.kept()
        self._tell(
            {path for path, seen in self.shown.items() if now.get(path, seen) != seen},
            "the loop has changed {}, which is in no checkpoint: a resumption may draw other batches. Set it in "
            "set_epoch(epoch) of data set or sampler, or give the recorder a part that holds it",
        )

    def look_behind(self, parts: LoaderParts, random: RandomSources, before: Mapping[str, Any] | None) -> None:
        """Behind a draw: what it has filled at random. ``before``: the random state before one that draws no order."""
        self.shown, now = parts.data(), parts.kept()
        filled = {path for path, count in self._kept.items() if now.get(path) != count}
        if filled and before is not None and digest(as_plain(before)) != digest(random.state()):
            self._tell(
                filled,
                "drawing at random fills {}: behind a resumption it's filled with other draws, unless a part of the "
                "recorder holds it. Make the data set such a part (state_dict), or fill it before the training",
            )

    def _tell(self, paths: set[str], said: str) -> None:
        new = {path.lstrip(".") for path in paths} - self._told
        self._told |= new
        if new:
            warnings.warn(said.format(f"{', '.join(sorted(new)[:3])} of the loader {self.name!r}"), stacklevel=5)


def _is_order(value: Sequence[object]) -> bool:
    return len(value) <= MAX_ORDER and set(map(type, value)) == {int}


def _is_told(owner: Any) -> bool:
    return callable(getattr(type(owner), "set_epoch", None))


def _inside(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(key), item) for key, item in islice(value.items(), MAX_ITEMS))
    elif isinstance(value, list | tuple):
        yield from ((str(number), item) for number, item in enumerate(value[:MAX_ITEMS]))
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, FunctionType):
        names = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in names if cell != type(cell)())
    elif isinstance(value, MethodType | BuiltinMethodType):
        yield "self", value.__self__
    else:
        yield from ((name, item) for name, item in getattr(value, "__dict__", {}).items() if name != _RUNNING)
