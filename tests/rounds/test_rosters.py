"""Rosters of one round, provisional and final, and members that nobody has asked to be: the coordinator's lies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.rounds.tiny_training import COORDINATOR, TinyTraining, key
from pol.rounds.log_entries import Change, DeliveryEntry, MembershipEntry, RosterEntry
from pol.rounds.roster import Roster
from pol.rounds.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.worker_journal import WorkerJournal
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


def blamed(found: list[Finding]) -> set[tuple[Lie, str]]:
    return {(one.lie, one.worker) for one in found}


def test_a_round_goes_on_without_a_member(training: TinyTraining) -> None:
    begun = begin(training, (0, 1, 2))
    final = replace(begun, members=begun.members[:2], provisional=False)
    sign(training, final)
    merge(training, (0, 1), final)
    training.publish(0)
    training.play(1, (0, 1))
    assert not training.findings()


def test_a_merge_over_a_provisional_roster(training: TinyTraining) -> None:
    begun = begin(training, (0, 1))
    merge(training, (0, 1), begun)
    assert blamed(training.findings()) == {(Lie.ROSTER, key(number).name) for number in (0, 1)}


def test_final_rosters_that_dont_follow(training: TinyTraining) -> None:
    begun = begin(training, (0, 1))
    sign(training, replace(begun, members=begun.members[::-1], provisional=False))
    assert blamed(training.findings()) == {(Lie.ROSTER, COORDINATOR.name)}


def test_two_final_rosters_blame_the_coordinator_alone(training: TinyTraining) -> None:
    begun = begin(training, (0, 1, 2))
    finals = [replace(begun, members=begun.members[:count], provisional=False) for count in (2, 3)]
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
    final = replace(begun, members=begun.members[:2], provisional=False)
    sign(training, final)
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


def test_a_journal_survives_and_forgets(training: TinyTraining) -> None:
    for round_ in range(3):
        training.play(round_, (0, 1))
    author = training.authors[0]
    journal = WorkerJournal(training.store, training.plan.digest, author.name)
    made = [made.entry for made in author.known.values() if made.entry.worker == author.name]
    for entry in made:
        journal.add(entry)
    journal.add(DeliveryEntry.signed(COORDINATOR, training.plan.digest, 2, made[0].claim.digest))
    again = WorkerJournal(training.store, training.plan.digest, author.name)
    assert again.claims == [entry for entry in made if entry.claim.round >= 1]
    assert again.claim(*made[-1].claim.place) == made[-1]
    assert again.receipts == journal.receipts
    assert WorkerJournal(training.store, training.plan.digest, key(1).name).claims == []
