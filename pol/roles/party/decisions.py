"""What a party does next about a task, and why; or why it does nothing.

Decisions are functions of the chain alone: a process that starts anew decides as the one that was killed would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class Mode(IntEnum):
    """How much a process does on its own; each does what those before it do."""

    WATCH = 1
    """Look and explain; send nothing."""
    DEFEND = 2
    """Do what this party's money at stake asks for."""
    RESOLVE = 3
    """Make the calls that anybody may make, where this party waits for them."""
    PROPOSE = 4
    """Put up new stakes: bids, seats, challenges."""


@dataclass(frozen=True)
class Deed:
    """Something to do now."""

    task_id: bytes
    verb: str
    why: str
    mode: Mode
    """The least in which a process does it."""
    act: Callable[[], object]
    due: int | None = None
    """The last second in which the chain takes it, if it names one."""


@dataclass(frozen=True)
class Rest:
    """Nothing to do about a task for now."""

    task_id: bytes
    why: str
    until: int | None = None
    """From the second after this one on there may be something, if nobody else moves before; None: only then."""

    final: bool = False
    """This party will never have anything to do with the task again."""


Decision = Deed | Rest
