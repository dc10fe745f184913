"""A training in rounds of one small vector, with all workers in one process: local steps, then a mean.

And placements that a coordinator announces: honest ones, favored ones, false costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.decentralised.placement import BEST_EXCHANGE, COST, Network, network, placement_plan
from pol.decentralised.processes.local_processes import local_key
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import to_words
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.rounds.auditing.claim_replay import load_end
from pol.rounds.auditing.round_audit import Finding, findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, DeliveryEntry, LogEntry, MembershipEntry, RosterEntry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import HEAD, LogKeeper, load_head, require_whole
from pol.rounds.plan.plan_builder import From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Member, Roster
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

SIZE, ROUNDS, SEATS = 100, 4, 4
COORDINATOR = WorkerKey(b"\xc0" * 32)


def key(number: int) -> WorkerKey:
    """The key of a worker."""
    return WorkerKey(bytes([number + 1]) * 32)


@cache
def _work(seats: int) -> tuple[Capture, list[list[Words]]]:
    """Momentum descent towards the seat's target, and the targets."""

    def work(state: dict[str, Tensor], constants: dict[str, Tensor], _: Tensor) -> dict[str, Tensor]:
        moved = 0.5 * state["speed"] + (state["theta"] - constants["target"])
        return {"speed": moved, "theta": state["theta"] - 0.1 * moved}

    targets = [torch.full((SIZE,), float(seat)) for seat in range(seats)]
    zeros = torch.zeros(SIZE)
    capture = capture_function(work, {"theta": zeros, "speed": zeros + 0.25}, {"target": targets[0]})
    return capture, [[to_words("target", target)] for target in targets]


@cache
def _merge(members: int) -> Capture:
    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        total = state["from.0"]
        for k in range(1, members):
            total = total + state[f"from.{k}"]
        return {"theta": total * (1 / members)}

    vectors = {f"from.{k}": torch.zeros(SIZE) for k in range(members)}
    return capture_function(step, {"theta": torch.zeros(SIZE), **vectors})


def tiny_plan(store: Store, sizes: Sequence[int] = (1, 2, 3), seats: int = SEATS) -> RoundsPlan:
    """Work: momentum descent towards the seat's target, three steps a round. Merge: the mean of the members."""
    work, data = _work(seats)
    builder = PlanBuilder(store)
    own = {"theta": From("merge", "theta", lag=1, starts=True, inherits=True)}
    builder.phase("work", work, {**own, "speed": From("work", "speed", lag=1, starts=True)}, data=data, steps=3)
    for members in sizes:
        sources = {f"from.{k}": From("work", "theta", f"member:{k}") for k in range(members)}
        builder.phase("merge", _merge(members), {**own, **sources}, members=members)
    return builder.build("tiny", COORDINATOR.name, bytes(32), ROUNDS)


@dataclass
class TinyTraining:
    """Authors by number, and the log; ``entries`` of a round go into the log at its end and may be changed before."""

    store: Store
    plan: RoundsPlan
    authors: dict[int, ClaimAuthor] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    _joined: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store) -> TinyTraining:
        """A training of the tiny plan."""
        return cls(store, tiny_plan(store))

    def author(self, number: int, kind: type[ClaimAuthor] = ClaimAuthor) -> ClaimAuthor:
        """A worker, made when it is first asked for."""
        if number not in self.authors:
            self.authors[number] = kind(self.store, self.plan, key(number), CpuExecutor)
        return self.authors[number]

    def roster(self, round_: int, numbers: Sequence[int]) -> Roster:
        """The roster of a round, entered into the log."""
        members = []
        for number in numbers:
            if round_ and number not in self._joined:
                self.entries.append(MembershipEntry.signed(key(number), self.plan.digest, round_, Change.JOIN))
            self._joined.setdefault(number, round_)
            members.append(Member(key(number).name, number, self._joined[number]))
        roster = Roster(self.plan.digest, round_, tuple(members))
        document = self.store.put(roster.encode())
        self.entries.append(RosterEntry(document, COORDINATOR.sign(roster.digest)))
        return roster

    def play(self, round_: int, numbers: Sequence[int]) -> None:
        """A round in which everybody works, receives all claims and merges."""
        roster = self.roster(round_, numbers)
        authors = [self.author(number) for number in numbers]
        for author in authors:
            author.rosters[round_] = roster
            if round_ and round_ - 1 not in author.rosters:  # a joiner knows the round before, and its merges
                first = self.authors[min(self.authors)]
                author.rosters[round_ - 1] = first.rosters[round_ - 1]
                for claim in list(first.known.values()):
                    author.learn(claim)
        made = [author.make(round_, "work") for author in authors]
        for author in authors:
            for claim in made:
                if claim.entry.worker != author.name:
                    author.learn(claim)
                    delivered = DeliveryEntry.signed(author.key, self.plan.digest, round_, claim.entry.claim.digest)
                    self.entries.append(delivered)
        self.entries += [claim.entry for claim in made]
        self.entries += [author.make(round_, "merge").entry for author in authors]

    def publish(self, round_: int = 0) -> None:
        """Bring the entries into the log."""
        keeper = LogKeeper(self.store, self.plan.digest, COORDINATOR)
        for entry in self.entries:
            keeper.append(entry, round_)
        self.entries = []
        keeper.publish()

    def read(self) -> LoggedRounds:
        """The whole log, as a stranger reads it."""
        plan, head = load_head(self.store)
        require_whole(self.store, head)
        return read_rounds(self.store, plan, head)

    def findings(self) -> list[Finding]:
        """The lies that roots show, after what is left has been published."""
        if self.entries:
            self.publish()
        return list(findings_by_roots(self.read()))


