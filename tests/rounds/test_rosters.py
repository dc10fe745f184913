"""Rosters of one round, provisional and final, and members that nobody has asked to be: the coordinator's lies."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.rounds.tiny_training import COORDINATOR, TinyTraining, key
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.auditing.roster_rules import unasked
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.log_entries import Change, DeliveryEntry, LogEntry, MembershipEntry, RosterEntry
from pol.rounds.log.rounds_log import rosters_of
from pol.rounds.roster import ROSTER_LIMIT, ROSTER_TYPE, Member, Roster
from pol.rounds.typed_message import message_digest
from pol.training.storage.store import Store


@pytest.fixture
def training(tmp_path: Path) -> TinyTraining:
    return TinyTraining.of(Store(f"file://{tmp_path}/store"))


def begin(training: TinyTraining, numbers: tuple[int, ...]) -> Roster:
    """A provisional roster of round 0, under which its members work."""
    provisional = replace(training.roster(0, numbers), provisional=True)
    sign(training, provisional, at=-1)
    for number in numbers:
        author = training.author(number)
        author.rosters[0] = provisional
        training.entries.append(author.make(0, "work").entry)
    return provisional


def sign(training: TinyTraining, roster: Roster, at: int | None = None) -> None:
    entry = RosterEntry(training.store.put(roster.encode()), COORDINATOR.sign(roster.digest))
    if at is None:
        training.entries.append(entry)
    else:
        training.entries[at] = entry


def merge(training: TinyTraining, numbers: tuple[int, ...], roster: Roster) -> None:
    for number in numbers:
        author = training.authors[number]
        author.rosters[0] = roster
        for other in numbers:
            author.known |= training.authors[other].known
        training.entries.append(author.make(0, "merge").entry)


def roster_entry(training: TinyTraining, roster: Roster) -> RosterEntry:
    entries = [one for one in training.entries if isinstance(one, RosterEntry)]
    return next(one for one in entries if one.document == roster.document.hex())


def decode_forged(training: TinyTraining, data: bytes) -> None:
    """Read a document for round 0 that the coordinator has signed."""
    digest = message_digest(ROSTER_TYPE, [training.plan.digest, 0, keccak256(data)])
    Roster.decode_signed(data, training.plan.digest, COORDINATOR.name, COORDINATOR.sign(digest))


def blamed(found: list[Finding]) -> set[tuple[Lie, str]]:
    return {(one.lie, one.worker) for one in found}


def test_a_round_goes_on_without_a_member(training: TinyTraining) -> None:
    begun = begin(training, (0, 1, 2))
    final = begun.ended(begun.members[:2])
    sign(training, final)
    merge(training, (0, 1), final)
    training.publish(0)
    training.play(1, (0, 1))
    assert not training.findings()


def test_a_merge_over_a_provisional_roster(training: TinyTraining) -> None:
    merge(training, (0, 1), begin(training, (0, 1)))
    assert blamed(training.findings()) == {(Lie.ROSTER, key(number).name) for number in (0, 1)}


def test_final_rosters_that_dont_follow(training: TinyTraining) -> None:
    begun = begin(training, (0, 1))
    sign(training, begun.ended(begun.members[::-1]))
    assert blamed(training.findings()) == {(Lie.ROSTER, COORDINATOR.name)}


def test_two_final_rosters_blame_the_coordinator_alone(training: TinyTraining) -> None:
    begun = begin(training, (0, 1, 2))
    finals = [begun.ended(begun.members[:count]) for count in (2, 3)]
    for final in finals:
        sign(training, final)
    merge(training, (0, 1), finals[0])
    training.publish(0)
    for number in (0, 1):
        training.authors[number].rosters[0] = finals[0]
    training.play(1, (0, 1))
    assert blamed(training.findings()) == {(Lie.EQUIVOCATION, COORDINATOR.name)}


def test_an_acknowledged_message_is_left_out(training: TinyTraining) -> None:
    begun = begin(training, (0, 1, 2))
    sent = training.authors[2].known.popitem()[1].entry.claim.digest
    receipt = DeliveryEntry.signed(COORDINATOR, training.plan.digest, 0, sent)
    sign(training, begun.ended(begun.members[:2]))
    assert not training.findings()
    held = list(findings_by_roots(training.read(), receipts=[receipt]))
    assert blamed(held) == {(Lie.OMISSION, COORDINATOR.name)}
    others = DeliveryEntry.signed(key(0), training.plan.digest, 0, sent)
    assert not list(findings_by_roots(training.read(), receipts=[others]))


def test_members_that_have_left_or_never_asked(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    training.entries.append(MembershipEntry.signed(key(1), training.plan.digest, 1, Change.LEAVE))
    training.roster(1, (0, 1))
    training.roster(2, (0, 2))
    (entry,) = [one for one in training.entries if isinstance(one, MembershipEntry) and one.change is Change.JOIN]
    training.entries.remove(entry)
    found = [one for one in training.findings() if one.lie is not Lie.WITHHELD]
    assert [(one.lie, one.worker, one.round) for one in found] == [
        (Lie.ROSTER, COORDINATOR.name, 1),
        (Lie.ROSTER, COORDINATOR.name, 2),
    ]
    assert "which had left" in found[0].detail
    assert "hasn't asked to join" in found[1].detail


@pytest.mark.parametrize("is_there", [False, True])
def test_a_member_that_no_roster_before_has(is_there: bool, training: TinyTraining) -> None:
    """It is said to have joined in round 0, so it wouldn't have to ask; unless a roster of that round has it."""
    training.play(0, (0, 1, 2) if is_there else (0, 1))
    honest = training.roster(1, (0, 2))
    members = (honest.members[0], replace(honest.members[1], joined=0))
    sign(training, replace(honest, members=members), at=-1)
    found = [one for one in training.findings() if one.lie is Lie.ROSTER]
    assert [one.worker for one in found] == [] if is_there else [COORDINATOR.name]
    assert is_there or "no roster before has it" in found[0].detail


