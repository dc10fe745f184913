"""One measured figure, the checkout that it is measured in, and how two sides are measured."""

import ctypes
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pol.errors import OperationalError

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
    warm: int = 0,
    budget: float = 0.0,
) -> tuple[float, float]:
    """Median seconds of two calls, measured alternately: ``rounds``, and more until ours have taken the budget.

    ``warm`` more of each are made before.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for call in (ours, peer) * warm:
        call()
    while len(times[0]) < rounds or sum(times[0]) < budget:
        for call, seconds in zip((ours, peer), times, strict=True):
            began = clock()
            call()
            seconds.append(clock() - began)
    return statistics.median(times[0]), statistics.median(times[1])


@contextmanager
def torch_threads(count: int = 1) -> Iterator[None]:
    """Torch has so many threads inside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def forget_peak() -> None:
    """Give back what is free, and begin the measurement of `peak_memory` here."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float:
    """The most bytes that this process has held, since `forget_peak` if that was called."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) * 1024


def measured_apart(module: str, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """What a module prints in a process of its own, whose memory and environment are then its own too.

    Raises:
        OperationalError: it fails.
    """
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, **(variables or {}), "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return done.stdout
