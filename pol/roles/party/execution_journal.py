"""A party's executions on its own disk: a process that is started again executes the disputed step, not the segment.

A disk that fails costs time and no dispute: all of it can be computed again.
"""

from __future__ import annotations

import logging
import re
import shutil
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.graph.tensor_type import TensorType
from pol.training.storage.atomic_files import LocalWriter

FOLDER, HASH = "executions", 32
HELD = 2
"""States of a segment on the disk: as many disputes about it as go on without computing a state again."""
SPARE = 1 << 28
"""Bytes of the disk that no state takes: whoever disputes many segments mustn't fill it."""
LOG = logging.getLogger(__name__)
_LINE = re.compile(r"(\d{1,20}) ([0-9a-f]{64}) ([0-9a-f]{8})\n")
_STATE = re.compile(r"state\.(\d{1,20})")


class ExecutionJournal:
    """The journal of one segment's execution from ``start``, the root of a state: another solver may begin elsewhere.

    It is a `pol.dispute.play.segment_states.Journal`.

    ``roots`` has a line with a checksum for each state, appended as it is hashed. A held state is one file, written
    whole or not at all, and checked against its root by the reader. The roots of a step's outputs are a file with
    their digest.
    """

    def __init__(self, evidence: Path, task_id: bytes, segment: int, start: bytes) -> None:
        self._folder = evidence / FOLDER / task_id.hex() / f"{segment}-{start.hex()}"

    def roots(self) -> Mapping[int, bytes]:
        """The noted roots, by step; a line that a kill has cut, or the disk has changed, is passed over."""
        lines: Sequence[str] = ()
        with _unless_the_disk_fails():
            lines = (self._folder / "roots").read_text(errors="replace").splitlines(keepends=True)
        found = (match for line in lines if (match := _LINE.fullmatch(line)))
        return {int(m[1]): bytes.fromhex(m[2]) for m in found if m[0] == _line(int(m[1]), bytes.fromhex(m[2]))}

    def note(self, step: int, root: bytes) -> None:
        """Note the root of the state before ``step``."""
        with _unless_the_disk_fails():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self._folder / "roots").open("a") as file:
                # On a line of its own, even after one that was cut.
                file.write(f"\n{_line(step, root)}")

    def row(self, step: int) -> list[bytes] | None:
        """The noted roots of the outputs of ``step``; None if there are none, or the disk has changed them."""
        with _unless_the_disk_fails():
            data = self._row(step).read_bytes()
            if data[:HASH] == keccak256(data[HASH:]):
                return [data[first : first + HASH] for first in range(HASH, len(data), HASH)]
        return None

    def note_row(self, step: int, roots: Sequence[bytes]) -> None:
        """Note the roots of the outputs of ``step``."""
        with _unless_the_disk_fails():
            joined = b"".join(roots)
            LocalWriter().write(str(self._row(step)), [keccak256(joined), joined])

    def held(self) -> Collection[int]:
        """The steps whose states are held."""
        return [int(match[1]) for path in self._states() if (match := _STATE.fullmatch(path.name))]

    def state(self, step: int, types: Sequence[TensorType]) -> list[Words] | None:
        """The held state before ``step``; None if it can't be read. Its root is still to be checked."""
        with _unless_the_disk_fails(), self._file(step).open("rb") as file:
            tensors = [np.fromfile(file, np.dtype("<u4"), type_.numel) for type_ in types]
            if all(words.size == type_.numel for words, type_ in zip(tensors, types, strict=True)):
                return [words.reshape(type_.shape) for words, type_ in zip(tensors, types, strict=True)]
        return None

    def hold(self, step: int, state: Sequence[Words]) -> None:
        """Hold this state; the oldest is removed if there are too many. The disk keeps room for another one."""
        with _unless_the_disk_fails():
            LocalWriter().clean(str(self._folder))
            held = sorted(self._states(), key=lambda path: path.stat().st_mtime)
            for path in held[: max(0, len(held) - HELD + 1)]:
                path.unlink()
            free = shutil.disk_usage(self._folder).free
            if free < 2 * sum(words.nbytes for words in state) + SPARE:
                raise OperationalError(f"only {free} bytes are free in {self._folder}")
            pieces = (np.ascontiguousarray(words, np.dtype("<u4")).reshape(-1).view(np.uint8).data for words in state)
            LocalWriter().write(str(self._file(step)), pieces)

    def _states(self) -> list[Path]:
        found = list[Path]()
        with _unless_the_disk_fails():
            found.extend(self._folder.glob("state.*"))
        return found

    def _row(self, step: int) -> Path:
        return self._folder / f"row.{step}"

    def _file(self, step: int) -> Path:
        return self._folder / f"state.{step}"


def forget_executions(evidence: Path, task_id: bytes) -> None:
    """Remove the journals of a task."""
    shutil.rmtree(evidence / FOLDER / task_id.hex(), ignore_errors=True)


def _line(step: int, root: bytes) -> str:
    told = f"{step} {root.hex()}"
    return f"{told} {zlib.crc32(told.encode()):08x}\n"


@contextmanager
def _unless_the_disk_fails() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass  # nothing was noted, or another process has just removed it
    except (OperationalError, OSError) as error:
        LOG.warning("%s: an execution isn't noted on the disk, and takes longer after a restart", error)
