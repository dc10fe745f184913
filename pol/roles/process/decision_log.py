"""The decision log of a process, for people. No decision depends on it, and it may be deleted at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from pol.errors import OperationalError
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.training.storage.party_database import PartyDatabase

LOG = logging.getLogger(__name__)
_TABLE = """decisions (
    at INTEGER NOT NULL, task BLOB NOT NULL, verb TEXT NOT NULL, why TEXT NOT NULL,
    result TEXT NOT NULL, detail TEXT NOT NULL, until INTEGER, view TEXT NOT NULL)"""


class DecisionLog:
    """The table ``decisions`` of a party. A decision repeated for the same reason is written once.

    What can't be written is lost; ``tell`` gets a message, and the process goes on.
    """

    def __init__(self, database: PartyDatabase, tell: Callable[[str], None] = LOG.error) -> None:
        self._database, self._tell, self._fails = database, tell, False
        database.create(_TABLE)
        self._last = {taken.task_id: _kind(taken) for taken in self.decisions()}

    def note(self, taken: LoggedDecision) -> bool:
        """Write a decision. Returns whether it differs from the last one about the task."""
        if self._last.get(taken.task_id) == _kind(taken):
            return False
        self._last[taken.task_id] = _kind(taken)
        row = (taken.at, taken.task_id, taken.verb, taken.why, taken.result, taken.detail, taken.until)
        view = "\n".join(taken.view)
        try:
            self._database.write(("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, view)), flush=False)
            self._fails = False
        except OperationalError as error:
            if not self._fails:
                self._tell(f"{error}; until then decisions aren't kept")
            self._fails = True
        return True

    def decisions(self, task_id: bytes | None = None) -> list[LoggedDecision]:
        """All decisions, or those about a task, oldest first."""
        rows = self._database.rows("SELECT * FROM decisions WHERE ?1 IS NULL OR task = ?1 ORDER BY rowid", task_id)
        return [
            LoggedDecision(at, task, verb, why, DecisionResult(result), detail, until, view=tuple(view.splitlines()))
            for at, task, verb, why, result, detail, until, view in rows
        ]


def _kind(taken: LoggedDecision) -> LoggedDecision:
    """A decision but for its times and for what it had read."""
    return replace(taken, at=0, until=None, mend="", view=())