def republish(store: Store, plan: RoundsPlan, keeps: Callable[[LogEntry], bool]) -> None:
    """What a lying keeper shows in place of its log: another one, of the entries that it keeps."""
    keeper, rounds = (
        LogKeeper(Store("memory://republished"), plan.digest, COORDINATOR),
        read_rounds(store, *load_head(store)),
    )
    for entry in filter(keeps, rounds.entries):
        keeper.append(entry, 0)
    head = keeper.publish()
    for page in head.pages:
        store.put(Store("memory://republished").get(page.object))
    store.replace(HEAD, head.encode())
    Store("memory://republished").remove(HEAD)


LIAR = 1


class Liar(ClaimAuthor):
    """Changes one word of its end."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end, but for a bit."""
        end = super().run(place, start, first_step, steps)
        if (place.round, place.phase) == (1, 0):
            end[0] = end[0].copy()
            end[0][5] ^= 1 << 20
        return end


def lying_run(folder: Path, first: Sequence[int] = (0, LIAR, 2)) -> Path:
    """Three rounds of three workers in a folder, of which `LIAR` lies in round 1; ``first`` are members of round 0."""
    training = TinyTraining.of(Store(f"file://{folder}/store"))
    training.author(LIAR, Liar)
    for round_ in range(3):
        training.play(round_, (0, LIAR, 2) if round_ else first)
        training.publish(round_)
    return folder


PLACER = local_key(-1)


def drawn_network(seed: int, pipelines: int, stages: int) -> Network:
    """Workers in two regions: near ones are fast to each other."""
    generator = torch.Generator().manual_seed(seed)
    workers = pipelines * stages
    region = torch.arange(workers) % 2
    is_far = region.unsqueeze(0) != region.unsqueeze(1)
    jitter = torch.randint(0, 500, (workers, workers), generator=generator)
    jitter = jitter + jitter.T
    latency = torch.where(is_far, 40_000, 1_000) + jitter
    bandwidth = torch.where(is_far, 12_500, 125_000)
    return network(latency, bandwidth, pipelines, stages, gradients=4_000_000, activations=100_000)


def announced(folder: Path, net: Network, assignment: Tensor, lied_cost: int | None = None) -> LoggedRounds:
    store = Store(f"file://{folder}/store")
    plan = placement_plan(store, net, assignment, PLACER.name, bytes(32))
    author = ClaimAuthor(store, plan, PLACER, CpuExecutor)
    roster = Roster(plan.digest, 0, (Member(PLACER.name, 0, role="coordinator"),))
    author.rosters[0] = roster
    place = ClaimPlace(PLACER.name, 0, 0, 0)
    sources, start = author.start(place)
    end = author.run(place, start, 0, 1)
    if lied_cost is not None:
        end[1] = np.full_like(end[1], lied_cost)
    keeper = LogKeeper(store, plan.digest, PLACER)
    keeper.append(RosterEntry(store.put(roster.encode()), PLACER.sign(roster.digest)), 0)
    keeper.append(author.sign(place, sources, end).entry, 0)
    keeper.publish()
    return read_rounds(store, plan, load_head(store)[1])


def end_of(rounds: LoggedRounds) -> dict[str, Tensor]:
    (entry,) = rounds.claims.values()
    held = load_end(rounds, entry)
    return {name: torch.from_numpy(held[slot].view(np.int32)) for slot, name in ((1, COST), (2, BEST_EXCHANGE))}
