"""Trainings by arrivals in one process: workers of drawn speeds, some that send twice, and a server that is killed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import lru_cache
from uuid import uuid4

import fsspec
import torch
from torch import Tensor

from lab.rounds.restart_drill import Killed, MortalStore
from lab.rounds.tiny_training import COORDINATOR, SIZE, key
from pol.decentralised.arrival_server import END, ArrivalServer, Sent
from pol.decentralised.processes.exchange import Exchange
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import to_words
from pol.graph.capture.functions import capture_function
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import DeliveryEntry, decode_entry, encode_entry
from pol.rounds.plan.plan_builder import From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

ROUNDS, WORKERS, QUORUM, STALENESS = 5, 3, 2, 2
MERGE, MESSAGE = Sent("merge", ("theta",)), Sent("message", ("theta",))


def arrival_plan(store: Store) -> RoundsPlan:
    """Work: one step towards the seat's target. Merge: the mean of the arrivals."""

    def work(state: dict[str, Tensor], constants: dict[str, Tensor], _: Tensor) -> dict[str, Tensor]:
        return {"theta": state["theta"] - 0.1 * (state["theta"] - constants["target"])}

    def send(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        return {"theta": state["theta"] * 0.5}

    def merge(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        return {"theta": state["from.0"] + state["from.1"]}

    zeros = torch.zeros(SIZE)
    builder = PlanBuilder(store)
    arrived = {f"from.{k}": From("message", "theta", f"arrival:{k}", lag=STALENESS, starts=True) for k in range(QUORUM)}
    merged = capture_function(merge, {"theta": zeros, **{f"from.{k}": zeros for k in range(QUORUM)}})
    builder.phase("merge", merged, {"theta": From("merge", "theta", lag=1, starts=True), **arrived})
    targets = [torch.full((SIZE,), float(seat)) for seat in range(WORKERS)]
    worked = capture_function(work, {"theta": zeros}, {"target": targets[0]})
    data = [[to_words("target", target)] for target in targets]
    builder.phase("work", worked, {"theta": From("merge", "theta", "member:0")}, data=data)
    builder.phase("message", capture_function(send, {"theta": zeros}), {"theta": From("work", "theta")})
    return builder.build("arrivals", COORDINATOR.name, bytes(32), ROUNDS)


@lru_cache(maxsize=1)
def _captured() -> tuple[str, RoundsPlan]:
    url = "memory://captured-arrival-plan"
    return url, arrival_plan(Store(url))


class Habit(Enum):
    """What a worker does besides its work."""

    NONE = auto()
    REPEATS = auto()
    """Sends its first message again before others."""
    FORKS = auto()
    """Signs another message for the same place, and sends that then."""
    STRAYS = auto()
    """Signs its claims under a roster of its own."""


@dataclass
class DrilledWorker:
    """A worker that answers what it is sent."""

    author: ClaimAuthor
    habit: Habit
    outbox: list[bytes] = field(default_factory=list)
    receipts: list[DeliveryEntry] = field(default_factory=list)
    _inbox: list[bytes] = field(default_factory=list)
    _first: list[bytes] = field(default_factory=list)
    _awaits_receipt: bool = False
    has_repeated: bool = False

    def take(self, data: bytes) -> None:
        """What the server has sent."""
        if self._awaits_receipt:
            self._awaits_receipt = False
            if data != END:
                receipt = decode_entry(data)
                assert isinstance(receipt, DeliveryEntry)
                self.receipts.append(receipt)
            return
        self._inbox.append(data)
        if self._inbox[0] != END and len(self._inbox) == 3:
            self._work(*self._inbox)
            self._inbox = []

    def _work(self, document: bytes, signature: bytes, merge: bytes) -> None:
        author, roster = self.author, Roster.decode(document)
        author.forget(roster.round)
        if self.habit is Habit.STRAYS:
            roster = replace(roster, members=(*roster.members[:-1], replace(roster.members[-1], weight=7)))
        author.rosters[roster.round] = roster
        author.learn(MERGE.decode(author, merge))
        steps, message = author.make(roster.round, "work"), author.make(roster.round, "message")
        pair = [encode_entry(steps.entry), MESSAGE.encode(author, message)]
        again = self.habit in (Habit.REPEATS, Habit.FORKS)
        self.has_repeated = again and bool(self._first) and not self.has_repeated
        if not self._first:
            self._first = [pair[0], self._forged(message)] if self.habit is Habit.FORKS else pair
        self.outbox += self._first if self.has_repeated else pair
        self._awaits_receipt = True

    def _forged(self, made: MadeClaim) -> bytes:
        """Another message than the one signed before, for the same place."""
        place = ClaimPlace(self.author.name, *made.entry.claim.place)
        sources, _ = self.author.start(place)
        return MESSAGE.encode(
            self.author, self.author.sign(place, sources, [words + 1 for words in made.words.values()])
        )


class DrilledExchange(Exchange):
    """Between the server and its workers; whoever is ready is taken in a drawn order."""

    def __init__(self, workers: Sequence[DrilledWorker], drawn: random.Random) -> None:
        super().__init__()
        self._workers, self._drawn = workers, drawn

    @property
    def size(self) -> int:
        return 1 + len(self._workers)

    def post(self, data: bytes, to: int) -> None:
        self._workers[to - 1].take(data)

    def take_any(self) -> tuple[int, bytes]:
        ready = [number for number, worker in enumerate(self._workers, 1) if worker.outbox]
        assert ready, "the server waits for ever"
        # The first is the slowest.
        process = self._drawn.choices(ready, [0.3 if number == 1 else 1.0 for number in ready])[0]
        return process, self.take(process)

    def take(self, source: int) -> bytes:
        return self._workers[source - 1].outbox.pop(0)

    def settle(self) -> None:
        pass


@dataclass
class ArrivalDrill:
    """A training whose server is killed at each of ``deaths``, a write and whether it takes effect, one after another.

    ``receipts`` are all that anybody has seen.
    """

    deaths: Sequence[tuple[int, bool]] = ()
    seed: int = 0
    habits: Mapping[int, Habit] = field(default_factory=dict)
    url: str = ""
    receipts: list[DeliveryEntry] = field(default_factory=list)
    writes: int = 0
    """Of the last server."""

    def play(self) -> None:
        """Train to the end."""
        if not self.url:
            self.url = f"memory://{uuid4().hex}"
            fsspec.filesystem("memory").copy(_captured()[0], self.url, recursive=True)
        drawn = random.Random(self.seed)
        for death in [*self.deaths, None]:
            if self._served(death, drawn):
                return

    def _served(self, death: tuple[int, bool] | None, drawn: random.Random) -> bool:
        """Start all again; whether the training has ended."""
        _, plan = _captured()
        store = MortalStore(self.url, *(death or (None, False)))
        names = [COORDINATOR.name, *(key(number).name for number in range(WORKERS))]
        members = [Member(name, seat) for name, seat in zip(names, [WORKERS, *range(WORKERS)], strict=True)]
        workers = [self._worker(number, plan) for number in range(WORKERS)]
        try:
            author = ClaimAuthor(store, plan, COORDINATOR, CpuExecutor)
            exchange = DrilledExchange(workers, drawn)
            ArrivalServer(author, exchange, members, MERGE, MESSAGE, QUORUM, STALENESS).serve()
        except Killed:
            return False
        finally:
            self.receipts += [receipt for worker in workers for receipt in worker.receipts]
            self.writes = store.writes
        return True

    def _worker(self, number: int, plan: RoundsPlan) -> DrilledWorker:
        author = ClaimAuthor(Store(self.url), plan, key(number), CpuExecutor)
        return DrilledWorker(author, self.habits.get(number, Habit.NONE))
