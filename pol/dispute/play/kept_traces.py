"""Executions that a party keeps in memory for its disputes: the last ones that were asked for, up to a size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pol.dispute.play.execution_evidence import SegmentTrace

Key = TypeVar("Key", bound=Hashable)


class KeptTraces(Generic[Key]):
    """Executions by key. The last one is kept whatever its size, others while all take ``most_bytes`` at most."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._traces: OrderedDict[Key, SegmentTrace] = OrderedDict()

    def get(self, key: Key, execute: Callable[[], SegmentTrace]) -> SegmentTrace:
        """The execution with this key, from ``execute`` if it isn't kept."""
        found = self._traces.pop(key, None) or execute()
        self._traces[key] = found
        while len(self._traces) > 1 and sum(trace.most_bytes for trace in self._traces.values()) > self._most_bytes:
            self._traces.popitem(last=False)
        return found

    def forget(self, is_over: Callable[[Key], bool] = lambda key: True) -> None:
        """Drop the executions whose keys are over."""
        for key in [key for key in self._traces if is_over(key)]:
            del self._traces[key]

    def __len__(self) -> int:
        return len(self._traces)

    def drop(self, is_unwanted: Callable[[SegmentTrace], bool]) -> None:
        """Drop some executions."""
        for key in [key for key, trace in self._traces.items() if is_unwanted(trace)]:
            del self._traces[key]
