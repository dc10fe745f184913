"""The numbers of random operations in native execution: the words that the step program defines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic import philox
from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.tracing.random_operations import DTYPES, LIBRARY
from pol.graph.lowering.emitter import Emitter
from pol.graph.lowering.philox_nodes import SHAPINGS, WORDS, draw
from pol.graph.lowering.values import StepNumber, whole_view
from pol.graph.node import Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

_MASK = WORDS - 1
_SEED = TensorType(DType.I32, (2,))
_ORDINAL = TensorType(DType.I32, ())

_Number: TypeAlias = "int | Tensor"


def _implementation(name: str) -> Callable[..., Tensor]:
    def drawn(
        step: Tensor, seed: Tensor, ordinal: int, shape: Sequence[int], *parameters: float, device: Any = None
    ) -> Tensor:
        place = step.device if device is None else torch.device(device)
        count = math.prod(shape)
        if count == 0:
            return torch.empty(tuple(shape), dtype=DTYPES[name], device=place)
        at, key, ordinal = int(step), [word & _MASK for word in seed.tolist()], ordinal & _MASK
        shaped = None
        if place.type != "cpu":
            shaped = _by_torch(name, torch_words(count, at, key, ordinal, place), parameters)
        if shaped is None:
            _, (words,) = _executor(name, parameters, count, torch.get_num_threads()).advance(
                [np.array(key, np.uint32), np.array(ordinal, np.uint32)], at
            )
            shaped = _typed(words, DTYPES[name]).to(place)
        return shaped.reshape(tuple(shape))

    return drawn


for _name in DTYPES:
    LIBRARY.impl(_name, _implementation(_name), "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]  # torch declares no types

DRAWS: Mapping[str, Callable[..., Any]] = {
    f"pol.{name}.default": getattr(torch.ops.pol, name).default for name in DTYPES
}
"""The draws by the names that they have in a graph."""


@lru_cache(maxsize=32)
def _executor(name: str, parameters: Sequence[float], count: int, threads: int) -> CpuExecutor:
    """The nodes that lowering writes for a draw, which it observes, with seed and ordinal as its state."""
    emitter = Emitter()
    seed, ordinal = whole_view(Source.STATE, 0, _SEED), whole_view(Source.STATE, 1, _ORDINAL)
    dtype = DType.F32 if DTYPES[name] is torch.float32 else DType.I32
    drawn = draw(emitter, count, dtype, StepNumber(()), seed, ordinal, SHAPINGS[name](*parameters))
    slots = [Slot(Component.BUFFER, value.type, emitter.stored(value).index) for value in (seed, ordinal)]
    program = StepProgram(tuple(slots), (_ORDINAL,), tuple(emitter.nodes))
    return CpuExecutor(program, [np.zeros((), np.uint32)], threads, observed=[drawn.index])


def _typed(words: Words, dtype: torch.dtype) -> Tensor:
    if dtype is torch.float32:
        return torch.from_numpy(words.view(np.float32))
    return torch.from_numpy(words.view(np.int32)).to(dtype)


def torch_words(count: int, step: int, key: Sequence[int], ordinal: int, device: torch.device) -> Tensor:
    """Word 0 of Philox4x32-10 for the elements 0 .. count-1 as int64, with torch's integer operations."""
    elements = torch.arange(count, dtype=torch.int64, device=device)
    x: list[_Number] = [elements, step, ordinal, 0]
    k = list(key)
    for _ in range(philox.ROUNDS):
        # A product may wrap in 64 bits; its upper and lower half keep their bits.
        a, b = x[0] * philox.MULTIPLIERS[0], x[2] * philox.MULTIPLIERS[1]
        x = [(b >> 32 & _MASK) ^ x[1] ^ k[0], b & _MASK, (a >> 32 & _MASK) ^ x[3] ^ k[1], a & _MASK]
        k = [(word + step_) & _MASK for word, step_ in zip(k, philox.KEY_STEPS, strict=True)]
    words = x[0]
    if not isinstance(words, Tensor):
        raise AssertionError("the counter holds the elements")
    return words


def _by_torch(name: str, words: Tensor, parameters: Sequence[float]) -> Tensor | None:
    """The draw from its words where torch's operations are exact, else None."""
    if name == "uniform" and tuple(parameters) == (0.0, 1.0):
        return (words >> 8).to(torch.float32) * 2.0**-24
    if name == "bernoulli":
        return words < round(parameters[0] * WORDS)
    if name == "integers":
        low, high = (int(p) for p in parameters)
        # The product of two words may wrap in 64 bits; its upper half keeps its bits.
        return (words * (high - low) >> 32 & _MASK) + low
    return None
