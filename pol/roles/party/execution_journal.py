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
from pol.errors import OperationalError
from pol.graph.tensor_type import TensorType
from pol.training.storage.atomic_files import LocalWriter
from pol.training.storage.party_database import PartyDatabase

FOLDER, HASH = "executions", 32
HELD = 2
"""States of a segment on the disk: as many disputes about it as go on without computing a state again."""
SPARE = 1 << 28
"""Bytes of the disk that no state takes: whoever disputes many segments mustn't fill it."""
LOG = logging.getLogger(__name__)
_STATE = re.compile(r"state\.(\d{1,20})")
_TABLE = """executions (task BLOB, segment INTEGER, start BLOB, what TEXT, step INTEGER, roots BLOB, checksum INTEGER,
    PRIMARY KEY (task, segment, start, what, step)) WITHOUT ROWID"""
_FIND = """SELECT step, roots, checksum FROM executions
    WHERE (task, segment, start, what) = (?, ?, ?, ?) AND step BETWEEN ? AND ?"""
STATES, OUTPUTS = "states", "outputs"


class ExecutionJournal:
    """The journal of one segment's execution from ``start``, the root of a state: another solver may begin elsewhere.

    It is a `pol.dispute.play.segment_states.Journal`. The table ``executions`` has the root of each state, written as
    it is hashed, and the roots of outputs of steps. A held state is one file, written whole or not at all, and checked
    against its root by the reader.
    """

    def __init__(self, database: PartyDatabase, task_id: bytes, segment: int, start: bytes) -> None:
        self._database, self._about = database, (task_id, segment, start)
        self._folder = database.folder / FOLDER / task_id.hex() / f"{segment}-{start.hex()}"
        with _unless_the_disk_fails():
            database.create(_TABLE)

    def roots(self) -> Mapping[int, bytes]:
        """The noted roots, by step."""
        return self._noted(STATES, 0, 1 << 62)

    def note(self, step: int, root: bytes) -> None:
        """Note the root of the state before ``step``."""
        self._note(STATES, step, root)

    def row(self, step: int) -> list[bytes] | None:
        """The noted roots of the outputs of ``step``; None if there are none."""
        joined = self._noted(OUTPUTS, step, step).get(step)
        return None if joined is None else [joined[at : at + HASH] for at in range(0, len(joined), HASH)]

    def note_row(self, step: int, roots: Sequence[bytes]) -> None:
        """Note the roots of the outputs of ``step``."""
        self._note(OUTPUTS, step, b"".join(roots))

    def _noted(self, what: str, first: int, last: int) -> dict[int, bytes]:
        found = list[tuple[int, bytes, int]]()
        with _unless_the_disk_fails():
            found += self._database.rows(_FIND, *self._about, what, first, last)
        return {step: roots for step, roots, checksum in found if checksum == self._checksum(what, step, roots)}

    def _note(self, what: str, step: int, roots: bytes) -> None:
        row = (*self._about, what, step, roots, self._checksum(what, step, roots))
        with _unless_the_disk_fails():
            self._database.write(("INSERT OR REPLACE INTO executions VALUES (?, ?, ?, ?, ?, ?, ?)", row), flush=False)

    def _checksum(self, *row: object) -> int:
        """A bit that the disk has changed would lose a dispute, and SQLite doesn't notice it."""
        return zlib.crc32(repr((self._about, row)).encode())

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
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def _file(self, step: int) -> Path:
        return self._folder / f"state.{step}"


def forget_executions(database: PartyDatabase, task_id: bytes) -> None:
    """Remove the journals of a task."""
    with _unless_the_disk_fails():
        database.create(_TABLE)
        database.write(("DELETE FROM executions WHERE task = ?", (task_id,)), flush=False)
    shutil.rmtree(database.folder / FOLDER / task_id.hex(), ignore_errors=True)


@contextmanager
def _unless_the_disk_fails() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass  # nothing was noted, or another process has just removed it
    except (OperationalError, OSError) as error:
        LOG.warning("%s: an execution isn't noted on the disk, and takes longer after a restart", error)
