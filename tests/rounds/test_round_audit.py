"""Lies about bound inputs, rosters and receipts: found by roots alone, and never in honest rounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.rounds.claim_dispute import walked
from lab.rounds.tiny_training import COORDINATOR, LIAR, Liar, TinyTraining, key
from pol.arithmetic.primitives import Words
from pol.commitments.tensor import tensor_root
from pol.dispute.play.round_evidence import trace_of
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing import claim_replay
from pol.rounds.auditing.claim_replay import FalseSourceError, findings_by_replay, load_start
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, RosterEntry
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.round_claim import BoundSlot, decode_sources, encode_sources, sources_root, start_of
from pol.training.storage.store import Store


@pytest.fixture
def training(tmp_path: Path) -> TinyTraining:
    return TinyTraining.of(Store(f"file://{tmp_path}/store"))


def test_honest_rounds_with_joins_and_leaves(training: TinyTraining) -> None:
    for round_, members in enumerate([(0, 1), (0, 1, 2), (1, 2), (2,)]):
        training.play(round_, members)
        training.publish(round_)
    rounds = training.read()
    assert not training.findings()
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    joined = next(e for e in rounds.claims.values() if e.worker == key(2).name and e.claim.round == 1)
    theta, speed = load_start(rounds, joined)
    merged = training.authors[0].known[ClaimPlace(key(0).name, 0, 2, 0)]
    assert np.array_equal(theta, merged.words[0])
    assert np.all(speed.view(np.float32) == 0.25)


def _entry(training: TinyTraining, worker: int, phase: int, round_: int = 1) -> tuple[int, ClaimEntry]:
    """A claim and its place among the entries that aren't published yet."""
    return next(
        (at, entry)
        for at, entry in enumerate(training.entries)
        if isinstance(entry, ClaimEntry)
        and (entry.worker, entry.claim.phase, entry.claim.round) == (key(worker).name, phase, round_)
    )


def _signed(entry: ClaimEntry, worker: int, **changes: object) -> ClaimEntry:
    claim = replace(entry.claim, **changes)  # type: ignore[arg-type]  # members by name
    return replace(entry, claim=claim, signature=key(worker).sign(claim.digest))


def _change(training: TinyTraining, **changes: object) -> None:
    """Worker 1 signs another claim about its work in round 1."""
    at, entry = _entry(training, 1, 0)
    training.entries[at] = _signed(entry, 1, **changes)


def _change_source(training: TinyTraining, source: Callable[[BoundSlot], BoundSlot]) -> None:
    """It signs the same claim with another source of its first slot."""
    at, entry = _entry(training, 1, 0)
    first, *others = decode_sources(training.store.get(entry.sources))
    sources = [source(first), *others]
    changed = _signed(entry, 1, start=start_of(sources), sources=sources_root(sources))
    training.entries[at] = replace(changed, sources=training.store.put(encode_sources(sources)))


def _stale_source(training: TinyTraining) -> None:
    """Its own work of the round before instead of the merge: a worker that ignores the others."""
    work = training.authors[1].known[ClaimPlace(key(1).name, 0, 0, 0)]
    _change_source(training, lambda _: BoundSlot(work.entry.claim.digest, 0, work.end[0].root))


def _other_tensor(training: TinyTraining) -> None:
    """The merge's claim is named, but with the root of another tensor."""
    type_ = training.plan.initial[0].type
    root = tensor_root(type_, np.full(type_.shape, 5, np.uint32))
    _change_source(training, lambda source: replace(source, root=root))


def _two_claims(training: TinyTraining) -> None:
    training.entries.append(_signed(_entry(training, 1, 0)[1], 1, end=bytes([9]) * 32))


@pytest.mark.parametrize(
    ("change", "lie"),
    [
        (lambda training: _change(training, start=bytes([7]) * 32), Lie.START),
        (_stale_source, Lie.SOURCE),
        (_other_tensor, Lie.SOURCE),
        (lambda training: _change(training, steps=1), Lie.PHASE),
        # The data of another seat.
        (lambda training: _change(training, constants=training.plan.phases[0].constants_of(0).root), Lie.PHASE),
        (_two_claims, Lie.EQUIVOCATION),
    ],
)
def test_false_by_its_roots(change: Callable[[TinyTraining], None], lie: Lie, training: TinyTraining) -> None:
    training.play(0, (0, 1))
    training.publish(0)
    training.play(1, (0, 1))
    change(training)
    own = training.findings()
    # What others have bound to the claim that was replaced isn't in the log any more; their author isn't the liar.
    assert {(found.lie, found.worker) for found in own if found.worker == key(1).name} >= {(lie, key(1).name)}


def test_a_jump_is_found_by_replay_and_ends_at_one_scalar(training: TinyTraining) -> None:
    class Jumper(ClaimAuthor):
        def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
            end = super().run(place, start, first_step, steps)
            if place.phase == 0 and place.round == 1:
                end[0] = end[0].copy()
                end[0][17] ^= 1
            return end

    training.author(1, Jumper)
    for round_ in range(3):
        training.play(round_, (0, 1))
    assert not training.findings()
    rounds = training.read()
    (found,) = findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    assert (found.lie, found.worker, found.round, found.phase) == (Lie.EXECUTION, key(1).name, 1, "work")
    assert walked(rounds, rounds.claims[found.claim]).winner is Side.CHALLENGER


