"""A worker signs nothing twice: whatever its coordinator shows it, wherever a restart begins, whoever has its key."""

from dataclasses import replace

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.rounds.arrival_drill import MERGE, MESSAGE, arrival_plan
from lab.rounds.tiny_training import COORDINATOR, key, tiny_plan
from pol.commitments.keccak import keccak256
from pol.decentralised.arrival_server import ArrivalWorker
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.round_worker import RoundWorker
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import PAGE, DeliveryEntry, RosterEntry, encode_entry
from pol.rounds.log.logged_rounds import rounds_of
from pol.rounds.log.worker_journal import SHOWN, WorkerJournal, read_journal
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

WORKER = key(0).name


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return Store(f"memory://{request.node.name}")


@pytest.fixture
def plan(store: Store) -> RoundsPlan:
    return tiny_plan(store)


def author(store: Store, plan: RoundsPlan) -> ClaimAuthor:
    return ClaimAuthor(store, plan, key(0), CpuExecutor)


def roster(plan: RoundsPlan, round_: int, weight: int = 1, provisional: bool = False) -> Roster:
    return Roster(plan.digest, round_, (Member(WORKER, 0, weight=weight),), provisional=provisional)


def journal(store: Store, plan: RoundsPlan) -> WorkerJournal:
    return WorkerJournal(store, plan.digest, WORKER)


def require_evidence(store: Store, plan: RoundsPlan) -> None:
    """What the journal of a worker that was started again has blames the coordinator, and nobody else."""
    kept = journal(store, plan)
    rounds = rounds_of(store, plan, [entry for *_, entry in kept.rosters], is_whole=False)
    assert {(one.lie, one.worker) for one in findings_by_roots(rounds)} == {(Lie.EQUIVOCATION, COORDINATOR.name)}


def test_an_elastic_worker_signs_under_one_roster_of_a_round(store: Store, plan: RoundsPlan) -> None:
    """A coordinator that shows another one when the work is signed would have it sign that twice."""
    worker = ElasticWorker(author(store, plan), Mailbox(HashStore(), 1.0))
    for weight in (1, 7):
        shown = roster(plan, 0, weight, provisional=True)
        entry = RosterEntry(store.put(shown.encode()), COORDINATOR.sign(shown.digest))
        worker.mailbox.announce(0, encode_entry(entry), final=False)
        if weight == 1:
            worker.begin(worker._roster(0, final=False))
            signed = worker.make("work").entry
    with pytest.raises(ProtocolError, match="two rosters of round 0"):
        worker.take_part(lambda given: None)
    assert worker.journal.claims == [signed]
    require_evidence(store, plan)


def test_a_worker_of_a_group_signs_under_one_roster_of_a_round(store: Store, plan: RoundsPlan, alone: Exchange) -> None:
    """All was started again, of a store whose state before round 0 was put back."""
    elsewhere = Store(f"{store.url}-before")
    RoundWorker(author(store, plan), alone, COORDINATOR).begin(roster(plan, 0))
    tiny_plan(elsewhere)
    forgetful = RoundWorker(author(elsewhere, plan), alone, COORDINATOR)
    forgetful.journal = journal(store, plan)
    with pytest.raises(ProtocolError, match="two rosters of round 0"):
        forgetful.begin(roster(plan, 0, 7))
    require_evidence(store, plan)


def test_a_worker_of_arrivals_signs_under_one_roster_of_a_round(store: Store, alone: Exchange) -> None:
    plan = arrival_plan(store)
    server = ClaimAuthor(store, plan, COORDINATOR, CpuExecutor)
    worker = ArrivalWorker(author(store, plan), alone, MERGE, "work", MESSAGE)
    for weight in (1, 7):
        shown = Roster(plan.digest, 0, (Member(COORDINATOR.name, 3), Member(WORKER, 0, weight=weight)))
        server.rosters[0] = shown
        merge = MERGE.encode(server, server.make(0, "merge"))
        if weight == 1:
            worker._begin(shown.encode(), COORDINATOR.sign(shown.digest), merge)
    with pytest.raises(ProtocolError, match="two rosters of round 0"):
        worker._begin(shown.encode(), COORDINATOR.sign(shown.digest), merge)
    require_evidence(store, plan)


