"""Two families of errors: bad evidence can lead to a rejection, a failed look never can (design law 5)."""

from __future__ import annotations

from enum import StrEnum


class PolError(Exception):
    """Base of every error that pol raises on purpose; its message says what to do."""


class ProtocolError(PolError):
    """The evidence is bad: wrong bytes, wrong shape, wrong proof, an illegal move."""


class Fault(StrEnum):
    """What is wrong with a task or a learning proof; for programs. Each one is a reason of a rejection."""

    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    MISSING_TENSOR = "missing-tensor"
    EXTRA_TENSOR = "extra-tensor"
    WRONG_DTYPE = "wrong-dtype"
    WRONG_SHAPE = "wrong-shape"
    WRONG_ROOT = "wrong-root"
    WRONG_START = "wrong-start"
    WRONG_DATA = "wrong-data"
    WRONG_ORDER = "wrong-order"
    WRONG_STEP = "wrong-step"
    WRONG_TASK = "wrong-task"
    MISSING_ENTRY = "missing-entry"
    BROKEN_LOG = "broken-log"


class EvidenceError(ProtocolError):
    """Bad evidence with a fault that a program can tell: raised where the evidence is read."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type[EvidenceError], tuple[Fault, str]]:
        return EvidenceError, (self.fault, str(self))


class OperationalError(PolError):
    """We could not look: a node is down, a disk is full. Yields INCONCLUSIVE and never slashes anyone."""


class UnsupportedError(PolError):
    """The user's program uses something that pol has no definition for."""
