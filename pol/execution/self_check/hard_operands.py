"""Operands for edge cases: zeros, ties, the least and the greatest integers of the data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.graph.aten_graph import AtenGraph
from pol.graph.capture.guards.index_ranges import lookups_of
from pol.graph.capture.tracing.step_inputs import DATA
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType


def hard_operands(
    graph: AtenGraph, state: Sequence[Words], constants: Sequence[Words]
) -> Iterator[tuple[list[Words], list[Words]]]:
    """Pairs of state and constants. Parameters and data change; buffers and optimizer state, which may have invariants,
    stay. Integers, and floats that are labels, stay within those of the data set: the capture has checked them.
    """
    labels = {lookup.constant for lookup in lookups_of(graph)}
    for parameters, floats, end in ((np.zeros_like, np.zeros_like, np.min), (_halves, _whole, np.max)):
        changed = [
            parameters(words) if slot.component is Component.PARAMETER else words
            for slot, words in zip(graph.slots, state, strict=True)
        ]
        data = list(constants)
        for place, entry in enumerate(graph.constants):
            if entry.name.startswith(DATA):
                are_numbers = entry.type.words.dtype is DType.F32 and entry.name not in labels
                last = end(constants[place].view(np.int32)).view(np.uint32)
                data[place] = floats(constants[place]) if are_numbers else np.full_like(constants[place], last)
        yield changed, data


def _halves(words: Words) -> Words:
    """Only -1/2, 0 and 1/2: many ties, and sums without rounding."""
    numbers = words.view(np.float32)
    middle = np.abs(numbers).mean(dtype=np.float64)
    return np.asarray(np.where(np.abs(numbers) < middle, 0, np.copysign(0.5, numbers)), np.float32).view(np.uint32)


def _whole(words: Words) -> Words:
    """All whole numbers from -2 to 2, in turn."""
    count = np.arange(words.size, dtype=np.int64).reshape(words.shape)
    return ((count * 7) % 5 - 2).astype(np.float32).view(np.uint32)
