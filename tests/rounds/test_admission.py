"""Coordinators sign no roster that would cost them, or its members, their stakes; logs take what their authors sign."""

from dataclasses import replace

import pytest

from lab.rounds.tiny_training import COORDINATOR, key, republish, tiny_plan
from pol.decentralised.arrival_server import ArrivalServer, Sent
from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.round_worker import RoundWorker
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.admission import Admission, require_showable, sign_roster
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, DeliveryEntry, MembershipEntry, RosterEntry, encode_entry
from pol.rounds.log.logged_rounds import read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import SHOWN_LIMIT, Member, Roster
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

pytestmark = pytest.mark.rules

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


def test_members_are_asked_for_when_a_round_begins(plan: RoundsPlan) -> None:
    """Who has gone signs on for nobody; who goes within a round stays in it, as it may hold a receipt."""
    roster = Roster(plan.digest, 1, MEMBERS)
    for begun in (roster, replace(roster, provisional=True)):
        with pytest.raises(ProtocolError, match=f"{key(1).name} has no stake"):
            sign_roster(begun, COORDINATOR, joined)
    final = replace(roster, provisional=True).ended(MEMBERS)
    assert sign_roster(final, COORDINATOR, joined) == COORDINATOR.sign(final.digest)
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


def test_a_log_takes_what_its_author_has_signed_once(store: Store, plan: RoundsPlan) -> None:
    """A member can bring anything: copies of others' claims with other objects, strangers' claims, garbage."""
    roster = Roster(plan.digest, 0, MEMBERS)
    makers = [author(store, plan, key(number)) for number in range(3)]
    for maker in makers[:2]:
        maker.rosters[0] = roster
    makers[2].rosters[0] = replace(roster, members=(*MEMBERS, Member(key(2).name, 2)))
    first, second, strangers = (maker.make(0, "work").entry for maker in makers)
    copied = replace(first, sources="00" * 32)
    forged = replace(second, signature=key(0).sign(second.claim.digest))
    receipt = DeliveryEntry.signed(key(1), plan.digest, 0, first.claim.digest)
    leave = MembershipEntry.signed(key(1), plan.digest, 1, Change.LEAVE)
    others = (
        strangers,
        forged,
        replace(receipt, receiver=key(0).name),
        replace(leave, plan=bytes(32)),
        MembershipEntry.signed(key(2), plan.digest, 1, Change.JOIN),
        DeliveryEntry.signed(key(1), plan.digest, 2, first.claim.digest),
        DeliveryEntry.signed(key(1), plan.digest, 0, bytes(32)),
        RosterEntry("00" * 32, COORDINATOR.sign(bytes(32))),
    )
    brought = [(key(1).name, encode_entry(entry)) for entry in (copied, *others, second, receipt, leave, leave)]
    sent = [(key(1).name, b"{"), *brought, (key(0).name, encode_entry(first)), (key(0).name, encode_entry(second))]
    assert log_of(store, roster).admitted(sent) == [second, receipt, leave, first]
    # Whose author sends nothing is taken from others: they have bound to it.
    assert log_of(store, roster).admitted([(key(1).name, encode_entry(first))]) == [first]
    log = log_of(store, roster)
    assert log.admitted(sent)
    assert not log.admitted(sent)


def log_of(store: Store, roster: Roster) -> Admission:
    """An empty log in the round of a roster."""
    log = Admission(store, tiny_plan(store))
    log.begin(roster)
    return log


@pytest.mark.parametrize("wrong", ["roster", "phase", "part", "size", "sources", "roots"])
def test_a_claim_without_a_place_or_its_roots_costs_no_reader_anything(
    store: Store, plan: RoundsPlan, wrong: str
) -> None:
    """Its author has signed it, and would be paid for none of them: a log of only such ones had no end."""
    roster, own = Roster(plan.digest, 0, MEMBERS), key(0)
    maker = author(store, plan, own)
    maker.rosters[0] = roster
    entry = maker.make(0, "work").entry
    changes = {"roster": b"\7" * 32, "phase": 99, "part": 1, "size": 1}
    if wrong in changes:
        claim = replace(entry.claim, **{wrong.replace("size", "phase"): changes[wrong]})  # type: ignore[arg-type]  # by name
        false = replace(entry, claim=claim, signature=own.sign(claim.digest))
    else:
        false = replace(entry, **{wrong: store.put(b"others")})
    log = log_of(store, roster)
    assert not log.admitted([(own.name, encode_entry(false))])
    assert log.admitted([(own.name, encode_entry(entry))]) == [entry]


def test_of_claims_for_one_place_a_log_takes_two(store: Store, plan: RoundsPlan) -> None:
    """The second shows that its author has lied, and more show nothing else."""
    roster, own = Roster(plan.digest, 0, MEMBERS), key(0)
    maker = author(store, plan, own)
    maker.rosters[0] = roster
    entry = maker.make(0, "work").entry
    claims = [replace(entry.claim, start=bytes([number]) * 32) for number in range(5)]
    signed = [replace(entry, claim=claim, signature=own.sign(claim.digest)) for claim in claims]
    assert log_of(store, roster).admitted([(own.name, encode_entry(each)) for each in signed]) == signed[:2]


def test_a_worker_stops_where_the_log_is_without_its_claims(store: Store, plan: RoundsPlan, alone: Exchange) -> None:
    worker = RoundWorker(author(store, plan, key(0)), alone, COORDINATOR)
    for round_ in range(2):
        worker.begin(Roster(plan.digest, round_, MEMBERS[:1]))
        made = [worker.make("work"), worker.make("merge")]
        worker.finish()
    logged = read_rounds(store, *load_head(store))
    assert {each.entry.claim.digest for each in made} <= logged.claims.keys()
    republish(store, plan, lambda entry: entry != made[1].entry)
    with pytest.raises(ProtocolError, match="without 1 claims of round 1"):
        worker.begin(Roster(plan.digest, 2, MEMBERS[:1]))
