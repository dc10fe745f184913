"""The state of the global random generators of Python, NumPy and torch, and of further ones by name."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from pol.errors import ProtocolError, UnsupportedError

Generator: TypeAlias = torch.Generator | np.random.Generator


class RandomSources:
    """The global generators, and further ones (`torch.Generator`, `numpy.random.Generator`) by name."""

    def __init__(self, named: Mapping[str, Generator] | None = None):
        self.named: dict[str, Generator] = dict(named or {})
        self._waiting: dict[str, Any] = {}
        for name, generator in self.named.items():
            if not isinstance(generator, torch.Generator | np.random.Generator):
                raise UnsupportedError(
                    f"generator {name!r} is a {type(generator).__name__}: give a torch.Generator or a numpy Generator"
                )

    def register(self, name: str, generator: Generator) -> None:
        """Include one more generator, unless it is included already; it continues from its state in a loaded one."""
        if all(generator is not known for known in self.named.values()):
            self.named[name] = generator
            if name in self._waiting:
                _restore(generator, self._waiting.pop(name))

    def state(self) -> dict[str, Any]:
        """The state of all generators, as plain data and tensors."""
        version, words, gauss = random.getstate()
        numpy_state: Any = np.random.get_state(legacy=False)
        state: dict[str, Any] = {
            "python": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
            "numpy": numpy_state,
            "torch": torch.get_rng_state(),
            "named": {name: _state_of(generator) for name, generator in self.named.items()} | self._waiting,
        }
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch declares no types
            state["cuda"] = list(torch.cuda.get_rng_state_all())
        if torch.backends.mps.is_available():
            state["mps"] = torch.mps.get_rng_state()
        return state

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state; a generator that isn't in it is left alone, and one that comes later gets its state then.

        Raises:
            ProtocolError: not a state from `state`, or one of devices that this machine lacks.
        """
        try:
            self._load(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ProtocolError(f"the recorded state of the random generators can't be used: {error}") from error

    def _load(self, state: Mapping[str, Any]) -> None:
        python = state["python"]
        random.setstate((python["version"], tuple(int(word) for word in python["words"]), python["gauss"]))
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


def _state_of(generator: Generator) -> Any:
    return generator.get_state() if isinstance(generator, torch.Generator) else generator.bit_generator.state


def _restore(generator: Generator, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
