"""The free memory of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process can still take here, within the limits of its control groups; None where Linux isn't.

    ``root`` is where ``proc`` and ``sys`` lie.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    for group, limit, used in _groups(root):
        try:
            most, taken = (int((group / name).read_text()) for name in (limit, used))
            stat = (group / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            continue  # without a limit there is no file, or no number in it
        # Files that the kernel drops when memory gets short count as taken.
        cache = next((int(line.split()[1]) for line in stat if line.split()[0].endswith("inactive_file")), 0)
        free = min(free, most - taken + cache)
    return max(free, 0)


def _groups(root: Path) -> Iterator[tuple[Path, str, str]]:
    """The folders of this process's control groups and of those around them, with the names of limit and use."""
    own = dict[str, str]()
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        own = {kind: path for _, kinds, path in (line.split(":", 2) for line in lines) for kind in kinds.split(",")}
    # Version 2, then version 1. In a container the own group is at the top.
    for kind, limit, used in (
        ("", "memory.max", "memory.current"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        parts = own.get(kind, "").strip("/").split("/")
        for depth in range(len(parts) + 1):
            yield root.joinpath("sys/fs/cgroup", kind, *parts[:depth]), limit, used
