"""Logs that a keeper or a stranger has made up to blame the honest, to hide a lie, or to take an auditor's time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.rounds.tiny_training import COORDINATOR, TinyTraining, key
from pol.cli.verification.audit import document
from pol.commitments.tensor import ListTag, list_root
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.drawn_audit import audit
from pol.rounds.auditing.round_audit import Finding, Lie, claim_findings, findings_by_roots
from pol.rounds.log.log_entries import Change, ClaimEntry, DeliveryEntry, MembershipEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.log.rounds_log import LogHead, LogPiece
from pol.rounds.plan.rounds_plan import RoundsPlan, SourceRule
from pol.rounds.plan.source_rules import ClaimPlace, required_sources
from pol.rounds.round_claim import (
    BoundSlot,
    EndSlot,
    decode_sources,
    encode_end,
    encode_sources,
    sources_root,
    start_of,
)
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

OTHER_PLAN = b"\x0f" * 32


@pytest.fixture
def training(tmp_path: Path) -> TinyTraining:
    training = TinyTraining.of(Store(f"file://{tmp_path}/store"))
    training.play(0, (0, 1))
    return training


def made(training: TinyTraining, worker: int, phase: int) -> ClaimEntry:
    return training.authors[worker].known[ClaimPlace(key(worker).name, 0, phase, 0)].entry


def signed(entry: ClaimEntry, worker: int, **changes: object) -> ClaimEntry:
    claim = replace(entry.claim, **changes)  # type: ignore[arg-type]  # members by name
    return replace(entry, claim=claim, signature=key(worker).sign(claim.digest))


def end_of(slots: list[EndSlot]) -> bytes:
    return list_root(ListTag.STATE, [slot.root for slot in slots])


def blamed(found: list[Finding]) -> set[tuple[Lie, str]]:
    return {(one.lie, one.worker) for one in found if one.lie is not Lie.WITHHELD}


def test_a_made_up_claim_blames_its_keeper_alone(training: TinyTraining) -> None:
    honest = made(training, 0, 0)
    at = training.entries.index(honest)
    training.entries[at] = replace(honest, claim=replace(honest.claim, end=b"\x01" * 32))  # with another signature
    training.publish()
    for found in (audit(training.store), audit(training.store, is_all_roots=True)):
        assert blamed(list(found.findings)) == {(Lie.SIGNATURE, COORDINATOR.name)}
    assert all(entry.worker != key(0).name or entry.claim.phase for entry in training.read().claims.values())


def test_what_was_right_is_not_looked_at_again_and_hides_no_later_lie(
    training: TinyTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party looks at each new head; a second claim for a place, or a copy that nobody signed, is a lie."""
    known, honest = set[bytes](), made(training, 0, 0)
    training.publish()
    assert not list(findings_by_roots(training.read(), known=known))
    assert {entry.claim.digest for entry in training.read().claims.values()} < known
    training.entries.append(replace(honest, signature=key(1).sign(honest.claim.digest)))
    training.entries.append(signed(honest, 0, end=b"\x01" * 32))
    training.publish()
    looked = list[ClaimEntry]()

    def seen(rounds: LoggedRounds, entry: ClaimEntry) -> list[Finding]:
        looked.append(entry)
        return claim_findings(rounds, entry)

    monkeypatch.setattr("pol.rounds.auditing.round_audit.claim_findings", seen)
    expected = {(Lie.SIGNATURE, COORDINATOR.name), (Lie.EQUIVOCATION, key(0).name)}
    assert blamed(list(findings_by_roots(training.read(), known=known))) == expected
    assert len(looked) == 1


def test_a_claim_of_another_training_is_no_equivocation(training: TinyTraining) -> None:
    training.entries.append(signed(made(training, 0, 0), 0, plan=OTHER_PLAN))
    training.entries.append(signed(made(training, 0, 0), 0, plan=OTHER_PLAN, round=9))
    assert not training.findings()


def test_receipts_and_notices_of_another_training_blame_nobody(training: TinyTraining) -> None:
    receipt = DeliveryEntry.signed(COORDINATOR, OTHER_PLAN, 0, b"\x02" * 32)
    training.entries.insert(0, MembershipEntry.signed(key(1), OTHER_PLAN, 0, Change.LEAVE))
    training.entries.append(receipt)
    training.publish()
    assert not list(findings_by_roots(training.read(), receipts=[receipt]))


def test_a_receipt_promises_what_its_claim_follows_from(training: TinyTraining) -> None:
    """A keeper that leaves the steps out of a message that it has acknowledged takes their pay."""
    work, merge = made(training, 0, 0), made(training, 0, 2)
    receipt = DeliveryEntry.signed(COORDINATOR, training.plan.digest, 0, merge.claim.digest)
    others = DeliveryEntry.signed(key(1), training.plan.digest, 0, merge.claim.digest)
    training.entries = [entry for entry in training.entries if entry not in (work, receipt)]
    training.publish()
    for held, blame in (([receipt], {(Lie.OMISSION, COORDINATOR.name)}), ([others], set()), ([], set())):
        assert blamed(list(findings_by_roots(training.read(), receipts=held))) == blame


