"""True replay roots behind forced errors, kept until disclosure: a replay may take longer than its window.

Only the root is kept: the rest of the claim is on chain. It lies in the party's own folder, beside the evidence, and is
flushed before the verdict is sent.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pol.training.storage.atomic_files import LocalWriter

HASH_BYTES = 32


class SealedRoots:
    """Roots by task and seating; without a folder they are lost with the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[tuple[bytes, int], bytes] = {}

    def keep(self, task_id: bytes, seating: int, root: bytes) -> None:
        """Keep a root, before the verdict that hides it is sent.

        A failing disk holds no verdict back: a root that isn't kept is replayed.
        """
        self._known[task_id, seating] = root
        if self._folder is not None:
            with suppress(OSError):
                LocalWriter().write(str(self._path(self._folder, task_id, seating)), [root])

    def root(self, task_id: bytes, seating: int) -> bytes | None:
        """The kept root, if any. The seal on chain tells whether the disk has damaged it."""
        if (task_id, seating) not in self._known and self._folder is not None:
            with suppress(OSError):
                kept = self._path(self._folder, task_id, seating).read_bytes()
                if len(kept) == HASH_BYTES:
                    self._known[task_id, seating] = kept
        return self._known.get((task_id, seating))

    def forget(self, task_id: bytes) -> None:
        """Drop all roots of a task."""
        for key in [key for key in self._known if key[0] == task_id]:
            del self._known[key]
        if self._folder is not None:
            with suppress(OSError):
                for path in self._folder.glob(f"{task_id.hex()}-*"):
                    path.unlink()

    @staticmethod
    def _path(folder: Path, task_id: bytes, seating: int) -> Path:
        return folder / f"{task_id.hex()}-{seating}"
