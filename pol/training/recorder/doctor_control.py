"""`pol doctor` controls a training in another process through environment variables of the recorder.

POL_DOCTOR_STORE   the store to record into, in place of the one in the program
POL_DOCTOR_STOP    after this step, once its checkpoint is stored, the program ends with code 0
POL_DOCTOR_KILL    after this step, once the checkpoints before are stored, the process is killed by SIGKILL
POL_DOCTOR_REPORT  a file that gets a line of JSON after each step: digests of unrecorded state

Of several processes (RANK and WORLD_SIZE, as torchrun sets them) each has a report of its own, with `.rank1` in its
name, and the store is a folder in that store: `rank1`, after the first process that records into it. Every step is
recorded, whatever the program says, but for those between which the loop draws no batch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from pol.errors import PolError, ProtocolError
from pol.training.recorder.unrecorded_state import unrecorded
from pol.training.state.trainer_state import TrainerState
from pol.training.storage.store import Store

Batch = TypeVar("Batch")
PREFIX = "POL_DOCTOR_"
PATIENCE = 60.0
"""Seconds that a process waits for others at the end of a rehearsal."""


@dataclass(frozen=True)
class Rehearsal:
    """The values of the variables. ``rank`` is that of this process among ``size``."""

    store: str
    stop: int | None = None
    kill: int | None = None
    report: Path | None = None
    rank: int = 0
    size: int = 1

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Rehearsal | None:
        """The rehearsal that an environment asks for, if any."""
        if f"{PREFIX}STORE" not in environ:
            return None
        numbers = {name: environ.get(f"{PREFIX}{name}", "") for name in ("STOP", "KILL")}
        if not all(value.isdecimal() or not value for value in numbers.values()):
            raise ProtocolError(f"{PREFIX}STORE is set, but not with step numbers as `pol doctor` sets them: unset it")
        stop, kill = (int(numbers[name]) if numbers[name] else None for name in ("STOP", "KILL"))
        report = environ.get(f"{PREFIX}REPORT")
        places = [environ.get(name, "") for name in ("RANK", "WORLD_SIZE")]
        rank, size = (int(place) for place in places) if all(place.isdecimal() for place in places) else (0, 1)
        return cls(environ[f"{PREFIX}STORE"], stop, kill, Path(report) if report else None, rank, size)

    def environment(self) -> dict[str, str]:
        """The variables of this rehearsal."""
        said = {"STORE": self.store, "STOP": self.stop, "KILL": self.kill, "REPORT": self.report}
        return {f"{PREFIX}{name}": str(value) for name, value in said.items() if value is not None}

    def report_of(self, rank: int) -> Path | None:
        """The report of a process."""
        if self.report is None or self.size == 1:
            return self.report
        return self.report.with_name(f"{self.report.stem}.rank{rank}{self.report.suffix}")

    def store_of(self, first: int | None = None) -> str:
        """The store of a recorder of several processes that begin with ``first``, or of this process alone."""
        return self.store if self.size == 1 else f"{self.store}/rank{self.rank if first is None else first}"

    def begin(self) -> None:
        """Report that this process records."""
        self._note({"size": self.size})

    def note_parted(self, step: int, names: Sequence[str]) -> None:
        """Report arrays of which this process holds another replica than the first one."""
        if names:
            self._note({"at": step, "parted": list(names)})

    def note(self, step: int, state: TrainerState, goes_on: Mapping[FrameType, int | None]) -> None:
        """Report the digests of unrecorded state; ``goes_on`` as in `unrecorded`."""
        if self.report is not None:
            self._note({"step": step, "beside": unrecorded(state, goes_on)})

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report an error on its way out: a launcher's own messages would bury it."""
        try:
            yield
        except PolError as error:
            self._note({"failed": str(error)})
            raise

    def reported(self, drawn: Iterator[Batch]) -> Iterator[Batch]:
        """The batches, whose errors are reported."""
        with self.reporting():
            yield from drawn

    def is_over(self, step: int) -> bool:
        """Whether the program ends after this step; one that is killed leaves the step's checkpoint due."""
        return step in (self.stop, self.kill)

    def end(self, step: int) -> NoReturn:
        """End the program as asked, once the other processes have come so far."""
        deadline = time.monotonic() + PATIENCE
        others = [report for rank in range(self.size) if (report := self.report_of(rank)) is not None]
        while self.size > 1 and time.monotonic() < deadline and not all(_has_come(other, step) for other in others):
            time.sleep(0.02)
        if step == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.size > 1:
            # Threads of a process group that nobody has destroyed may abort an interpreter that ends.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        raise SystemExit(0)

    def _note(self, line: Mapping[str, object]) -> None:
        report = self.report_of(self.rank)
        if report is not None:
            with report.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def _has_come(report: Path, step: int) -> bool:
    return report.exists() and f'{{"step": {step}, ' in report.read_text(encoding="utf-8")


def store_of(store: Store | str, first: int | None = None) -> Store:
    """The store of a training: the given one, or that of a rehearsal; ``first`` as in `Rehearsal.store_of`."""
    rehearsal = Rehearsal.of(os.environ)
    if rehearsal is not None:
        return Store(rehearsal.store_of(first))
    return store if isinstance(store, Store) else Store(store)
