"""What a coordinator leaves alone: notices handed in again after their author has left, and made-up rosters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.rounds.tiny_training import COORDINATOR, SEATS, key, tiny_plan
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.errors import PolError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, ClaimEntry, MembershipEntry, RosterEntry, encode_entry
from pol.rounds.roster import MAX_SEATS, SHOWN_LIMIT, Member, Roster
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


def test_who_has_no_stake_gets_no_seat(tmp_path: Path) -> None:
    """On a chain a member without a stake costs the coordinator its own."""
    store = Store(f"file://{tmp_path}/store")
    plan = tiny_plan(store)
    coordinator = RosterCoordinator(store, plan, COORDINATOR, SEATS, has_stake=lambda worker: worker == key(1).name)
    for number in range(2):
        coordinator.take(encode_entry(MembershipEntry.signed(key(number), plan.digest, 0, Change.JOIN)))
    begun = Roster.decode(store.get(coordinator.begin_round().document))
    assert [member.worker for member in begun.members] == [key(1).name]


def test_members_can_show_their_roster_on_a_chain(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    plan = tiny_plan(store)
    members = (Member(f"0x{number:040x}", 9_000 + number, 9_999_999) for number in range(MAX_SEATS))
    full = Roster(plan.digest, 9_999_999, tuple(members), provisional=True)
    assert len(full.encode()) <= SHOWN_LIMIT
    with pytest.raises(ProtocolError, match="1001 seats"):
        RosterCoordinator(store, plan, COORDINATOR, MAX_SEATS + 1)
    stretched = replace(full, members=(replace(full.members[0], role="x" * SHOWN_LIMIT),))
    meeting = HashStore()
    worker = ElasticWorker(ClaimAuthor(store, plan, key(0), CpuExecutor), Mailbox(meeting, 1.0))
    entry = RosterEntry(store.put(stretched.encode()), COORDINATOR.sign(stretched.digest))
    worker.mailbox.announce(0, encode_entry(entry), final=False)
    with pytest.raises(PolError, match="bytes"):
        worker.take_part(lambda given: None)


def test_a_claim_that_names_a_roster_of_its_own_is_left_out(tmp_path: Path) -> None:
    """Neither a receipt nor a place in the log: nobody could tell its seat."""
    store = Store(f"file://{tmp_path}/store")
    plan = tiny_plan(store)
    coordinator = RosterCoordinator(store, plan, COORDINATOR, SEATS)
    authors = [ClaimAuthor(store, plan, key(number), CpuExecutor) for number in range(2)]
    for number in range(2):
        coordinator.take(encode_entry(MembershipEntry.signed(key(number), plan.digest, 0, Change.JOIN)))
    begun = Roster.decode(store.get(coordinator.begin_round().document))
    authors[0].rosters[0] = begun
    authors[1].rosters[0] = replace(begun, members=begun.members[::-1])
    honest, false = (author.make(0, "work") for author in authors)
    for made in (honest, false):
        coordinator.take(encode_entry(made.entry))
    assert coordinator.deliver(false) is None
    coordinator.publish()
    entries = open_rounds(store).entries
    assert [entry for entry in entries if isinstance(entry, ClaimEntry)] == [honest.entry]
