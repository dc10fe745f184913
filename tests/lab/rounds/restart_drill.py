"""Trainings in one process whose coordinator is killed at a write to its store, before or after it has taken effect.

Coordinator, loop, workers and mailbox are those of elastic trainings. A meeting dies with its coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any
from uuid import uuid4

import fsspec
from torch.distributed import DistNetworkError, HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.rounds.tiny_training import COORDINATOR, SEATS, key, tiny_plan
from pol.decentralised.elastic.coordination import Patience, coordinate
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, DeliveryEntry, RosterEntry, decode_entry
from pol.rounds.log.rounds_log import HEAD, LogHead
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

SHARED = ("work", ["theta"])
JOINS, LEAVES = {0: 0, 1: 0, 2: 1}, {1: 2}
"""Rounds from which workers take part, and before which they leave."""
CAPTURED = "memory://captured-tiny-plan"
PATIENCE = Patience(members=30, limit=30)  # none of it passes: nobody is silent


class Killed(BaseException):
    """What a SIGKILL is to the code that it interrupts: nothing catches it."""


class MortalStore(Store):
    """The store of a coordinator that is killed at a write, 0 for the first, when it has taken effect or before.

    ``heads`` are those that a reader could have seen.
    """

    def __init__(self, url: str, dies_at: int | None, is_done: bool) -> None:
        super().__init__(url)
        self._dies_at, self._is_done = dies_at, is_done
        self.writes = 0
        self.heads: list[LogHead] = []

    def put(self, data: bytes | bytearray) -> str:
        return str(self._write(partial(super().put, data)))

    def replace(self, name: str, data: bytes) -> None:
        def write() -> None:
            super(MortalStore, self).replace(name, data)
            if name == HEAD:
                self.heads.append(LogHead.decode(data))

        self._write(write)

    def _write(self, write: Callable[[], Any]) -> Any:
        is_last = self.writes == self._dies_at
        self.writes += 1
        if is_last and not self._is_done:
            raise Killed
        done = write()
        if is_last:
            raise Killed
        return done


class MortalMeeting:
    """A store of torch.distributed within this process that can die; ``shown`` is all that anybody could have read."""

    def __init__(self, shown: list[tuple[str, bytes]]) -> None:
        self._store, self._shown, self.is_dead = HashStore(), shown, False

    def set(self, key: str, value: Any, /) -> None:
        self._alive().set(key, value)
        self._shown.append((key, value if isinstance(value, bytes) else value.encode()))

    def get(self, key: str, /) -> bytes:
        return bytes(self._alive().get(key))

    def check(self, keys: list[str], /) -> bool:
        return bool(self._alive().check(keys))

    def wait(self, keys: list[str], timeout: timedelta, /) -> None:
        self._alive().wait(keys, timeout)

    def queue_push(self, key: str, value: Any, /) -> None:
        self._alive().queue_push(key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return bytes(self._alive().queue_pop(key, block))

    def delete_key(self, key: str, /) -> bool:
        return bool(self._alive().delete_key(key))

    def queue_len(self, key: str, /) -> int:
        return int(self._alive().queue_len(key))

    def _alive(self) -> Any:
        if self.is_dead:
            raise DistNetworkError("the coordinator is gone")
        return self._store


@dataclass
class RestartDrill:
    """A training of the tiny plan, whose coordinator is killed once for each of ``deaths``: (write, has it an effect).

    ``heads`` and ``shown`` are what anybody could have seen, ``writes`` those of each coordinator.
    """

    url: str
    plan: RoundsPlan
    deaths: Sequence[tuple[int, bool]] = ()
    heads: list[LogHead] = field(default_factory=list)
    shown: list[tuple[str, bytes]] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meeting = MortalMeeting(self.shown)
        self.workers = [self._worker(number) for number in JOINS]
        self._turns = [_turns(worker, number) for number, worker in zip(JOINS, self.workers, strict=True)]

    @classmethod
    def of(cls, rounds: int, deaths: Sequence[tuple[int, bool]] = ()) -> RestartDrill:
        """A drill of so many rounds in a store in memory of its own."""
        url = f"memory://{uuid4().hex}"
        plan = replace(_captured(), rounds=rounds)
        fsspec.filesystem("memory").copy(CAPTURED, url, recursive=True)
        Store(url).put(plan.encode())
        return cls(url, plan, deaths)

    def play(self) -> None:
        """All rounds."""
        for dies_at, is_done in [*self.deaths, (None, False)]:
            store = MortalStore(self.url, dies_at, is_done)
            try:
                coordinator = RosterCoordinator(store, self.plan, COORDINATOR, SEATS)
                for number, round_ in JOINS.items():
                    coordinator.expect(key(number).name, round_)
                coordinate(coordinator, Mailbox(self.meeting, 1.0), SHARED, PATIENCE, self._advance)
            except Killed:
                self.meeting.is_dead = True
                self.meeting = MortalMeeting(self.shown)
            finally:
                self.heads += store.heads
                self.writes.append(store.writes)

    @property
    def rosters(self) -> set[tuple[str, bytes]]:
        """All rosters that workers could have seen: by round and kind, with their signatures."""
        return {(where, data) for where, data in self.shown if isinstance(decode(data), RosterEntry)}

    @property
    def receipts(self) -> list[DeliveryEntry]:
        """All receipts that workers could have seen."""
        return [entry for _, data in self.shown if isinstance(entry := decode(data), DeliveryEntry)]

    def _advance(self) -> None:
        for turn in self._turns:
            next(turn, None)

    def _worker(self, number: int) -> ElasticWorker:
        store = Store(self.url)
        mailbox = Mailbox(self.meeting, 1.0, lambda: self.meeting)
        return ElasticWorker(ClaimAuthor(store, self.plan, key(number), CpuExecutor), mailbox)


@lru_cache(maxsize=1)
def _captured() -> RoundsPlan:
    return tiny_plan(Store(CAPTURED))


def decode(data: bytes) -> object:
    """The entry in a value of a meeting, or nothing."""
    return decode_entry(data) if data.startswith(b"{") else None


def _turns(worker: ElasticWorker, number: int) -> Iterator[None]:
    """What a worker does, a turn at a time: it never waits for what isn't there."""
    mailbox, end = worker.mailbox, LEAVES.get(number, worker.author.plan.rounds)
    worker.tell(JOINS[number], Change.JOIN)
    for round_ in range(JOINS[number], end):
        while not mailbox.has_roster(round_, final=False):
            yield
        worker.begin(_roster(worker, mailbox.roster(round_, final=False)))
        made = worker.make("work")
        worker.show(made, SHARED[1])
        while not mailbox.has_roster(round_, final=True):
            yield
        worker.gather(made, SHARED[1])
        worker.make("merge")
        worker.tell(round_ + 1, Change.LEAVE if round_ + 1 == LEAVES.get(number) else Change.HEARTBEAT)
    while not mailbox.has_roster(end, final=False):  # as `Mailbox.depart`
        yield


def _roster(worker: ElasticWorker, data: bytes) -> Roster:
    entry = decode_entry(data)
    assert isinstance(entry, RosterEntry)
    return Roster.decode(worker.author.store.get(entry.document))
