"""Decisions of a party about a task: an action with its reason, or a wait with its reason.

Decisions are functions of the chain alone, so a restarted process decides as the killed one would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class Mode(IntEnum):
    """How much a process does on its own; each mode includes those before it."""

    WATCH = 1
    """Look and explain; send nothing."""
    DEFEND = 2
    """Do what protects this party's money at stake."""
    RESOLVE = 3
    """Make public calls that this party waits for."""
    PROPOSE = 4
    """Put up new stakes: bids, seats, challenges."""


@dataclass(frozen=True)
class Action:
    """An action that is due now."""

    task_id: bytes
    verb: str
    why: str
    mode: Mode
    """The least mode in which a process acts."""
    act: Callable[[], object]
    due: int | None = None
    """The last second in which the chain accepts it; None if unlimited."""
    at_stake: int = 0
    """What is lost without it, as far as that is known; units of the vault's asset."""
    view: tuple[str, ...] = ()
    """What was read of the chain to decide it."""

    @property
    def is_owed(self) -> bool:
        """Whether something of this party waits for it: it is neither a mere look nor a new stake."""
        return self.mode in {Mode.DEFEND, Mode.RESOLVE}


@dataclass(frozen=True)
class Wait:
    """No action about a task for now."""

    task_id: bytes
    why: str
    until: int | None = None
    """After this second an action may be due; None: only after somebody else moves."""

    final: bool = False
    """The task will never concern this party again."""

    mend: str = ""
    """The command that gives this party what it lacks."""


Decision = Action | Wait


def lacks(task_id: bytes, why: str, mend: str, until: int | None = None) -> Wait:
    """The wait of a party that lacks something, with the command that mends it."""
    return Wait(task_id, f"{why}: `{mend}` mends it", until, mend=mend)