def test_nothing_is_signed_again_or_behind_what_is_known(store: Store, plan: RoundsPlan) -> None:
    """By a machine that computes otherwise when it is started again, or for a coordinator that has gone back."""
    maker = author(store, plan)
    maker.rosters[0] = roster(plan, 0)
    made = maker.make(0, "work").entry
    before = journal(store, plan)
    before.see(roster(plan, 0), COORDINATOR.sign(roster(plan, 0).digest))
    before.add(made)
    after = journal(store, plan)
    after.add(made)
    claim = replace(made.claim, end=b"\1" * 32)
    with pytest.raises(ProtocolError, match="has signed another claim for round 0, phase 0, part 0"):
        after.add(replace(made, claim=claim, signature=key(0).sign(claim.digest)))
    assert (after.claims, after.claim(0, 0, 0), after.claim(0, 0, 1)) == ([made], made, None)
    for round_ in (1, 2, 3):
        after.see(roster(plan, round_), COORDINATOR.sign(roster(plan, round_).digest))
    again = journal(store, plan)
    assert (again.floor, again.claims) == (2, [])
    with pytest.raises(ProtocolError, match="signs nothing for round 0 any more: the coordinator has gone back"):
        again.add(made)
    with pytest.raises(ProtocolError, match="the coordinator has gone back"):
        again.see(roster(plan, 1), COORDINATOR.sign(roster(plan, 1).digest))
    receipt = DeliveryEntry.signed(COORDINATOR, plan.digest, 0, made.claim.digest)
    for _ in range(2):
        again.add(receipt)
    assert journal(store, plan).receipts == [receipt]


@pytest.mark.long
def test_nothing_that_a_demand_may_ask_for_is_dropped(store: Store, plan: RoundsPlan) -> None:
    """A worker answers for claims of any age: with their rosters and receipts, and the claims that they name."""
    other = ClaimAuthor(store, plan, key(1), CpuExecutor)
    maker = author(store, plan)
    first = Roster(plan.digest, 0, (Member(WORKER, 0), Member(key(1).name, 1)))
    for each in (maker, other):
        each.rosters[0] = first
    work, given = maker.make(0, "work"), other.make(0, "work")
    maker.learn(given)
    merge = maker.make(0, "merge")
    before = journal(store, plan)
    before.see(first, COORDINATOR.sign(first.digest))
    before.add(work.entry, maker.named(work))
    before.add(merge.entry, maker.named(merge))
    receipt = DeliveryEntry.signed(COORDINATOR, plan.digest, 0, work.entry.claim.digest)
    before.add(receipt)
    signed = RosterEntry(first.document.hex(), COORDINATOR.sign(first.digest))
    owed = {work.entry, merge.entry, given.entry, receipt, signed}
    assert set(before.entries()) == owed
    # A long training: what falls behind goes to pages, and the file stays short.
    for round_ in range(1, 2 * PAGE):
        shown = roster(plan, round_)
        before.see(shown, COORDINATOR.sign(shown.digest))
        before.add(DeliveryEntry.signed(COORDINATOR, plan.digest, round_, work.entry.claim.digest))
    after = journal(store, plan)
    assert owed < set(after.entries())
    assert list(after.entries()) == list(before.entries()) == list(read_journal(store, plan.digest, WORKER).entries())
    assert len(list(after.entries())) == len(owed) + 2 * (2 * PAGE - 1)
    file = f"journal-{keccak256(plan.digest + bytes.fromhex(WORKER[2:])).hex()}.json"
    assert len(store.read(file)) < 1024 * (2 * SHOWN + PAGE)
    before_reading = store.read(file)
    read_journal(store, plan.digest, WORKER)  # by a process beside the one that trains, which goes on
    after.see(roster(plan, 2 * PAGE), COORDINATOR.sign(roster(plan, 2 * PAGE).digest))
    assert store.read(file) != before_reading


def test_a_journal_is_one_process_of_one_key(store: Store, plan: RoundsPlan) -> None:
    one = journal(store, plan)
    one.see(roster(plan, 0), COORDINATOR.sign(roster(plan, 0).digest))
    other = journal(store, plan)
    with pytest.raises(OperationalError, match=f"another process of {WORKER} was started"):
        one.see(roster(plan, 1), COORDINATOR.sign(roster(plan, 1).digest))
    other.see(roster(plan, 1), COORDINATOR.sign(roster(plan, 1).digest))
    own, others = (f"journal-{keccak256(plan.digest + bytes.fromhex(key(n).name[2:])).hex()}.json" for n in range(2))
    store.replace(others, store.read(own))
    with pytest.raises(ProtocolError, match=f"the journal is that of {WORKER}, not of {key(1).name}"):
        WorkerJournal(store, plan.digest, key(1).name)
