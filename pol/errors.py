"""Two families of errors: bad evidence can lead to a rejection, a failed look never can (design law 5)."""

from __future__ import annotations

import errno
import os
import ssl
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


_ADVICE = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "name a folder, or a file in one",
    errno.EISDIR: "name a file",
    errno.EEXIST: "name another place",
    errno.EACCES: "ask its owner for access, or run as a user who has it",
    errno.EPERM: "ask its owner for access, or run as a user who has it",
    errno.EROFS: "write elsewhere",
    errno.ENOSPC: "make room, or write elsewhere",
    errno.EDQUOT: "make room, or write elsewhere",
    errno.EFBIG: "raise the limit on sizes of files (ulimit -f), or write elsewhere",
    errno.EIO: "look at the disk, or use another one",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ELOOP: "name a path without a circle of links",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.EADDRINUSE: "choose another port, or end what listens there",
    errno.EADDRNOTAVAIL: "name an address of this machine",
    errno.ECONNREFUSED: "is the server running, and is the address right?",
    errno.ECONNRESET: "try again later",
    errno.ETIMEDOUT: "try again later",
    errno.EHOSTUNREACH: "is this machine on the network, and is the address right?",
    errno.ENETUNREACH: "is this machine on the network, and is the address right?",
}
"""By number of an error of the operating system: what to do about it."""


def has_advice(error: OSError) -> bool:
    """Whether it is known what to do about an error of the operating system."""
    return error.errno in _ADVICE


def reason_of(error: BaseException) -> str:
    """Why a file, a store or an address can't be used, then what to do: the end of an OperationalError's message."""
    if isinstance(error, FileNotFoundError):
        return f"it isn't there: {_ADVICE[errno.ENOENT]}"
    # An error of TLS has numbers of its own, which mean something else to the operating system.
    of_tls = any(isinstance(e, ssl.SSLError) for e in (error, error.__cause__, getattr(error, "os_error", None)))
    if isinstance(error, OSError) and error.errno in _ADVICE and not of_tls:
        return f"{os.strerror(error.errno)}: {_ADVICE[error.errno]}"
    # Some say nothing, such as one about memory; some several lines.
    said = " ".join(str(error).split()) or type(error).__name__
    # Libraries of HTTP and S3 give no number.
    return f"{said}: {_ADVICE[errno.ECONNREFUSED]}" if "connect to" in said else said
