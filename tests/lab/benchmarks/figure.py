"""One measured figure, and the checkout that it is measured in."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Figure:
    """One measured figure."""

    value: float
    unit: str
    peer: str | None = None
    ratio: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


def side_by_side(
    ours: Callable[[], object],
    peer: Callable[[], object],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Median seconds of two calls, measured alternately."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, seconds in zip((ours, peer), times, strict=True):
            began = clock()
            call()
            seconds.append(clock() - began)
    return statistics.median(times[0]), statistics.median(times[1])
