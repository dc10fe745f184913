"""Bytes between the processes of a group, as tensors: nothing is pickled."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Exchange:
    """Brings bytes from every process of a group to every other one; counts what this one has sent.

    gloo moves host memory; for nccl, ``device`` is the process's GPU.
    """

    group: dist.ProcessGroup | None = None
    device: str = "cpu"
    sent: int = 0

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
