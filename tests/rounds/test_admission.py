"""Coordinators sign no roster that would cost them, or its members, their stakes on a chain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.rounds.tiny_training import COORDINATOR, key, tiny_plan
from pol.decentralised.arrival_server import ArrivalServer, Sent
from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.round_worker import RoundWorker
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.admission import require_showable, sign_roster
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import SHOWN_LIMIT, Member, Roster
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

MEMBERS = (Member(key(0).name, 0), Member(key(1).name, 1))


def joined(worker: str) -> bool:
    return worker == key(0).name


@pytest.fixture
def store() -> Store:
    return Store("memory://admission")


@pytest.fixture
def plan(store: Store) -> RoundsPlan:
    return tiny_plan(store)


def author(store: Store, plan: RoundsPlan, own: WorkerKey) -> ClaimAuthor:
    return ClaimAuthor(store, plan, own, CpuExecutor)


def too_long(roster: Roster) -> Roster:
    return replace(roster, members=(*roster.members[:-1], replace(roster.members[-1], role="x" * SHOWN_LIMIT)))


def test_new_members_are_asked_for_and_old_ones_are_not(plan: RoundsPlan) -> None:
    """A member is in the rosters that follow, whatever becomes of its stake."""
    roster = Roster(plan.digest, 1, MEMBERS)
    assert sign_roster(roster, COORDINATOR, joined) == COORDINATOR.sign(roster.digest)
    with pytest.raises(ProtocolError, match=f"{key(1).name} has no stake"):
        sign_roster(replace(roster, round=0), COORDINATOR, joined)
    with pytest.raises(ProtocolError, match="members can show 124000"):
        sign_roster(too_long(roster), COORDINATOR)
    require_showable(roster)


def test_a_synchronous_training_begins_no_round_with_them(store: Store, plan: RoundsPlan, alone: Exchange) -> None:
    coordinator = RoundWorker(author(store, plan, key(0)), alone, COORDINATOR, joined)
    with pytest.raises(ProtocolError, match="has no stake"):
        coordinator.begin(Roster(plan.digest, 0, MEMBERS))
    with pytest.raises(ProtocolError, match="members can show"):  # who would sign a claim under it
        RoundWorker(author(store, plan, key(1)), alone).begin(too_long(Roster(plan.digest, 1, MEMBERS)))


def test_a_server_of_arrivals_signs_no_roster_with_them(store: Store, plan: RoundsPlan, alone: Exchange) -> None:
    given = (
        author(store, plan, COORDINATOR),
        alone,
        MEMBERS,
        Sent("merge", ("theta",)),
        Sent("work", ("theta",)),
        1,
        1,
    )
    with pytest.raises(ProtocolError, match="has no stake"):
        ArrivalServer(*given, joined).serve()
