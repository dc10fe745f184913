"""Jobs on a thread beside the training, one at a time; an error is raised at the training's next call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from pol.commitments.array import Array, Bytes


class Background:
    """Runs jobs one after another beside the caller, at most one at a time."""

    def __init__(self) -> None:
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


class Staging:
    """Reused memory for copies of arrays, so that the training may change the originals."""

    def __init__(self) -> None:
        self._buffers: dict[str, Bytes] = {}

    def copy(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Copies of the arrays; they live until the next call."""
        buffers = {name: self._buffer(name, array.data.size) for name, array in arrays.items()}
        self._buffers = buffers
        for name, array in arrays.items():
            np.copyto(buffers[name], array.data)
        return {name: Array(array.type, buffers[name]) for name, array in arrays.items()}

    def _buffer(self, name: str, size: int) -> Bytes:
        known = self._buffers.get(name)
        return known if known is not None and known.size == size else np.empty(size, np.uint8)
