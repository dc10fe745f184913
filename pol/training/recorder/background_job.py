"""Jobs on a thread beside the training, one at a time; an error is raised at the training's next call."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar
from weakref import WeakSet

import numpy as np

from pol.commitments.array import Array, Bytes


class Background:
    """Runs jobs one after another beside the caller, at most one at a time."""

    _all: ClassVar[WeakSet[Background]] = WeakSet()

    def __init__(self) -> None:
        self._all.add(self)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pol-recorder")
        self._running: Future[None] | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Wait for the previous job and raise its error if it failed; else start this one."""
        self.wait()
        self._running = self._pool.submit(job)

    def check(self) -> None:
        """Raise the error of a failed job, without waiting."""
        if self._running is not None and self._running.done():
            self.wait()

    def wait(self) -> None:
        """Wait for the job, and raise its error if it failed. An error is raised once."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    @classmethod
    def wait_for_all(cls) -> None:
        """Wait for jobs of the whole process; errors stay where they are."""
        futures.wait([one._running for one in cls._all if one._running is not None])


class Staging:
    """Reused memory for copies of arrays, so that the training may change the originals."""

    def __init__(self) -> None:
        self._buffers: dict[str, Bytes] = {}

    def copies(self) -> Callable[[str, Array], Array]:
        """Copies arrays by name, one at a time; the copies live until this is called again."""
        known, self._buffers = self._buffers, {}

        def copy(name: str, array: Array) -> Array:
            buffer = known.pop(name, None)
            if buffer is None or buffer.size != array.data.size:
                buffer = np.empty(array.data.size, np.uint8)
            np.copyto(buffer, array.data)
            self._buffers[name] = buffer
            return Array(array.type, buffer, array.tree)

        return copy
