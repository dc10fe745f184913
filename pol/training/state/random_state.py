"""The state of the global random generators of Python, NumPy and torch, and of further ones by name."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from pol.errors import ProtocolError

Generator: TypeAlias = torch.Generator | np.random.Generator | np.random.RandomState | random.Random


class RandomSources:
    """The global generators, and further ones by name: of torch, of NumPy (both kinds), and `random.Random`."""

    WORDS = 624

    def __init__(self, named: Mapping[str, Generator] | None = None):
        self.named: dict[str, Generator] = dict(named or {})
        self._waiting: dict[str, Any] = {}

    def register(self, name: str, generator: Generator) -> None:
        """Include one more generator, unless it is included already; it continues from its state in a loaded one."""
        if all(generator is not known for known in self.named.values()):
            self.named[name] = generator
            if name in self._waiting:
                _restore(generator, self._waiting.pop(name))

    def state(self) -> dict[str, Any]:
        """The state of all generators, as plain data and tensors."""
        return as_plain(self.raw())

    def raw(self) -> dict[str, Any]:
        """The state of all generators as they give it, which takes less time."""
        state: dict[str, Any] = {
            "python": random.getstate(),
            "numpy": np.random.get_state(legacy=False),
            "torch": torch.get_rng_state(),
            "named": {name: _state_of(generator) for name, generator in self.named.items()} | self._waiting,
        }
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch declares no types
            state["cuda"] = list(torch.cuda.get_rng_state_all())
        if torch.backends.mps.is_available():
            state["mps"] = torch.mps.get_rng_state()
        return state

    def places(self) -> list[int]:
        """The places of generators in their blocks of `WORDS` words: how much is drawn, not what."""
        drawn = [torch.default_generator, *(g for g in self.named.values() if isinstance(g, torch.Generator))]
        left = [int(g.get_state()[8:12].view(torch.int32)) for g in drawn if g.device.type == "cpu"]
        numpy: Any = np.random.get_state(legacy=False)["state"]
        return [*left, numpy.get("pos", 0), random.getstate()[1][-1]]

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state; a generator that isn't in it is left alone, and one that comes later gets its state then."""
        try:
            self._load(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ProtocolError(f"the recorded state of the random generators can't be used: {error}") from error

    def _load(self, state: Mapping[str, Any]) -> None:
        _restore(random, state["python"])
        np.random.set_state(state["numpy"])
        torch.set_rng_state(state["torch"])
        self._waiting = {name: found for name, found in state["named"].items() if name not in self.named}
        for name, generator in self.named.items():
            if name in state["named"]:
                _restore(generator, state["named"][name])
        if "cuda" in state:
            if torch.cuda.device_count() != len(state["cuda"]):
                raise ProtocolError(
                    f"the training drew on {len(state['cuda'])} CUDA devices, this machine has "
                    f"{torch.cuda.device_count()}: resume where there are as many"
                )
            torch.cuda.set_rng_state_all(state["cuda"])
        if "mps" in state:
            torch.mps.set_rng_state(state["mps"])


def as_plain(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A state from `RandomSources.raw` in the form of `RandomSources.state`."""
    named = {name: _plain(state) for name, state in raw["named"].items()}
    return {**raw, "python": _plain(raw["python"]), "named": named}


def _plain(state: Any) -> Any:
    """Python's 625 words as an array; the states of other generators are plain data."""
    if not isinstance(state, tuple):
        return state
    version, words, gauss = state
    return {"version": version, "words": np.array(words, np.uint32), "gauss": gauss}


def _state_of(generator: Generator) -> Any:
    match generator:
        case torch.Generator():
            return generator.get_state()
        case np.random.Generator():
            return generator.bit_generator.state
        case np.random.RandomState():
            return generator.get_state(legacy=False)
    return generator.getstate()


def _restore(generator: Any, state: Any) -> None:
    match generator:
        case torch.Generator():
            generator.set_state(state)
        case np.random.Generator():
            generator.bit_generator.state = state
        case np.random.RandomState():
            generator.set_state(state)
        case _ if isinstance(state, tuple):
            generator.setstate(state)
        case _:
            generator.setstate((state["version"], tuple(int(word) for word in state["words"]), state["gauss"]))
