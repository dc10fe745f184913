"""The interface of a device: something that compiles kernels and runs them on memory of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pol.arithmetic.primitives import Words

NAME = "KERNEL_NAME"
"""Stands for the kernel's name in its source: equal sources are one kernel."""


@dataclass(frozen=True)
class Kernel:
    """The source of one kernel; parameters are the output, the operands, what its class adds, and the step."""

    source: str
    threads: int
    blocks: int

    @property
    def name(self) -> str:
        """The name that follows from the content."""
        return f"k{hashlib.sha256(self.source.encode()).hexdigest()[:24]}"

    @property
    def named_source(self) -> str:
        """The source with the name in place."""
        return self.source.replace(NAME, self.name)


Buffer: TypeAlias = Any
"""Words in a device's memory; each device has its own type."""


class Device(Protocol):
    """A GPU (`CudaDevice`), or this machine's processor as a stand-in for one (`HostDevice`)."""

    @property
    def name(self) -> str:
        """The device, in words."""
        ...

    @property
    def packages(self) -> str:
        """The versions of the packages that compile, launch and sort for it: others may give other bits."""
        ...

    def load(self, kernels: Sequence[Kernel]) -> None:
        """Compile kernels that `launch` will be asked for; those that are there already cost nothing."""
        ...

    def launch(self, kernel: Kernel, buffers: Sequence[Buffer], number: int, blocks: int | None = None) -> None:
        """Run a kernel on buffers and one number; it may still run when this returns."""
        ...

    def empty(self, words: int) -> Buffer:
        """Memory for this many words, of any content."""
        ...

    def put(self, words: Words) -> Buffer:
        """A copy of words in the device's memory."""
        ...

    def get(self, buffer: Buffer, shape: tuple[int, ...]) -> Words:
        """A copy of a buffer's words, of this shape, in the host's memory."""
        ...

    def part(self, buffer: Buffer, first: int) -> Buffer:
        """The words of a buffer from one on, in place."""
        ...

    def sort(self, keys: Buffer, lines: int) -> tuple[Buffer, Buffer]:
        """Each line's keys as signed numbers in ascending order, and where each was; equal keys keep their order."""
        ...
