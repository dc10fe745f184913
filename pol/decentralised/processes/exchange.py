"""Bytes between the processes of a group, as tensors: nothing is pickled."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Exchange:
    """Brings bytes from every process of a group to every other one; counts what this one has sent.

    gloo moves host memory; for nccl, ``device`` is the process's GPU.
    """

    group: dist.ProcessGroup | None = None
    device: str = "cpu"
    sent: int = 0
    _going: list[tuple[dist.Work | None, Tensor]] = field(default_factory=list)

    @property
    def rank(self) -> int:
        """The number of this process in the group."""
        return dist.get_rank(self.group)

    @property
    def size(self) -> int:
        """The number of processes."""
        return dist.get_world_size(self.group)

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every process, in the order of ranks."""
        own = torch.tensor([len(data)], dtype=torch.int64, device=self.device)
        lengths = [torch.zeros_like(own) for _ in range(self.size)]
        dist.all_gather(lengths, own, group=self.group)
        sizes = [int(length) for length in lengths]
        # Unequal lengths are padded: every process sends as many bytes as the longest message has.
        padded = torch.zeros(max(1, *sizes), dtype=torch.uint8)
        if data:
            padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        padded = padded.to(self.device)
        found = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(found, padded, group=self.group)
        self.sent += (self.size - 1) * (len(padded) + own.nbytes)
        return [bytes(part[:size].cpu().numpy()) for part, size in zip(found, sizes, strict=True)]

    def post(self, data: bytes, to: int) -> None:
        """Begin to send bytes to one process, which takes them in this order; `settle` waits until all have gone."""
        size = torch.tensor([len(data)], dtype=torch.int64, device=self.device)
        payload = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)
        for tensor in (size, payload):
            self._going.append((dist.isend(tensor, to, group=self.group), tensor))
            self.sent += tensor.nbytes

    def take(self, source: int) -> bytes:
        """The next bytes that a process has posted to this one."""
        return self._taken(source)[1]

    def take_any(self) -> tuple[int, bytes]:
        """The next bytes of whichever process has posted first, and which one it was."""
        return self._taken(None)

    def settle(self) -> None:
        """Wait until all that was posted has gone."""
        for work, _ in self._going:
            if work is not None:
                work.wait()
        self._going.clear()

    def _taken(self, source: int | None) -> tuple[int, bytes]:
        size = torch.zeros(1, dtype=torch.int64, device=self.device)
        process = dist.recv(size, source, group=self.group)
        payload = torch.empty(int(size), dtype=torch.uint8, device=self.device)
        dist.recv(payload, process, group=self.group)
        return process, bytes(payload.cpu().numpy())
