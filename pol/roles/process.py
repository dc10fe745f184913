"""One party at work: looks at every task, does what is due, and says why it did it or left it alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pol.chain.wallet import Reverted
from pol.errors import OperationalError, PolError, ProtocolError
from pol.roles.deeds import Decision, Deed, Mode, Rest
from pol.roles.role import Role

R = TypeVar("R", bound=Role)
LONGEST_REST = 256
"""Turns for which a task that can't be worked on is left alone at most."""


class Result(StrEnum):
    """What came of a decision."""

    DONE = "done"
    WAITED = "waited"
    """There was nothing to do."""
    WITHHELD = "withheld"
    """The process runs in a mode in which it doesn't do this."""
    REFUSED = "refused"
    """The contract refused, or the evidence is bad: read again before anything else."""
    FAILED = "failed"
    """The node or the store failed: try again."""
    BROKEN = "broken"
    """This task can't be worked on: it has no definition here, or it met a fault of pol. Other tasks go on."""


@dataclass(frozen=True)
class Taken:
    """A decision and what came of it; ``at`` is the chain's time."""

    at: int
    task_id: bytes
    verb: str
    why: str
    result: Result
    detail: str = ""
    until: int | None = None
    """Of a wait: when there is something to do at the latest, if the chain says so."""


class Process(Generic[R]):
    """Runs one party.

    Args:
        role: the party; all that it needs to know it reads from the chain and the store.
        decide: what a party of its kind does next about a task.
        mode: how much it does on its own.
        note: is told every decision, also that nothing is done.
    """

    def __init__(
        self,
        role: R,
        decide: Callable[[R, bytes], Decision],
        mode: Mode = Mode.PROPOSE,
        note: Callable[[Taken], None] = lambda taken: None,
    ) -> None:
        self.role, self.mode = role, mode
        self._decide, self._note = decide, note
        self._done: set[bytes] = set()
        self._broken_times: dict[bytes, int] = {}
        self._rests: dict[bytes, int] = {}
        """Turns for which a task that broke is left alone."""

    def turn(self) -> list[Taken]:
        """Look at every open task once; what is due first is done first.

        A failure about one task doesn't keep the others waiting, whatever it is.

        Raises:
            OperationalError: the list of tasks can't be read.
        """
        decisions: list[Deed] = []
        taken: list[Taken] = []
        for task_id in self.tasks():
            if self._rests.get(task_id, 0) > 0:
                self._rests[task_id] -= 1
                continue
            try:
                with self.role.connection.looking(), self.role.about(task_id):
                    decision = self._decide(self.role, task_id)
            except OperationalError as error:
                taken.append(self._taken(Rest(task_id, "it couldn't look at the task"), Result.FAILED, str(error)))
                continue
            except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
                taken.append(self._broken(Rest(task_id, "it can't work on the task"), error))
                continue
            if isinstance(decision, Rest) and decision.final:
                self._done.add(task_id)
                self.role.release(task_id)
            if isinstance(decision, Deed):
                decisions.append(decision)
            else:
                taken.append(self._taken(decision, Result.WAITED))
        for deed in sorted(decisions, key=_urgency):
            taken.append(self._do(deed))
        return taken

    def tasks(self) -> Iterable[bytes]:
        """Ids of the tasks that may still ask something of this party, oldest first."""
        for event in self.role.market.registry.events("TaskSubmitted"):
            if bytes(event["taskId"]) not in self._done:
                yield bytes(event["taskId"])

    def _do(self, deed: Deed) -> Taken:
        if deed.mode > self.mode:
            return self._taken(deed, Result.WITHHELD, f"the process runs in mode {self.mode.name.lower()}")
        try:
            with self.role.about(deed.task_id):
                deed.act()
        except Reverted as error:
            return self._refused(deed, error)
        except ProtocolError as error:
            return self._taken(deed, Result.REFUSED, str(error))
        except OperationalError as error:
            return self._taken(deed, Result.FAILED, str(error))
        except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
            return self._broken(deed, error)
        return self._taken(deed, Result.DONE)

    def _broken(self, decision: Decision, error: Exception) -> Taken:
        """Put the task off: twice as many turns each time, so that what takes long isn't tried for nothing."""
        times = self._broken_times.get(decision.task_id, 0) + 1
        self._broken_times[decision.task_id] = times
        if not isinstance(decision, Deed) or decision.mode is Mode.PROPOSE:
            # What this party owes by now is tried in every turn.
            self._rests[decision.task_id] = min(2**times, LONGEST_REST)
        detail = str(error) if isinstance(error, PolError) else f"a fault of pol, please report it: {error!r}"
        if not isinstance(error, PolError):
            logging.getLogger(__name__).error("task %s", decision.task_id.hex(), exc_info=error)
        return self._taken(decision, Result.BROKEN, detail)

    def _refused(self, deed: Deed, error: Reverted) -> Taken:
        """What a refusal means: parties race for the calls that anybody may make, and all but one come second."""
        if deed.mode is Mode.RESOLVE:
            try:
                now = self._decide(self.role, deed.task_id)
            except PolError:
                return self._taken(deed, Result.REFUSED, str(error))
            if not isinstance(now, Deed) or (now.verb, now.why) != (deed.verb, deed.why):
                return self._taken(deed, Result.DONE, "somebody else was faster")
        return self._taken(deed, Result.REFUSED, str(error))

    def _taken(self, decision: Decision, result: Result, detail: str = "") -> Taken:
        verb = decision.verb if isinstance(decision, Deed) else "wait"
        until = None if isinstance(decision, Deed) else decision.until
        now = self.role.connection.now()
        made = Taken(now, decision.task_id, verb, decision.why, result, detail, until)
        self._note(made)
        return made


def _urgency(deed: Deed) -> tuple[bool, int]:
    return (deed.due is None, deed.due or 0)
