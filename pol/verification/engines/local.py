"""An engine in this process: one segment after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pol.execution.device.open_device import CPU, require_device_name
from pol.verification.engines.engine import ExaminedSegment, ReplayJob, forget_task, replay_segment, require_device


class LocalEngine:
    """Replays in this process; ``threads`` of the kernels, 0 for all that the machine has, or on a device."""

    def __init__(self, threads: int = 0, device: str = CPU):
        self._threads, self._device = threads, require_device_name(device)

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in the order of the jobs. Raises OperationalError: the device can't be used."""
        require_device(self._device)
        try:
            for job in jobs:
                yield replay_segment(job, self._threads, self._device)
        finally:
            forget_task()
