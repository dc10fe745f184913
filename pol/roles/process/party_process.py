"""One party at work: it looks at every task, does what is due, and reports each decision with its reason."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Generic, TypeVar

from pol.chain.account.wallet import Reverted
from pol.chain.contract.binding import view_lines
from pol.errors import OperationalError, PolError, ProtocolError
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.dispute_session import asked_tasks, open_disputes
from pol.roles.party.party import Party
from pol.roles.party.role import Role
from pol.roles.process.obligations import at_stake, final_tasks, reading_seconds
from pol.roles.process.schedule import in_order
from pol.training.storage.http_files import within
from pol.training.storage.store import CorruptObjectError

OLD_LOOK = 1.0
"""Seconds of looks at tasks after which the next one asks for the latest block again."""

P = TypeVar("P", bound=Party)
R = TypeVar("R", bound=Role)
LONGEST_WAIT, LONGEST_REST = 300.0, 3600.0
"""Most seconds for which a task is put off: after a failure to look at it, and after a failure to work on it."""
FAILURES = (OperationalError, CorruptObjectError)
"""The node or the store failed. Wrong bytes are the store's fault, and the right ones may come later."""


class DecisionResult(StrEnum):
    """The result of a decision."""

    DONE = "done"
    WAITED = "waited"
    """No action was due."""
    WITHHELD = "withheld"
    """The process runs in a mode that excludes the action."""
    REFUSED = "refused"
    """The contract refused, or the evidence is bad: decide again."""
    FAILED = "failed"
    """The node or the store failed: try again."""
    BROKEN = "broken"
    """This task can't be worked on: it isn't supported here, or it met a fault of pol. Other tasks go on."""


@dataclass(frozen=True)
class LoggedDecision:
    """A decision and its result; ``at`` is the chain's time."""

    at: int
    task_id: bytes
    verb: str
    why: str
    result: DecisionResult
    detail: str = ""
    until: int | None = None
    """End of a wait, if the chain gives one."""
    mend: str = ""
    """The command that gives this party what it lacks."""
    view: tuple[str, ...] = ()
    """What was read of the chain to decide an action."""


@dataclass
class TaskWork:
    """What a process remembers of its work on one task; times are of its clock."""

    looked: int = 0
    """The number of the last look at it."""
    due: float | None = None
    """When an action is known to be due."""
    failed: bool = False
    """Whether its last action has failed."""
    failures: int = 0
    """In a row."""
    rests_until: float = -inf
    rested_at: int = 0
    """Its progress when it was put off."""