def test_who_joins_and_says_when_it_leaves_has_joined(training: TinyTraining) -> None:
    plan = training.plan.digest
    training.entries += [MembershipEntry.signed(key(2), plan, 1, Change.JOIN)]
    training.entries += [MembershipEntry.signed(key(2), plan, 2, Change.LEAVE)]
    training._joined[2] = 1
    training.play(1, (0, 1, 2))
    assert not training.findings()


def test_a_round_that_was_read_alone_says_nothing_of_notices_before(training: TinyTraining) -> None:
    training.play(1, (0, 1, 2))
    training.publish()
    rounds = training.read()
    entries = [entry for entry in rounds.entries if not isinstance(entry, MembershipEntry)]
    assert not list(findings_by_roots(replace(rounds, entries=entries, is_whole=False)))


def test_a_claim_behind_the_last_round_has_no_place(training: TinyTraining) -> None:
    for round_ in range(1, training.plan.rounds + 1):
        training.play(round_, (0, 1))
    assert blamed(training.findings()) == {(Lie.PHASE, key(0).name), (Lie.PHASE, key(1).name)}


def test_a_phase_for_another_size_of_the_roster_has_no_place(training: TinyTraining) -> None:
    # The mean of one member, in a round of two.
    author = training.authors[0]
    place = ClaimPlace(key(0).name, 0, training.plan.phase_index("merge", 1), 0)
    with pytest.raises(ProtocolError, match="for 2 members"):
        author.start(place)
    phase, work = training.plan.phases[place.phase], made(training, 0, 0)
    theta = training.authors[0].known[ClaimPlace(key(0).name, 0, 0, 0)].end[0].root
    sources = [BoundSlot(bytes(32), 0, training.plan.initial[0].root), BoundSlot(work.claim.digest, 0, theta)]
    false = signed(
        made(training, 0, 2),
        0,
        phase=place.phase,
        program=phase.program_hash,
        constants=phase.constants[0].root,
        start=start_of(sources),
        sources=sources_root(sources),
    )
    training.entries.append(replace(false, sources=training.store.put(encode_sources(sources))))
    assert blamed(training.findings()) == {(Lie.PHASE, key(0).name)}


@pytest.mark.parametrize("author", ["member:1", "route:0"])
def test_a_claim_of_anothers_place_has_none(author: str, training: TinyTraining) -> None:
    """Whoever copies what another member has computed has signed what isn't its own to make."""
    work, *merges = training.plan.phases
    plan = replace(training.plan, phases=(replace(work, author=author), *merges))
    assert RoundsPlan.decode(plan.encode()) == plan
    roster = replace(training.roster(0, (0, 1)), routes=((1,),))
    required_sources(plan, roster, None, ClaimPlace(key(1).name, 0, 0, 0))
    with pytest.raises(ProtocolError, match=f"part 0 of phase work is {key(1).name}'s"):
        required_sources(plan, roster, None, ClaimPlace(key(0).name, 0, 0, 0))
    for wrong in ("own", "route:0:1"):
        with pytest.raises(ProtocolError, match="the author of phase work"):
            replace(work, author=wrong)


def test_claims_without_a_place_dilute_no_draw(training: TinyTraining) -> None:
    """Of a stranger, for parts that there aren't, a second one for a place: roots show them, and nobody draws them."""
    honest = {entry.claim.digest for entry in training.entries if isinstance(entry, ClaimEntry)}
    stranger = WorkerKey(b"\x77" * 32)
    for part in range(20):
        entry = made(training, 0, 0)
        claim = replace(entry.claim, worker=stranger.name, part=part)
        training.entries.append(replace(entry, claim=claim, signature=stranger.sign(claim.digest)))
        training.entries.append(signed(entry, 0, part=1 + part))
        training.entries.append(signed(entry, 0, end=bytes([part]) * 32))
    training.publish()
    found = audit(training.store, draws=len(honest), seed=b"\x01" * 32)
    assert {entry.claim.digest for entry in found.claims} == honest
    with pytest.raises(OperationalError, match=f"of {len(honest)} claims"):
        audit(training.store, draws=len(honest) + 1, seed=b"\x01" * 32)


def test_phases_that_the_plan_does_not_have(training: TinyTraining) -> None:
    training.entries.append(signed(made(training, 0, 0), 0, phase=99))
    training.publish()
    found = audit(training.store)
    assert blamed(list(found.findings)) == {(Lie.PHASE, key(0).name)}
    assert document(found)["outcome"] == "rejected"
    rounds = training.read()
    lies = findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    assert [one.phase for one in lies] == ["phase 99"]


