"""A worker's notices, handed in again by somebody else after it has left."""

from __future__ import annotations

from pathlib import Path

from lab.rounds.tiny_training import COORDINATOR, SEATS, key, tiny_plan
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.drawn_audit import audit
from pol.rounds.log_entries import Change, MembershipEntry, RosterEntry, encode_entry
from pol.rounds.roster import Roster
from pol.training.storage.store import Store


def test_an_old_join_brings_nobody_back(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    plan = tiny_plan(store)
    coordinator = RosterCoordinator(store, plan, COORDINATOR, SEATS)
    authors = [ClaimAuthor(store, plan, key(number), CpuExecutor) for number in range(2)]

    def tell(number: int, round_: int, change: Change) -> bytes:
        notice = encode_entry(MembershipEntry.signed(key(number), plan.digest, round_, change))
        coordinator.take(notice)
        return notice

    def roster(entry: RosterEntry) -> Roster:
        return Roster.decode(store.get(entry.document))

    tell(0, 0, Change.JOIN)
    used = tell(1, 0, Change.JOIN)
    begun = roster(coordinator.begin_round())
    for author in authors:
        author.rosters[0] = begun
        assert coordinator.deliver(author.make(0, "work")) is not None
    coordinator.end_round()
    tell(0, 1, Change.HEARTBEAT)
    tell(1, 1, Change.LEAVE)
    coordinator.take(used)
    assert [member.worker for member in roster(coordinator.begin_round()).members] == [key(0).name]
    tell(0, 2, Change.HEARTBEAT)
    tell(1, 2, Change.JOIN)
    assert [member.worker for member in roster(coordinator.begin_round()).members] == [key(0).name, key(1).name]
    assert audit(store, is_all_roots=True).outcome == "accepted"
