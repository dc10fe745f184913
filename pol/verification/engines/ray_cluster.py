"""An engine for many machines: each segment is a task of a Ray cluster, and tensors come from the store."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pol.errors import OperationalError, ProtocolError
from pol.execution.device.open_device import CPU, is_gpu, require_device_name
from pol.verification.engines.engine import (
    ATTEMPTS,
    ExaminedSegment,
    ReplayJob,
    lost_segment,
    replay_segment,
    require_shared,
)


class RayEngine:
    """Replays on the cluster at ``address``, on the one that this process is connected to, or on one of its own.

    ``threads`` cores are taken for each segment, and with ``device="cuda"`` one GPU, which Ray chooses. Machines of a
    cluster need pol, and a store that all of them can read.
    A segment whose worker ends is begun again, on another machine if there is one. A cluster of its own listens on
    this machine alone, unless the program has imported Ray before.

    Raises OperationalError if Ray isn't installed, ProtocolError for one GPU in particular: Ray chooses it.
    """

    def __init__(self, threads: int = 0, address: str | None = None, device: str = CPU):
        self._threads, self._device = threads or 1, require_device_name(device)
        if ":" in device:
            raise ProtocolError(f"Ray chooses the GPU of each segment: name cuda, not {device}")
        self._address = address
        if address is None:
            # Read when Ray is imported or starts: send no usage statistics, listen on this machine only.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        try:
            import ray
        except ImportError as error:
            raise OperationalError(f"can't use Ray: {error}; pip install 'proof-of-learning[ray]'") from error
        self._ray: Any = ray

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in order of completion."""
        require_shared(jobs)
        ray = self._ray
        with self._cluster():
            gpus = int(is_gpu(self._device))
            if gpus > ray.cluster_resources().get("GPU", 0):  # Ray would wait for one
                raise OperationalError("no machine of the Ray cluster has a GPU: leave out --device, or add one")
            remote = ray.remote(num_cpus=self._threads, num_gpus=gpus, max_retries=ATTEMPTS - 1)(replay_segment)
            waiting = {remote.remote(job, self._threads, self._device): job for job in jobs}
            while waiting:
                (done,), _ = ray.wait(list(waiting), num_returns=1)
                job = waiting.pop(done)
                try:
                    yield ray.get(done)
                except ray.exceptions.RayTaskError:  # the job itself raised: a bug, and no verdict
                    raise
                except ray.exceptions.RayError as error:
                    yield lost_segment(job, str(error).strip().partition("\n")[0])

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        ray = self._ray
        if ray.is_initialized():
            yield
            return
        own = {"num_cpus": max(len(os.sched_getaffinity(0)), self._threads), "include_dashboard": False}
        options = {"address": self._address} if self._address else own
        try:
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray raises what its parts raise
            where = self._address or "on this machine"
            raise OperationalError(f"can't reach a Ray cluster ({where}): {error}") from error
        try:
            yield
        finally:
            ray.shutdown()