@pytest.mark.parametrize("is_end", [True, False])
def test_a_source_with_more_slots_than_its_program(is_end: bool, training: TinyTraining) -> None:
    """It is replayed as one that is withheld, and its author alone is blamed: nothing else falls over."""
    work = training.authors[0].known[ClaimPlace(key(0).name, 0, 0, 0)]
    sources = decode_sources(training.store.get(work.entry.sources))
    if is_end:
        longer = [*work.end, work.end[0]]
        false = replace(signed(work.entry, 0, end=end_of(longer)), roots=training.store.put(encode_end(longer)))
    else:
        kept = [replace(slot, is_held=False) for slot in work.end]
        false = signed(work.entry, 0, start=start_of(sources[:1]), sources=sources_root(sources[:1]))
        roots, short = training.store.put(encode_end(kept)), training.store.put(encode_sources(sources[:1]))
        false = replace(false, roots=roots, sources=short)
    training.entries[training.entries.index(work.entry)] = false
    merge = made(training, 1, 2)
    bound = [
        BoundSlot(false.claim.digest, one.slot, one.root) if one.claim == work.entry.claim.digest else one
        for one in decode_sources(training.store.get(merge.sources))
    ]
    told = signed(merge, 1, sources=sources_root(bound))
    training.entries[training.entries.index(merge)] = replace(told, sources=training.store.put(encode_sources(bound)))
    training.publish()
    rounds = training.read()
    found = list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    assert key(0).name in {one.worker for one in found}
    assert blamed(found) <= {(Lie.EXECUTION, key(0).name)}


@pytest.mark.parametrize("of", ["member:" + "9" * 5000, "member:٣", "member:-1", "member:01", "route:0:4294967296"])
def test_rules_with_numbers_that_are_none(of: str) -> None:
    with pytest.raises(ProtocolError, match="a source of"):
        SourceRule("work", 0, of)


def test_a_head_with_pages_that_its_size_does_not_have() -> None:
    page = LogPiece("00" * 32, 0)
    head = LogHead(bytes(32), 300, bytes(32), bytes(65), (), (page, replace(page, object="01" * 32)))
    assert LogHead.decode(head.encode()) == head
    with pytest.raises(ProtocolError, match="pages"):
        LogHead.decode(replace(head, pages=(page,) * 3).encode())
    with pytest.raises(ProtocolError, match="twice"):
        LogHead.decode(replace(head, pages=(page, page)).encode())


@pytest.mark.parametrize("sizes", [(0, 0), (2, 2), (2, 0)])
def test_two_phases_for_one_roster(sizes: tuple[int, int], training: TinyTraining) -> None:
    work = training.plan.phases[0]
    phases = (*training.plan.phases, *(replace(work, name="twice", members=size) for size in sizes))
    with pytest.raises(ProtocolError, match="two phases twice"):
        replace(training.plan, phases=phases)


@pytest.mark.long
def test_a_plan_of_a_hundred_thousand_phases_is_read_in_linear_time(training: TinyTraining) -> None:
    plan, count = training.plan, 100_000
    work = plan.phases[0]
    rule = replace(work.sources[0], phase=f"{count - 1}")
    phases = tuple(replace(work, name=f"{number}", sources=(rule,)) for number in range(count))
    long = replace(plan, phases=phases)
    assert [long.phase_index(f"{number}", 2) for number in range(count)] == list(range(count))


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("sort", ["others", "sources", "roots", "tensors", "held"])
def test_a_strangers_copy_of_an_entry_hides_nothing(
    sort: str, is_first: bool, training: TinyTraining, tmp_path: Path
) -> None:
    """No signature covers which objects show a claim: whoever has seen it can enter it with others.

    Bytes that aren't those of their digest, or too many, are as good as none. Or the roots are right, but each slot is
    said to be in the file if it isn't, and not if it is.
    """
    work = training.authors[0].known[ClaimPlace(key(0).name, 0, 0, 0)]
    changed: dict[str, Any] = dict.fromkeys(("sources", "roots", "tensors"), junk := training.store.put(b"junk"))
    if sort == "held":
        flipped = [replace(slot, is_held=not slot.is_held) for slot in work.end]
        changed = {"roots": training.store.put(encode_end(flipped))}
    elif sort != "others":
        changed = {sort: junk}
        (tmp_path / "store" / junk[:2] / junk).write_bytes(b"other junk")
    training.entries.insert(training.entries.index(work.entry) + (not is_first), replace(work.entry, **changed))
    training.publish()
    assert audit(training.store).outcome == "accepted"


def test_damaged_sources_are_withheld(training: TinyTraining, tmp_path: Path) -> None:
    """Of one claim: the audit of all others goes on."""
    honest = made(training, 0, 0)
    (tmp_path / "store" / honest.sources[:2] / honest.sources).write_bytes(b"junk")
    training.publish()
    found = audit(training.store, is_all_roots=True)
    assert found.outcome == "inconclusive"
    assert {one.lie for one in found.findings} == {Lie.WITHHELD}  # nobody's lie


def test_a_lie_that_stands_twice_is_told_once(training: TinyTraining) -> None:
    false = signed(made(training, 0, 0), 0, steps=1)
    training.entries += [false, replace(false, roots=training.store.put(b"junk"))]
    assert len([one for one in training.findings() if one.claim == false.claim.digest]) == 1
