"""One party at work: looks at every task, does what is due, and says why it did it or left it alone."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pol.chain.account.wallet import Reverted
from pol.errors import OperationalError, PolError, ProtocolError
from pol.roles.party.decisions import Decision, Deed, Mode, Rest
from pol.roles.party.role import Role
from pol.roles.process.finality import settled
from pol.roles.process.stakes import at_stake
from pol.training.storage.store import CorruptObjectError

R = TypeVar("R", bound=Role)
LONGEST_WAIT, LONGEST_REST = 300.0, 3600.0
"""Seconds for which a task is left alone at most that couldn't be looked at, and one that can't be worked on."""
FAILURES = (OperationalError, CorruptObjectError)
"""The node or the store failed: wrong bytes are the store's fault, and the right ones may come later."""


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
        poll: seconds after which a task that went wrong is looked at again; longer each time if nothing is at stake.
        clock: seconds that pass, also while the chain stands still.
    """

    def __init__(
        self,
        role: R,
        decide: Callable[[R, bytes], Decision],
        mode: Mode = Mode.PROPOSE,
        note: Callable[[Taken], None] = lambda taken: None,
        poll: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.role, self.mode, self.poll = role, mode, poll
        self._decide, self._note, self._clock = decide, note, clock
        self._done: set[bytes] = set()
        self._troubles: dict[bytes, int] = {}
        """How often in a row something went wrong with a task."""
        self._rests: dict[bytes, tuple[float, int]] = {}
        """Until when a task that went wrong is left alone, by the clock, and how far it had come by then."""
        self._due: dict[bytes, float] = {}
        """When there is something to do about a task as far as is known, by the clock."""

    def turn(self) -> list[Taken]:
        """Look at every open task once; what is due first is done first.

        A failure about one task doesn't keep the others waiting, whatever it is.

        Raises:
            OperationalError: the list of tasks can't be read.
        """
        decisions: list[Deed] = []
        taken: list[Taken] = []
        listed = list(self.tasks())
        for known in (self._due, self._troubles, self._rests):
            for task_id in set(known) - set(listed):
                known.pop(task_id)
        resting, ended = self._resting(), list[bytes]()
        for task_id in listed:
            if task_id in resting:
                continue
            try:
                with self.role.connection.cached(), self.role.about(task_id):
                    decision = self._decide(self.role, task_id)
            except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
                taken.append(self._trouble(Rest(task_id, "it couldn't look at the task"), error))
                continue
            if isinstance(decision, Deed):
                decisions.append(decision)
                continue
            self._troubles.pop(task_id, None)
            taken.append(self._taken(decision, Result.WAITED))
            if decision.final:
                ended.append(task_id)
        self._end(ended)
        for deed in sorted(decisions, key=_urgency):
            taken.append(self._do(deed))
        return taken

    def left(self) -> list[float]:
        """Seconds until there is something to do, for each task of which that is known; below zero if it waits."""
        now = self._clock()
        return [due - now for due in self._due.values()]

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
                unkept = self.role.unkept()
        except Reverted as error:
            return self._refused(deed, error)
        except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
            if isinstance(error, ProtocolError) and not isinstance(error, FAILURES):
                return self._taken(deed, Result.REFUSED, str(error))
            return self._trouble(deed, error)
        self._troubles.pop(deed.task_id, None)
        return self._taken(deed, Result.DONE, unkept)

    def _end(self, task_ids: list[bytes]) -> None:
        """Let go of tasks that are over: for good only when no replaced block can bring them back."""
        for task_id in task_ids:
            self.role.forget(task_id)
        try:
            stays = settled(self.role, task_ids)
        except OperationalError:
            return
        for task_id in stays:
            self._done.add(task_id)
            self.role.release(task_id)

    def _trouble(self, decision: Decision, error: Exception) -> Taken:
        """Say what went wrong, and put the task off unless this party owes something about it."""
        failed = isinstance(error, FAILURES)
        if not isinstance(decision, Deed) or decision.mode is Mode.PROPOSE:
            self._put_off(decision.task_id, LONGEST_WAIT if failed else LONGEST_REST)
        if not isinstance(error, PolError):
            logging.getLogger(__name__).error("task %s", decision.task_id.hex(), exc_info=error)
        detail = str(error) if isinstance(error, PolError) else f"a fault of pol, please report it: {error!r}"
        return self._taken(decision, Result.FAILED if failed else Result.BROKEN, detail)

    def _resting(self) -> set[bytes]:
        """Tasks that are left alone for now; what goes on is looked at, it may be another matter."""
        if not self._rests:
            return set()
        came, now = self._progress(), self._clock()
        return {task_id for task_id, (until, at) in self._rests.items() if until > now and at == came[task_id]}

    def _progress(self) -> Counter[bytes]:
        return Counter(bytes(event["taskId"]) for event in self.role.market.registry.events("Advanced"))

    def _put_off(self, task_id: bytes, longest: float) -> None:
        """Twice as long each time, so that what takes long isn't tried for nothing; never past what is known to come.

        What this party has at stake is looked at in every turn: nothing that others serve may keep it from its duty.
        """
        try:
            if at_stake(self.role, task_id):
                return
            came = self._progress()[task_id]
        except PolError:
            return
        times, now = self._troubles.get(task_id, 0) + 1, self._clock()
        known = max(self.poll, self._due.get(task_id, now + longest) - now)
        rest = min(self.poll * 2.0 ** min(times, 30), longest, known)
        self._troubles[task_id], self._rests[task_id] = times, (now + rest, came)

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
        if isinstance(decision, Deed) and decision.mode < Mode.PROPOSE and result not in {Result.DONE, Result.WITHHELD}:
            self._due[decision.task_id] = self._clock()
        elif until is not None and until > now:
            self._due[decision.task_id] = self._clock() + until + 1 - now
        elif result not in {Result.FAILED, Result.BROKEN}:
            self._due.pop(decision.task_id, None)
        self._note(made)
        return made


def _urgency(deed: Deed) -> tuple[bool, int]:
    return (deed.due is None, deed.due or 0)
