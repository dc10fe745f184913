"""`pol doctor` controls a training in another process through environment variables of the recorder.

POL_DOCTOR_STORE   the store to record into, in place of the one in the program
POL_DOCTOR_EVERY   steps between checkpoints, in place of the number in the program
POL_DOCTOR_STOP    after this step, once all due checkpoints are stored, the program ends with SystemExit(0)
POL_DOCTOR_KILL    after this step, once all due checkpoints are stored, the process is killed by SIGKILL
POL_DOCTOR_REPORT  a file that gets a line of JSON after each step: digests of unrecorded state
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pol.errors import ProtocolError, UnsupportedError
from pol.training.recorder.unrecorded_state import unrecorded
from pol.training.state import components
from pol.training.state.trainer_state import TrainerState
from pol.training.storage.commitment import compare
from pol.training.storage.store import Store

PREFIX = "POL_DOCTOR_"
_BEGUN_LATER = frozenset({"random", "cursor", "environment"})


@dataclass(frozen=True)
class Rehearsal:
    """The values of the variables."""

    store: str
    every: int
    stop: int | None = None
    kill: int | None = None
    report: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Rehearsal | None:
        """The rehearsal that an environment asks for, if any.

        Raises:
            ProtocolError: a variable is missing or not a number.
        """
        if f"{PREFIX}STORE" not in environ:
            return None
        numbers = {name: environ.get(f"{PREFIX}{name}", "") for name in ("EVERY", "STOP", "KILL")}
        if not all(value.isdecimal() or (not value and name != "EVERY") for name, value in numbers.items()):
            raise ProtocolError(f"{PREFIX}STORE is set, but not with step numbers as `pol doctor` sets them: unset it")
        stop, kill = (int(numbers[name]) if numbers[name] else None for name in ("STOP", "KILL"))
        # Only one of several processes reports, so that lines don't mix.
        report = environ.get(f"{PREFIX}REPORT") if environ.get("RANK", "0") == "0" else None
        return cls(environ[f"{PREFIX}STORE"], int(numbers["EVERY"]), stop, kill, Path(report) if report else None)

    def environment(self) -> dict[str, str]:
        """The variables of this rehearsal."""
        said = {"STORE": self.store, "EVERY": self.every, "STOP": self.stop, "KILL": self.kill, "REPORT": self.report}
        return {f"{PREFIX}{name}": str(value) for name, value in said.items() if value is not None}

    def note_restored(self, loaded: Mapping[str, object], now: Mapping[str, object]) -> None:
        """Report state that differs from the checkpoint right after it has been loaded.

        Generators and the cursor are restored with the first batch, and the environment isn't loaded.
        """
        if self.report is None:
            return
        states = [{n: value for n, value in found.items() if n not in _BEGUN_LATER} for found in (loaded, now)]
        try:
            lost = [m.name for m in compare(*(components.encode(found).entries for found in states))]
        except UnsupportedError:  # spread over several processes: the following steps are compared anyway
            return
        with self.report.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"lost": lost}) + "\n")

    def note(self, step: int, state: TrainerState) -> None:
        """Report the digests of unrecorded state."""
        if self.report is not None:
            with self.report.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "beside": unrecorded(state)}) + "\n")

    def is_over(self, step: int) -> bool:
        """Whether the program ends after this step."""
        return step in (self.stop, self.kill)

    def end(self, step: int) -> NoReturn:
        """End the program as asked; all due checkpoints are stored."""
        if step == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(0)


def store_of(store: Store | str) -> Store:
    """The store of a training: the given one, or that of a rehearsal.

    Raises:
        OperationalError: there is no such store.
    """
    rehearsal = Rehearsal.of(os.environ)
    if rehearsal is not None:
        return Store(rehearsal.store)
    return store if isinstance(store, Store) else Store(store)