@pytest.mark.parametrize(
    ("change", "detail"),
    [({"joined": 2}, "hasn't asked to join"), ({"seat": 3}, "has moved"), ({"role": "stage 1"}, "has moved")],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_member_stays_what_it_was(change: dict[str, Any], detail: str, training: TinyTraining) -> None:
    """Behind a draw its coordinator can neither take it for a joiner again nor give it another seat or role."""
    training.play(0, (0, 1))
    training.play(1, (0, 2))
    honest = training.roster(2, (0, 2))
    moved = replace(honest.members[1], **change)
    sign(training, replace(honest, members=(honest.members[0], moved)), at=-1)
    (found,) = [one for one in training.findings() if one.lie is Lie.ROSTER]
    assert (found.worker, found.round) == (COORDINATOR.name, 2)
    assert detail in found.detail


def test_a_later_roster_is_none_before(training: TinyTraining) -> None:
    """The order of the log doesn't help: the rounds count."""
    training.play(0, (0, 1))
    honest, later = training.roster(1, (0, 2)), training.roster(2, (0, 2))
    training.entries.remove(roster_entry(training, honest))
    sign(training, replace(honest, members=(honest.members[0], replace(honest.members[1], joined=0))))
    found = [one for one in training.findings() if one.lie is Lie.ROSTER and "no roster before" in one.detail]
    assert {one.round for one in found} == {1, 2}
    assert later.members[1].joined == 1


def test_the_last_notice_for_a_round_or_one_before_it_counts() -> None:
    """Against a look at all of them, for rosters and notices in any order."""
    drawn = random.Random(0)
    for _ in range(300):
        entries: list[LogEntry] = []
        rosters: dict[str, Roster] = {}
        left: dict[str, bool] = {}
        for number in range(10):
            round_, plan = drawn.randrange(5), bytes([drawn.randrange(2)]) * 32
            if drawn.random() < 0.6:
                change = drawn.choice([Change.JOIN, Change.LEAVE])
                entries.append(MembershipEntry(plan, round_, key(0).name, change, b""))
                continue
            document = f"{number:064x}"
            rosters[document] = Roster(plan, round_, (Member(key(0).name, 0, round_),))
            said = [
                each.change
                for each in entries
                if isinstance(each, MembershipEntry) and each.round <= round_ and each.plan == plan
            ]
            left[document] = said[-1:] == [Change.LEAVE]
            entries.append(RosterEntry(document, b""))
        told = [roster for roster, problem in unasked(entries, rosters) if problem.endswith("had left")]
        assert told == [roster for document, roster in rosters.items() if left[document]]


class CountedRound(int):
    """Counts how often rounds are compared."""

    looks = 0

    def __lt__(self, other: int) -> bool:
        CountedRound.looks += 1
        return int(self) < int(other)

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __gt__(self, other: int) -> bool:
        CountedRound.looks += 1
        return int(self) > int(other)

    def __le__(self, other: int) -> bool:
        return not self > other


def test_a_worker_that_comes_and_goes_in_every_round_keeps_no_reader_busy(training: TinyTraining) -> None:
    plan, rosters, entries, count = training.plan, dict[str, Roster](), list[LogEntry](), 2_000
    for round_ in map(CountedRound, range(count)):
        document = f"{round_:064x}"
        entries.append(MembershipEntry(plan.digest, round_, key(0).name, Change.JOIN, b""))
        entries.append(RosterEntry(document, b""))
        rosters[document] = Roster(plan.digest, round_, (Member(key(0).name, 0, round_),))
    CountedRound.looks = 0
    assert not list(unasked(entries, rosters))
    assert count < CountedRound.looks < 30 * count


def test_a_roster_that_stands_there_twice_is_read_once(training: TinyTraining) -> None:
    sign(training, training.roster(0, (0, 1)))
    entry = training.entries[-1]
    assert isinstance(entry, RosterEntry)
    twice = [entry, replace(entry, signature=bytes(65)), entry]
    assert rosters_of(training.store, training.plan, twice) == rosters_of(training.store, training.plan, [entry])
    assert len(rosters_of(training.store, training.plan, twice[1:])[0]) == 1


def test_a_provisional_roster_that_is_signed_since_blames_the_coordinator(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    training.publish()
    (final,) = training.read().rosters[0]
    sign(training, replace(final, members=(*final.members, Member(key(2).name, 2)), provisional=True))
    assert blamed(training.findings()) == {(Lie.ROSTER, COORDINATOR.name)}


def test_a_signed_text_that_is_no_roster_ends_nobodys_reading(training: TinyTraining) -> None:
    """One bad text of the coordinator's once made all of its log unreadable; it is a lie of its own."""
    training.play(0, (0, 1))
    training.publish()
    before = training.read()
    for data in (b'{"round":0,"routes":[]', b"x" * (ROSTER_LIMIT + 1)):
        digest = message_digest(ROSTER_TYPE, [training.plan.digest, 0, keccak256(data)])
        training.entries.append(RosterEntry(training.store.put(data), COORDINATOR.sign(digest)))
    training.publish(0)
    assert training.read().rosters == before.rosters
    assert blamed(training.findings()) == {(Lie.ROSTER, COORDINATOR.name)}


def test_what_the_coordinator_has_not_signed_is_not_read(training: TinyTraining) -> None:
    """A document that is no roster, one that is signed by a worker, and one without a round."""
    roster = training.roster(0, (0, 1))
    for data in (b'{"round":0,"routes":[]', replace(roster, members=roster.members[:1]).encode(), b"nothing"):
        training.entries.append(RosterEntry(training.store.put(data), key(0).sign(roster.digest)))
    training.publish(0)
    assert training.read().rosters[0] == [roster]


def test_a_signed_document_that_is_no_roster(training: TinyTraining) -> None:
    data = b'{"round":0,"routes":[]'
    with pytest.raises(ProtocolError, match="the roster"):
        decode_forged(training, data)
    assert Roster.decode_signed(data, training.plan.digest, key(0).name, bytes(64) + b"\x1b") is None
