"""What a coordinator leaves alone: notices handed in again after their author has left, and made-up rosters."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.rounds.membership_drill import MembershipDrill
from lab.rounds.tiny_training import COORDINATOR, SEATS, key, republish, tiny_plan
from pol.decentralised.elastic.coordination import Reception
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.errors import OperationalError, PolError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, ClaimEntry, LogEntry, MembershipEntry, RosterEntry, encode_entry
from pol.rounds.log.rounds_log import HEAD
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import MAX_SEATS, SHOWN_LIMIT, Member, Roster
from pol.training.storage.store import Store


def training(folder: Path) -> tuple[Store, RoundsPlan, RosterCoordinator, list[ClaimAuthor]]:
    store = Store(f"file://{folder}/store")
    plan = tiny_plan(store)
    authors = [ClaimAuthor(store, plan, key(number), CpuExecutor) for number in range(2)]
    return store, plan, RosterCoordinator(store, plan, COORDINATOR, SEATS), authors


def test_an_old_join_brings_nobody_back(tmp_path: Path) -> None:
    store, plan, coordinator, authors = training(tmp_path)

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
    staked = {key(1).name, key(2).name}
    coordinator = RosterCoordinator(store, plan, COORDINATOR, SEATS, has_stake=staked.__contains__)
    for number in range(3):
        coordinator.take(encode_entry(MembershipEntry.signed(key(number), plan.digest, 0, Change.JOIN)))
    staked.remove(key(2).name)  # it has joined, and lost its stake since
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
    store, plan, coordinator, authors = training(tmp_path)
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


def test_a_receipt_waits_for_what_a_message_follows_from(tmp_path: Path) -> None:
    """It promises these claims as well; and a copy of a claim with other objects has no place in the log."""
    store, plan, coordinator, (author, _) = training(tmp_path)
    coordinator.take(encode_entry(MembershipEntry.signed(key(0), plan.digest, 0, Change.JOIN)))
    author.rosters[0] = Roster.decode(store.get(coordinator.begin_round().document))
    work, merge = author.make(0, "work"), author.make(0, "merge")
    assert coordinator.deliver(merge) is None
    for entry in (replace(work.entry, sources="00" * 32), work.entry, replace(work.entry, tensors="")):
        coordinator.take(encode_entry(entry))
    assert coordinator.deliver(merge) is not None
    coordinator.publish()
    claims = [entry for entry in open_rounds(store).entries if isinstance(entry, ClaimEntry)]
    assert claims == [work.entry, merge.entry]


def test_a_third_claim_for_a_place_gets_no_receipt(tmp_path: Path) -> None:
    """The log takes two of a place: a receipt for what it refuses would cost the coordinator its stake."""
    store, plan, coordinator, (author, _) = training(tmp_path)
    coordinator.take(encode_entry(MembershipEntry.signed(key(0), plan.digest, 0, Change.JOIN)))
    author.rosters[0] = Roster.decode(store.get(coordinator.begin_round().document))
    made = author.make(0, "work")
    claims = [made.entry.claim, *(replace(made.entry.claim, start=bytes([number]) * 32) for number in range(2))]
    signed = [replace(made.entry, claim=claim, signature=key(0).sign(claim.digest)) for claim in claims]
    receipts = [coordinator.deliver(replace(made, entry=entry)) for entry in signed]
    assert [receipt is not None for receipt in receipts] == [True, True, False]
    coordinator.publish()
    logged = {entry.claim.digest for entry in open_rounds(store).entries if isinstance(entry, ClaimEntry)}
    assert logged == {entry.claim.digest for entry in signed[:2]}


@pytest.mark.parametrize("hidden", ["claim", "roster"])
def test_a_worker_that_stays_stops_where_the_log_is_another(tmp_path: Path, hidden: str) -> None:
    """Without its claims nobody pays it; by another roster than it was shown others would judge its claims."""
    store, plan, coordinator, authors = training(tmp_path)
    store.put(plan.encode())
    meeting = HashStore()
    worker, joiner = (ElasticWorker(author, Mailbox(meeting, 1.0)) for author in authors)
    reception = Reception(coordinator, worker.mailbox, "work", ["theta"])
    worker.tell(0, Change.JOIN)
    reception.read()
    worker.mailbox.announce(0, encode_entry(coordinator.begin_round()), final=False)
    joiner.tell(1, Change.JOIN)
    worker.begin(Roster.decode(store.get(shown(coordinator).document.hex())))
    made = worker.make("work")
    worker.show(made, ["theta"])
    reception.read()
    worker.mailbox.announce(0, encode_entry(coordinator.end_round()), final=True)
    final = shown(coordinator)
    worker.gather(made, ["theta"])
    worker.make("merge")
    worker.tell(1, Change.HEARTBEAT)
    reception.read()
    coordinator.begin_round()
    following = shown(coordinator)
    whole = store.read(HEAD)
    republish(store, plan, lambda entry: not is_hidden(entry, hidden, made.entry, final))
    with pytest.raises(
        ProtocolError, match=f"without 1 claims|another roster of round 0 than the one that {key(0).name}"
    ):
        worker.begin(following)
    if hidden == "roster":  # who joins would start from the merge of another member than the log's
        with pytest.raises(ProtocolError, match=f"another roster of round 0 than the one that {key(1).name}"):
            joiner.begin(following)
    store.replace(HEAD, whole)
    worker.begin(following)
    joiner.begin(following)


def test_garbage_over_a_message_excludes_nobody(tmp_path: Path) -> None:
    """Its sender shows it again; and who needs it when it is acknowledged takes what its author has published."""
    store, plan, coordinator, authors = training(tmp_path)
    store.put(plan.encode())
    meeting = HashStore()
    workers = [ElasticWorker(author, Mailbox(meeting, 0.6)) for author in authors]
    reception = Reception(coordinator, Mailbox(meeting, 1.0), "work", ["theta"])
    for worker in workers:
        worker.tell(0, Change.JOIN)
    reception.read()
    coordinator.begin_round()
    reception.begin()
    made = []
    for worker in workers:
        worker.begin(shown(coordinator))
        made.append(worker.make("work"))
        worker.show(made[-1], ["theta"])
    place = f"message/0/work/{key(1).name}"
    meeting.set(place, b"garbage")
    reception.read()
    assert coordinator.owing == [key(1).name]
    with pytest.raises(OperationalError, match="the final roster of round 0"):
        workers[1].gather(made[1], ["theta"])
    reception.read()
    assert not coordinator.owing
    meeting.set(place, b"garbage")
    meeting.set(f"receipt/{made[0].entry.claim.digest.hex()}", b"{}")
    workers[0].mailbox.announce(0, encode_entry(coordinator.end_round()), final=True)
    gathered = workers[0].gather(made[0], ["theta"])
    assert [claim.entry for claim in gathered] == [claim.entry for claim in made]
    assert not workers[0].journal.receipts


def test_what_nobody_asks_for_any_more_is_taken_away(tmp_path: Path) -> None:
    """A meeting held the messages of all rounds."""
    meeting = HashStore()
    drill = MembershipDrill.of(Store(f"file://{tmp_path}/store"), meeting, 6, 0)
    drill.play()
    assert meeting.num_keys() < 60


def shown(coordinator: RosterCoordinator) -> Roster:
    """The newest roster."""
    assert coordinator.roster is not None
    return coordinator.roster


def is_hidden(entry: LogEntry, hidden: str, claim: ClaimEntry, roster: Roster) -> bool:
    if hidden == "claim":
        return entry == claim
    return isinstance(entry, RosterEntry) and entry.document == roster.document.hex()