def test_a_forged_signature_blames_the_keeper(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    at, entry = _entry(training, 1, 0, round_=0)
    training.entries[at] = replace(entry, signature=key(0).sign(entry.claim.digest))
    lies = {(found.lie, found.worker) for found in training.findings() if found.lie is not Lie.WITHHELD}
    assert lies == {(Lie.SIGNATURE, COORDINATOR.name)}


def test_an_omitted_submission_blames_the_keeper_by_its_receipt(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    at, omitted = _entry(training, 1, 2, round_=0)
    del training.entries[at]
    training.entries.append(DeliveryEntry.signed(COORDINATOR, training.plan.digest, 0, omitted.claim.digest))
    (found,) = training.findings()
    assert (found.lie, found.worker, found.claim) == (Lie.OMISSION, COORDINATOR.name, omitted.claim.digest)


def test_rounds_that_were_read_alone_accuse_nobody_of_what_is_missing(training: TinyTraining) -> None:
    for round_ in range(3):
        training.play(round_, (0, 1))
        training.publish(round_)
    rounds = training.read()
    late = replace(rounds, claims={d: e for d, e in rounds.claims.items() if e.claim.round > 0}, is_whole=False)
    assert {found.lie for found in findings_by_roots(late, 1)} == {Lie.WITHHELD}


def test_two_rosters_blame_the_coordinator_alone(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    other = training.roster(0, (1, 0))
    assert isinstance(training.entries[-1], RosterEntry)
    assert other.round == 0
    assert {(found.lie, found.worker) for found in training.findings()} == {(Lie.EQUIVOCATION, COORDINATOR.name)}


def test_rosters_that_the_keeper_leaves_out_blame_no_worker(training: TinyTraining) -> None:
    for round_ in range(2):
        training.play(round_, (0, 1))
    rosters = [at for at, entry in enumerate(training.entries) if isinstance(entry, RosterEntry)]
    del training.entries[rosters[0]]
    found = training.findings()
    assert {one.lie for one in found} == {Lie.WITHHELD, Lie.ROSTER}
    # The next roster says that its members are old ones; no roster of the log has them.
    assert {one.worker for one in found if one.lie is Lie.ROSTER} == {COORDINATOR.name}


def withhold(training: TinyTraining, *members: str) -> None:
    """All that is in the log of the first phase is published without these objects."""
    changes: dict[str, Any] = {"tensors": "", "sources": "00" * 32}
    withheld = {member: changes[member] for member in members}
    training.entries = [
        replace(entry, **withheld) if isinstance(entry, ClaimEntry) and entry.claim.phase == 0 else entry
        for entry in training.entries
    ]


def test_what_is_withheld_is_replayed(training: TinyTraining, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lie, and no way to end an audit: it follows from what was published, a round or more before."""
    for round_ in range(3):
        training.play(round_, (0, 1))
    withhold(training, "tensors")
    assert not training.findings()
    rounds = training.read()
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    monkeypatch.setattr(claim_replay, "MOST_REPLAYS", 2)  # those of one round: speeds come from the one before
    late = [entry for entry in rounds.claims.values() if entry.claim.round == 2]
    found = list(findings_by_replay(rounds, late, CpuExecutor))
    assert {(one.lie, one.phase) for one in found} == {(Lie.WITHHELD, "merge")}


def test_a_withheld_end_hides_no_lie(training: TinyTraining) -> None:
    """Nobody can read it, and whoever audits what follows from it finds its author."""
    training.author(LIAR, Liar)
    for round_ in range(3):
        training.play(round_, (0, LIAR))
    withhold(training, "tensors")
    assert not training.findings()
    rounds = training.read()
    merges = [entry for entry in rounds.claims.values() if entry.claim.phase and entry.claim.round == 1]
    found = list(findings_by_replay(rounds, merges, CpuExecutor))
    told = {(one.lie, one.worker, one.round, one.phase) for one in found}
    assert told == {(Lie.EXECUTION, key(LIAR).name, 1, "work")}
    false = rounds.claims[found[0].claim]
    with pytest.raises(FalseSourceError, match="follows from a false claim whose end is withheld"):
        trace_of(rounds, merges[0], CpuExecutor)
    assert trace_of(rounds, false, CpuExecutor).state_root(false.claim.first_step + 3) != false.claim.end


def test_withheld_sources_are_no_lie(training: TinyTraining) -> None:
    """Whoever wants to know where a slot comes from demands it on the chain."""
    training.play(0, (0, 1))
    withhold(training, "tensors", "sources")
    assert {found.lie for found in training.findings()} == {Lie.WITHHELD}
    rounds = training.read()
    merges = [entry for entry in rounds.claims.values() if entry.claim.phase == 2]
    assert {found.lie for found in findings_by_replay(rounds, merges, CpuExecutor)} == {Lie.WITHHELD}


def test_a_source_that_has_not_come(training: TinyTraining) -> None:
    roster = training.roster(0, (0, 1))
    author = training.author(0)
    author.rosters[0] = roster
    author.make(0, "work")
    with pytest.raises(ProtocolError, match="hasn't come: ask for it, or go on with a roster without its author"):
        author.make(0, "merge")


def test_a_cut_log_is_no_log(training: TinyTraining) -> None:
    training.play(0, (0, 1))
    training.publish(0)
    head = Store(training.store.url).read("rounds.json")
    training.store.replace("rounds.json", head.replace(b'"size":', b'"size":1'))
    with pytest.raises((ProtocolError, OperationalError)):
        training.read()


def test_a_receiver_is_not_blamed_for_what_the_keeper_leaves_out(training: TinyTraining) -> None:
    """And findings are sentences."""
    training.play(0, (0, 1))
    training.entries.append(DeliveryEntry.signed(key(0), training.plan.digest, 0, bytes([3]) * 32))
    (found,) = training.findings()
    assert isinstance(found, Finding)
    assert found.lie is Lie.WITHHELD
    assert str(found) == f"round 0, log: {key(0).name}: has acknowledged claim {'03' * 8}, and the log doesn't have it"
