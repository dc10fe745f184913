"""A kernel as text: what a compiler gets, and what a launch needs to know."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

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
