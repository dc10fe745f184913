"""Collectives beside the computation: one after the other, in the order in which they were submitted.

The order is what keeps processes together: each collective is several exchanges, and those of two must not mix.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.futures import Future

T = TypeVar("T")


class CollectiveQueue:
    """Runs collectives over a process group of its own, which no other exchange can disturb.

    All processes of the group create it, and submit the same collectives in the same order. On processors a thread
    runs them; on GPUs a stream does, and nothing is copied to the host.

    group: whose processes take part; all if None.
    """

    def __init__(self, group: dist.ProcessGroup | None = None):
        ranks = dist.get_process_group_ranks(group)
        self.group: dist.ProcessGroup = dist.new_group(ranks, use_local_synchronization=True)
        """The queue's own group: give it to the collectives that are submitted."""
        self._thread = ThreadPoolExecutor(1, "collectives")
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def submit(self, collective: Callable[[], T], device: torch.device | str = "cpu") -> Future[T]:
        """The result of a call, later; ``wait()`` raises what the call has raised.

        collective: calls a collective with ``group=queue.group``. device: that of its tensors, which nobody may write
        to before the result is there.
        """
        device = torch.device(device)
        if device.type == "cuda":
            return self._on_stream(collective, device)
        future: Future[T] = Future()
        self._thread.submit(collective).add_done_callback(lambda done: _pass_on(done, future))
        return future

    def close(self) -> None:
        """Waits for what was submitted; no more is taken."""
        self._thread.shutdown()

    def _on_stream(self, collective: Callable[[], T], device: torch.device) -> Future[T]:
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch declares no types
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            future: Future[T] = Future(devices=[device])
            future.set_result(collective())  # who waits, waits for the stream
        return future


def _pass_on(done: ThreadFuture[T], future: Future[T]) -> None:
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)  # type: ignore[arg-type]  # torch declares the type of a result
