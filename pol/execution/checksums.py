"""Checksums of arrays, to see at the speed of memory whether somebody has changed them."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.execution import _kernels


def checksums(arrays: Sequence[Words], threads: int = 1) -> list[int]:
    """One for each array, for comparison within this process: they tell changes, not forgeries."""
    return _kernels.checksums(arrays, threads)