class PartyProcess(ABC, Generic[P]):
    """Runs one party; a subclass says which tasks there are, and what is at stake in them.

    Args:
        role: the party.
        decide: decides the next action or wait of the party about a task.
        mode: how much the process does on its own.
        note: receives every decision, waits included.
        poll: seconds for which a turn looks at what isn't urgent, and again for which it acts; seconds until a failed
            task is tried again, longer each time if nothing is at stake. With 0 a turn looks at everything.
        clock: monotonic seconds, independent of the chain.
    """

    def __init__(
        self,
        role: P,
        decide: Callable[[P, bytes], Decision],
        mode: Mode = Mode.PROPOSE,
        note: Callable[[LoggedDecision], None] = lambda taken: None,
        poll: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.role, self.mode, self.poll = role, mode, poll
        role.mode = mode
        self._decide, self._note, self._clock = decide, note, clock
        self._done: set[bytes] = set()
        self._work = defaultdict[bytes, TaskWork](TaskWork)
        self._looks = 0
        self._seconds: dict[str, float] = {}
        """By verb: how long the last such action took."""
        self.is_behind = False
        """Whether the last turn has left looks or actions to the next."""

    def turn(self) -> list[LoggedDecision]:
        """Look at the tasks in which a clock may run against this party, and act; then at the others, and act.

        A turn takes about two polls for what is urgent, and two for the others. The rest is left to the next turns, and
        the tasks come first that have waited longest. Without a poll, every task is looked at once. No failure of one
        task delays the others.

        Raises:
            OperationalError: the list of tasks or of this party's disputes can't be read, or transactions are late.
        """
        connection = self.role.connection
        with connection.cached():
            if self.mode is not Mode.WATCH:
                # Transactions of earlier turns and processes, and those undone by a reorganization, go first.
                block, began = bytes(connection.latest()["hash"]), self._clock()
                with connection.outside():
                    self.role.wallet.outbox.resume(block)
                if self._clock() - began > OLD_LOOK:
                    connection.forget()
            return self._turn()

    def _turn(self) -> list[LoggedDecision]:
        listed = list(self.tasks())
        for task_id in set(self._work) - set(listed):
            del self._work[task_id]
        resting, urgent = self._resting(), self._urgent()
        self.is_behind = False
        taken, end = list[LoggedDecision](), self._clock() + 2 * self.poll
        while True:
            found, deeds = self._look(task_id for task_id in listed if task_id in urgent - resting)
            # Moves in different tasks don't depend on each other, so they share blocks.
            with self.role.connection.outside(), self.role.wallet.posting():
                found += self._act(deeds)
            taken += found
            # Many disputes of one task take a move each.
            if self._clock() >= end or all(made.result is not DecisionResult.DONE for made in found):
                break
        others = [task_id for task_id in listed if task_id not in urgent | resting]
        found, deeds = self._look(sorted(others, key=lambda each: self._work[each].looked), self.poll or float("inf"))
        return taken + found + self._act(deeds, self.poll or float("inf"))

    def _urgent(self) -> set[bytes]:
        """Tasks with an open dispute of this party, or with a deadline that has come, unless the last action failed."""
        now = self._clock()
        due = {
            each for each, work in self._work.items() if work.due is not None and work.due <= now and not work.failed
        }
        return self._disputed() | due

    def _look(self, task_ids: Iterable[bytes], most: float = float("inf")) -> tuple[list[LoggedDecision], list[Action]]:
        """Look at tasks for about ``most`` seconds: their waits and failures, and the actions that are due."""
        taken, deeds, ended = list[LoggedDecision](), list[Action](), list[bytes]()
        read = self._clock()
        end = read + most
        connection = self.role.connection
        with connection.cached():
            for number, task_id in enumerate(task_ids):
                began = self._clock()
                if number and began > end:
                    self.is_behind = True
                    break
                self._looks += 1
                work = self._work[task_id]
                work.looked = self._looks
                try:
                    with self.role.about(task_id), within(self._reading_seconds(task_id)), connection.heard() as view:
                        decision = self._decide(self.role, task_id)
                except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
                    taken.append(self._trouble(Wait(task_id, "it couldn't look at the task"), error))
                    continue
                finally:
                    if (now := self._clock()) - read > OLD_LOOK:
                        connection.forget()
                        read = now
                if isinstance(decision, Action):
                    decision = replace(decision, view=view_lines(view))
                    if decision.mode <= self.mode:
                        deeds.append(decision)
                    else:
                        why = f"the process runs in mode {self.mode.name.lower()}"
                        taken.append(self._taken(decision, DecisionResult.WITHHELD, why))
                    continue
                work.failures = 0
                taken.append(self._taken(decision, DecisionResult.WAITED))
                if decision.final:
                    ended.append(task_id)
        self._end(ended)
        return taken, deeds

    def _act(self, deeds: list[Action], most: float = float("inf")) -> list[LoggedDecision]:
        """Act in the order of urgency, what has failed before last; for about ``most`` seconds but for what is owed."""
        if not deeds:
            return []
        with self.role.connection.outside():
            taken = self._acted(deeds, most)
        self.role.connection.forget()
        return taken

    def _acted(self, deeds: list[Action], most: float) -> list[LoggedDecision]:
        taken, end = list[LoggedDecision](), self._clock() + most
        deeds = in_order(deeds, self.role.connection.now(), lambda deed: self._seconds.get(deed.verb, 0))
        for number, deed in enumerate(sorted(deeds, key=lambda deed: self._work[deed.task_id].failed)):
            if number and not deed.is_owed and self._clock() > end:
                self.is_behind = True
                self._work[deed.task_id].looked = 0
                continue
            began = self._clock()
            taken.append(self._do(deed))
            self._seconds[deed.verb] = self._clock() - began
            self._work[deed.task_id].failed = taken[-1].result in {DecisionResult.FAILED, DecisionResult.BROKEN}
        return taken

    def left(self) -> list[float]:
        """Seconds until an action is due, for each task where that is known; negative if overdue."""
        now = self._clock()
        return [work.due - now for work in self._work.values() if work.due is not None]

    def tasks(self) -> Iterable[bytes]:
        """Ids of the tasks that may still concern this party, oldest first."""
        return (task_id for task_id in self._known() if task_id not in self._done)

    @abstractmethod
    def _known(self) -> Iterable[bytes]:
        """Ids of all tasks, oldest first."""

    @abstractmethod
    def _disputed(self) -> set[bytes]:
        """Tasks in which a clock runs against this party, by events alone."""

    @abstractmethod
    def _progress(self) -> Counter[bytes]:
        """How far each task has come, by events alone."""

    @abstractmethod
    def _has_stake(self, task_id: bytes) -> bool:
        """Whether this party has anything at stake in a task."""

    @abstractmethod
    def _final(self, task_ids: Collection[bytes]) -> set[bytes]:
        """Those of some tasks whose end no reorganization can undo."""

    @abstractmethod
    def _reading_seconds(self, task_id: bytes) -> float:
        """Seconds for which a look at a task, or work on it, may read from strangers' servers."""

    def _do(self, deed: Action) -> LoggedDecision:
        try:
            with self.role.about(deed.task_id), within(self._reading_seconds(deed.task_id)):
                deed.act()
                unkept = self.role.unkept()
        except Reverted as error:
            return self._refused(deed, error)
        except Exception as error:  # noqa: BLE001  # one task's trouble must not end the work on others
            if isinstance(error, ProtocolError) and not isinstance(error, FAILURES):
                return self._taken(deed, DecisionResult.REFUSED, str(error))
            return self._trouble(deed, error)
        finally:
            self.role.rest()
        self._work[deed.task_id].failures = 0
        return self._taken(deed, DecisionResult.DONE, unkept)

    def _end(self, task_ids: list[bytes]) -> None:
        """Forget tasks that are over; release their evidence only once their end is final."""
        for task_id in task_ids:
            self.role.forget(task_id)
        try:
            stays = self._final(task_ids)
        except OperationalError:
            return
        for task_id in stays:
            self._done.add(task_id)
            self.role.release(task_id)

    def _trouble(self, decision: Decision, error: Exception) -> LoggedDecision:
        """Report a failure, and put the task off unless this party owes something about it."""
        failed = isinstance(error, FAILURES)
        if not isinstance(decision, Action) or not decision.is_owed:
            self._put_off(decision.task_id, LONGEST_WAIT if failed else LONGEST_REST)
        if not isinstance(error, PolError):
            logging.getLogger(__name__).error("task %s", decision.task_id.hex(), exc_info=error)
        detail = str(error) if isinstance(error, PolError) else f"a fault of pol, please report it: {error!r}"
        return self._taken(decision, DecisionResult.FAILED if failed else DecisionResult.BROKEN, detail)

    def _resting(self) -> set[bytes]:
        """Tasks that are put off for now, unless they have progressed since."""
        now = self._clock()
        put_off = [(task_id, work.rested_at) for task_id, work in self._work.items() if work.rests_until > now]
        came = self._progress() if put_off else Counter[bytes]()
        return {task_id for task_id, rested_at in put_off if rested_at == came[task_id]}

    def _put_off(self, task_id: bytes, longest: float) -> None:
        """Put a task off, twice as long each time, but never past a known deadline.

        A task with stakes of this party is looked at in every turn: no bad data may keep it from its duty.
        """
        try:
            if self._has_stake(task_id):
                return
            came = self._progress()[task_id]
        except PolError:
            return
        work, now = self._work[task_id], self._clock()
        work.failures += 1
        known = longest if work.due is None else max(self.poll, work.due - now)
        rest = min(self.poll * 2.0 ** min(work.failures, 30), longest, known)
        work.rests_until, work.rested_at = now + rest, came

    def _refused(self, deed: Action, error: Reverted) -> LoggedDecision:
        """The meaning of a refusal: parties race for public calls, and all but one come second."""
        if deed.mode is Mode.RESOLVE:
            try:
                now = self._decide(self.role, deed.task_id)
            except PolError:
                return self._taken(deed, DecisionResult.REFUSED, str(error))
            if not isinstance(now, Action) or (now.verb, now.why) != (deed.verb, deed.why):
                return self._taken(deed, DecisionResult.DONE, "somebody else was faster")
        return self._taken(deed, DecisionResult.REFUSED, str(error))

    def _taken(self, decision: Decision, result: DecisionResult, detail: str = "") -> LoggedDecision:
        verb = decision.verb if isinstance(decision, Action) else "wait"
        until = None if isinstance(decision, Action) else decision.until
        now = self.role.connection.now()
        mend = "" if isinstance(decision, Action) else decision.mend
        view = decision.view if isinstance(decision, Action) else ()
        made = LoggedDecision(now, decision.task_id, verb, decision.why, result, detail, until, mend, view)
        work = self._work[decision.task_id]
        if (
            isinstance(decision, Action)
            and decision.is_owed
            and result not in {DecisionResult.DONE, DecisionResult.WITHHELD}
        ):
            work.due = self._clock()
        elif until is not None and until > now:
            work.due = self._clock() + until + 1 - now
        elif result not in {DecisionResult.FAILED, DecisionResult.BROKEN}:
            work.due = None
        self._note(made)
        return made


class Process(PartyProcess[R]):
    """Runs one party of a market."""

    def _known(self) -> Iterable[bytes]:
        return (bytes(event["taskId"]) for event in self.role.market.registry.events("TaskSubmitted"))

    def _disputed(self) -> set[bytes]:
        return {each.task_id for each in open_disputes(self.role)} | asked_tasks(self.role) | set(self.role.watches())

    def _progress(self) -> Counter[bytes]:
        return Counter(bytes(event["taskId"]) for event in self.role.market.registry.events("Advanced"))

    def _has_stake(self, task_id: bytes) -> bool:
        return at_stake(self.role, task_id)

    def _reading_seconds(self, task_id: bytes) -> float:
        return reading_seconds(self.role, task_id)

    def _final(self, task_ids: Collection[bytes]) -> set[bytes]:
        return final_tasks(self.role, task_ids)
