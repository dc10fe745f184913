"""Arrays for the results of a step, reused from earlier steps once no caller holds them."""

import sys
import threading
from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.graph.tensor_type import TensorType


def _references(arrays: list[Words], index: int) -> int:
    return sys.getrefcount(arrays[index])


_OWN_REFERENCES = _references([np.empty(0, np.uint32)], 0)
"""The count of `_references` for an array that only its list holds."""

_TAKEN: Words = np.empty(0, np.uint32)
"""Placeholder of an array that was taken; its own count is higher, so it is never taken."""


class ArrayPool:
    """Arrays of the given types, one set for each step.

    An array that a caller keeps (as the next state, or for a dispute) is never reused. Reuse saves the page faults of
    new memory, up to a quarter of a step's time.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = list(types)
        self._lock = threading.Lock()
        self._earlier: list[list[Words]] = []

    def take(self) -> list[Words]:
        """Arrays of any content."""
        with self._lock:
            return [self._array(i, type_) for i, type_ in enumerate(self._types)]

    def keep(self, arrays: Sequence[Words]) -> None:
        """Remember the arrays of a step, for reuse once no caller holds them."""
        # Two steps: callers usually drop the arrays of one step only once they have those of the next.
        with self._lock:
            self._earlier = [list(arrays), *self._earlier[:1]]

    def _array(self, index: int, type_: TensorType) -> Words:
        for arrays in self._earlier:  # the latest first: they may be in the cache still
            if _references(arrays, index) == _OWN_REFERENCES:
                found, arrays[index] = arrays[index], _TAKEN
                return found
        return np.empty(type_.shape, np.uint32)
