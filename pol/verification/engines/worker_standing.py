"""What a verifier knows of each admitted worker: whether it is there, what it answered, why it gets no more jobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pol.verification.engines.replay_queue import Beat

MISSED_BEATS = 4
SLOWEST = 60.0
"""Seconds between signs of life that are believed at most."""


class WorkerFault(StrEnum):
    """Why a key gets no more jobs of a verification."""

    LIED = "lied"
    REFUSED = "refused"
    SILENT = "silent"


@dataclass
class WorkerStanding:
    """The standing of one key in one verification.

    ``fault`` is LIED if an answer isn't that of a replay, REFUSED if something else than a result of the job lay in its
    place, SILENT if the worker was there and didn't answer in time.
    """

    key: bytes
    answers: int = 0
    fault: WorkerFault | None = None
    detail: str = ""
    evidence: str = ""
    """Of one that lied: the digest of the signed result, which lies in the queue unsealed."""
    beat: Beat | None = None
    changed: float | None = None
    """The time at which the sign of life was seen to change; None: it never did."""
    was_present: bool = False
    """At the last look."""

    def look(self, beat: Beat | None, now: float) -> bool:
        """Take note of the last sign of life in the queue; whether the worker has come since the look before.

        An old sign may be that of a worker that is long gone.
        """
        if self.beat is not None and beat is not None and beat != self.beat:
            self.changed = now
        self.beat = beat
        was, self.was_present = self.was_present, self.is_present(now)
        return self.was_present and not was

    def is_present(self, now: float) -> bool:
        """Whether there was a new sign of life lately."""
        if self.changed is None or self.beat is None:
            return False
        return now - self.changed <= MISSED_BEATS * min(self.beat.milliseconds / 1000, SLOWEST)

    def blame(self, fault: WorkerFault, detail: str) -> None:
        """The key gets no more jobs, and its answers count no more."""
        self.fault, self.detail = fault, detail
