"""The free memory of this machine."""

from __future__ import annotations

from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process can still take here, within the limit of its control group; None where Linux isn't.

    ``root`` is where ``proc`` and ``sys`` lie.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    # Version 2 of control groups, then version 1. Without a limit there is no file, or no number in it.
    for folder, limit, used in (
        ("sys/fs/cgroup", "memory.max", "memory.current"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most, taken = (int((root / folder / name).read_text()) for name in (limit, used))
            stat = (root / folder / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            continue
        # Files that the kernel drops when memory gets short count as taken.
        cache = next((int(line.split()[1]) for line in stat if line.split()[0].endswith("inactive_file")), 0)
        free = min(free, most - taken + cache)
    return max(free, 0)
