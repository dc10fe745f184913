"""A log with a lie in it, an audit by roots, and the contract that slashes for what the audit has found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from toy_rounds import GOSSIP, MERGE, STEP, WORKERS, ToyRounds, executor_of

from pol.chain.account.wallet import Reverted
from pol.chain.rounds.accusation import Accuser
from pol.chain.rounds.round_evidence import Falsehood
from pol.chain.rounds.signed_structs import signed_head
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.demo.lying_players import Lie as FlippedBit
from pol.demo.lying_players import LyingTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import trace_of
from pol.dispute.position import Side
from pol.errors import UnsupportedError
from pol.roles.party.dispute_session import DisputeSession
from pol.rounds.auditing.claim_replay import execution_finding
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import HEAD, LogHead, LogKeeper, SignedText, load_head
from pol.rounds.roster import MAX_SEATS, ROSTER_TYPE, SHOWN_LIMIT, Member, Roster
from pol.rounds.round_claim import BoundSlot, encode_sources, sources_root, start_of
from pol.rounds.typed_message import message_digest


def audit(toy: ToyRounds, entries: list[LogEntry]) -> tuple[LoggedRounds, list[Finding]]:
    """Log the entries behind the roster of round 0, and read what the log shows."""
    store, key = toy.authors["ann"].store, toy.keys["keeper"]
    if store.holds(HEAD):
        Path(store.url.removeprefix("file://"), HEAD).unlink()
    keeper = LogKeeper(store, toy.plan.digest, key)
    for entry in (roster_entry(toy, 0), *entries):
        keeper.append(entry, 0)
    rounds = read_rounds(store, toy.plan, keeper.publish())
    return rounds, list(findings_by_roots(rounds))


def roster_entry(toy: ToyRounds, index: int) -> RosterEntry:
    """A roster that the keeper has signed."""
    roster = toy.rosters[index]
    document = toy.authors["ann"].store.put(roster.encode())
    return RosterEntry(document, toy.keys["keeper"].sign(roster.digest))


def claims(toy: ToyRounds) -> dict[tuple[str, int], ClaimEntry]:
    """The honest claims of round 0, in the order of the log."""
    return {(name, phase): toy.made[name, phase].entry for phase in (STEP, MERGE, GOSSIP) for name in WORKERS}


def from_sources(toy: ToyRounds, entry: ClaimEntry, change: Callable[[list[BoundSlot]], None]) -> ClaimEntry:
    """Ann's claim from other sources, signed and published."""
    sources = toy.sources(entry)
    change(sources)
    published = toy.authors["ann"].store.put(encode_sources(sources))
    signed = toy.signed("ann", entry, sources=sources_root(sources), start=start_of(sources))
    return replace(signed, sources=published)


def lied(toy: ToyRounds, lie: str) -> tuple[tuple[str, int], ClaimEntry]:
    """A false claim of ann's, and the place of the honest one."""
    step, merge, gossip = ((("ann", phase), toy.made["ann", phase].entry) for phase in (STEP, MERGE, GOSSIP))
    bob = toy.made["bob", STEP]

    def root(sources: list[BoundSlot]) -> None:
        sources[1] = replace(sources[1], root=b"\x07" * 32)

    def initial_slot(sources: list[BoundSlot]) -> None:
        sources[0] = BoundSlot(bob.entry.claim.digest, 0, bob.end[0].root)

    def bobs(sources: list[BoundSlot]) -> None:
        sources[0] = BoundSlot(bob.entry.claim.digest, sources[0].slot, bob.end[sources[0].slot].root)

    match lie:
        case "program":
            return step[0], toy.signed("ann", step[1], program=b"\x01" * 32)
        case "seat":
            return step[0], toy.signed("ann", step[1], constants=toy.plan.phases[STEP].constants[1].root)
        case "start":
            return merge[0], toy.signed("ann", merge[1], start=b"\x02" * 32)
        case "end of a source":
            return merge[0], from_sources(toy, merge[1], root)
        case "initial value":
            return step[0], from_sources(toy, step[1], root)
        case "rule":
            return step[0], from_sources(toy, step[1], initial_slot)
        case "own":
            return gossip[0], from_sources(toy, gossip[1], bobs)
        case _:
            return merge[0], from_sources(toy, merge[1], bobs)


def accuser(toy: ToyRounds) -> Accuser:
    return Accuser(toy.contracts, toy.wallets["challenger"], toy.plan_id, toy.commitment)


def test_an_honest_log_accuses_nobody(toy: ToyRounds) -> None:
    _, findings = audit(toy, list(claims(toy).values()))
    assert findings == []


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        ("program", Lie.PHASE),
        ("seat", Lie.PHASE),
        ("start", Lie.START),
        ("end of a source", Lie.SOURCE),
        ("initial value", Lie.SOURCE),
        ("rule", Lie.SOURCE),
        ("own", Lie.SOURCE),
        ("member", Lie.SOURCE),
    ],
    ids=lambda value: value if isinstance(value, str) else value.value,
)
def test_what_roots_reveal_is_slashed(toy: ToyRounds, lie: str, kind: Lie) -> None:
    place, false = lied(toy, lie)
    rounds, findings = audit(toy, list((claims(toy) | {place: false}).values()))
    (finding,) = [found for found in findings if found.lie is kind]
    assert finding.worker == toy.keys["ann"].name
    accuser(toy).accuse(rounds, finding)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["bob"].address).standing is Standing.JOINED
    toy.check_books()


def test_equivocations_are_slashed(toy: ToyRounds) -> None:
    """Two claims of ann's for one place, two rosters of one round."""
    honest = claims(toy)
    other = toy.signed("ann", honest["ann", GOSSIP], end=b"\x03" * 32)
    roster = replace(toy.rosters[0], members=toy.rosters[0].members[:1], partners=(), routes=())
    document = toy.authors["ann"].store.put(roster.encode())
    second = RosterEntry(document, toy.keys["keeper"].sign(roster.digest))
    rounds, findings = audit(toy, [*honest.values(), other, second])
    blamed = {finding.worker: finding for finding in findings if finding.lie is Lie.EQUIVOCATION}
    assert set(blamed) == {toy.keys["ann"].name, toy.keys["keeper"].name}
    for name in ("ann", "keeper"):
        accuser(toy).accuse(rounds, blamed[toy.keys[name].name])
        assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets[name].address).standing is Standing.SLASHED
    toy.check_books()


@pytest.mark.parametrize("seat", [0, 2])
def test_a_member_that_comes_within_a_round_is_slashed(toy: ToyRounds, seat: int) -> None:
    """The provisional roster has ann, the final one a key that wasn't there, in her seat or in another one."""
    store, keeper, final = toy.authors["ann"].store, toy.keys["keeper"], toy.rosters[1]
    begun = replace(final, provisional=True)
    late = replace(final.members[0], worker=toy.keys["challenger"].name, seat=seat)
    other = begun.ended((late, final.members[1]))
    shown = [RosterEntry(store.put(each.encode()), keeper.sign(each.digest)) for each in (begun, other)]
    rounds, findings = audit(toy, [*claims(toy).values(), *shown])
    (finding,) = [found for found in findings if found.lie is Lie.ROSTER and "provisional one" in found.detail]
    accuser(toy).accuse(rounds, finding)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED


@pytest.mark.parametrize("text", ["first", "second", "twice"])
def test_a_text_that_is_no_roster_is_slashed(toy: ToyRounds, text: str) -> None:
    """Beside a roster of its kind, or alone if it says two things; it stops nobody from reading the log."""
    store, keeper, honest = toy.authors["ann"].store, toy.keys["keeper"], toy.rosters[0].encode()
    bad = honest[:-1] + (b',"provisional":true}' if text == "twice" else b"} ")
    digest = message_digest(ROSTER_TYPE, [toy.plan_id, 0, keccak256(bad)])
    rounds, findings = audit(toy, [*claims(toy).values(), RosterEntry(store.put(bad), keeper.sign(digest))])
    (finding,) = findings
    if text == "twice":
        rounds = replace(rounds, rosters={})
    elif text == "second":
        rounds = replace(rounds, rosters={}, texts=(*rounds.texts, SignedText(0, *signed_text(toy, honest + b"  "))))
    accuser(toy).accuse(rounds, finding)
    assert toy.contracts.evidence.events("Shown")[-1]["falsehood"] == Falsehood.TWO_ROSTERS
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED


def signed_text(toy: ToyRounds, text: bytes) -> tuple[bytes, bytes]:
    """With the keeper's signature for round 0."""
    return text, toy.keys["keeper"].sign(message_digest(ROSTER_TYPE, [toy.plan_id, 0, keccak256(text)]))


def test_a_member_without_a_stake_is_found_and_slashed(toy: ToyRounds) -> None:
    final = toy.rosters[1]
    late = replace(final.members[1], worker=toy.keys["challenger"].name)
    roster = replace(final, members=(final.members[0], late))
    store, keeper = toy.authors["ann"].store, toy.keys["keeper"]
    rounds, _ = audit(toy, list(claims(toy).values()))
    assert not accuser(toy).accuse_members(rounds, load_head(store)[1])
    shown = RosterEntry(store.put(roster.encode()), keeper.sign(roster.digest))
    rounds, _ = audit(toy, [*claims(toy).values(), shown])
    assert accuser(toy).accuse_members(rounds, load_head(store)[1])
    assert toy.contracts.evidence.events("Shown")[-1]["falsehood"] == Falsehood.UNSTAKED_MEMBER


@pytest.mark.parametrize("way", ["left", "slashed"])
def test_a_member_that_has_gone_signs_on_and_its_coordinator_is_slashed(toy: ToyRounds, way: str) -> None:
    """What it has signed before is in the log when the keeper says how long that is: for the rest somebody answers."""
    bonds, demands = toy.contracts.bonds, toy.contracts.demands
    bob, store, keeper = toy.wallets["bob"], toy.authors["ann"].store, toy.keys["keeper"]
    if way == "left":
        bonds.leave(bob, toy.plan_id)
        toy.connection.wait_until(bonds.bond(toy.plan_id, bob.address).until + 1)
        bonds.depart(bob, toy.plan_id)
    else:
        step = toy.made["bob", STEP].entry
        other = toy.signed("bob", step, end=b"\x07" * 32)
        toy.contracts.evidence.show_two_claims(toy.wallets["ann"], toy.plan_id, step, other)
    rounds, _ = audit(toy, list(claims(toy).values()))
    head = load_head(store)[1]
    for _ in range(2):  # it is asked once
        assert not accuser(toy).accuse_members(rounds, head)
        (demand,) = demands.demands(toy.plan_id)
    with pytest.raises(Reverted, match="OtherSigner"):
        demands.answer_length(toy.wallets["ann"], demand, bob.address, head)
    demands.answer_length(toy.wallets["keeper"], demand, bob.address, head)
    assert not accuser(toy).accuse_members(rounds, head)
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence_of(toy, 0, head, rounds)
    roster = toy.rosters[1]
    shown = RosterEntry(store.put(roster.encode()), keeper.sign(roster.digest))
    rounds, _ = audit(toy, [*claims(toy).values(), shown])
    newer = load_head(store)[1]
    for index, error in (
        (0, "NothingWrong"),
        (len(rounds.entries) - 2, "ValueError|NothingWrong|OtherRoster|OtherText"),
    ):
        with pytest.raises(Reverted, match=error):
            evidence_of(toy, index, newer, rounds)
    assert accuser(toy).accuse_members(rounds, newer)
    assert toy.contracts.evidence.events("Shown")[-1]["falsehood"] == Falsehood.UNSTAKED_MEMBER
    assert bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED
    toy.check_books()


def evidence_of(toy: ToyRounds, index: int, head: LogHead, rounds: LoggedRounds) -> None:
    """Ann shows the first roster, which has bob, at an entry of the log."""
    roster, entry = toy.rosters[0], rounds.entries[index]
    log = CheckpointLog([keccak256(encode_entry(each)) for each in rounds.entries])
    logged = (encode_entry(entry), 0, index, signed_head(head), log.inclusion(index))
    about = (roster, toy.keys["keeper"].sign(roster.digest), toy.keys["bob"].name, logged)
    toy.contracts.evidence.show_unstaked_member(toy.wallets["ann"], toy.plan_id, *about)


@pytest.mark.parametrize("lie", [Falsehood.TWO_ROSTERS, Falsehood.SHARED_SEAT, Falsehood.LATE_MEMBER])
def test_rosters_of_any_size_are_slashed(toy: ToyRounds, lie: Falsehood) -> None:
    """Two of the longest in one transaction are more than nodes take: the coordinator of a large plan went free."""
    store, keeper, challenger = toy.authors["ann"].store, toy.keys["keeper"], toy.wallets["challenger"]
    members = tuple(Member(f"0x{number + 1:040x}", number) for number in range(MAX_SEATS + 1))
    late = replace(members[-1], seat=0) if lie is Falsehood.SHARED_SEAT else members[-1]
    final = replace(toy.rosters[1], members=(*members[1:-1], late), partners=(), routes=(), arrivals=())
    begun = longest(replace(final, members=members[:-1], provisional=lie is not Falsehood.TWO_ROSTERS))
    rosters = [begun, longest(final if lie is Falsehood.TWO_ROSTERS else begun.ended(final.members))]
    shown = [RosterEntry(store.put(each.encode()), keeper.sign(each.digest)) for each in rosters]
    rounds, findings = audit(toy, [*claims(toy).values(), *shown])
    finding = next(found for found in findings if found.worker == keeper.name and found.round == 1)
    before = len(challenger.receipts)
    accuser(toy).accuse(rounds, finding)
    assert toy.contracts.evidence.events("Shown")[-1]["falsehood"] == lie
    for receipt in challenger.receipts[before:]:
        sent = toy.connection.web3.eth.get_transaction(receipt["transactionHash"])
        assert len(sent["input"]) + 256 < 1 << 17  # the rest of a transaction is less
        assert sent["gas"] < 1 << 24  # EIP-7825
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED
    toy.check_books()


def longest(roster: Roster) -> Roster:
    """The same, as long as a roster may be."""
    first, *others = roster.members
    role = first.role + "x" * (SHOWN_LIMIT - len(roster.encode()))
    return replace(roster, members=(replace(first, role=role), *others))


def test_a_place_of_a_provisional_roster_is_slashed(toy: ToyRounds) -> None:
    """The first member of it falls out of the round: the place would have two authors."""
    toy = toy.beside("member:0")
    begun = replace(toy.rosters[0], provisional=True)
    document = toy.authors["ann"].store.put(begun.encode())
    shown = RosterEntry(document, toy.keys["keeper"].sign(begun.digest))
    entry = toy.signed("ann", toy.made["ann", STEP].entry, plan=toy.plan_id, roster=begun.document)
    rounds, findings = audit(toy, [shown, entry])
    (finding,) = [found for found in findings if found.lie is Lie.ROSTER and found.worker == entry.worker]
    accuser(toy).accuse(rounds, finding)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED


def test_a_line_counts_what_the_log_has(toy: ToyRounds) -> None:
    """Claims of one's own, from a round on, in phases that count."""
    rounds, _ = audit(toy, list(claims(toy).values()))
    for name in WORKERS:
        assert toy.commitment.line(rounds, toy.wallets[name].address) == toy.line(name)
    assert toy.commitment.line(rounds, toy.wallets["ann"].address, counted=1 << 64) == []


def test_what_roots_do_not_show_is_left_to_demands(toy: ToyRounds) -> None:
    entries = [entry for place, entry in claims(toy).items() if place != ("bob", GOSSIP)]
    left_out = toy.made["bob", GOSSIP].entry
    receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, left_out.claim.digest)
    rounds, findings = audit(toy, [*entries, receipt])
    (omission,) = [finding for finding in findings if finding.lie is Lie.OMISSION]
    with pytest.raises(UnsupportedError, match="demand what is missing"):
        accuser(toy).accuse(rounds, omission)


def test_a_false_execution_is_replayed_and_disputed(toy: ToyRounds) -> None:
    """From the published log alone: replay, dispute, walk, slash."""
    honest = toy.trace(toy.made["ann", STEP].entry)
    lie = LyingTrace(honest, FlippedBit(1, 0, 2, 0, 0, 22))
    false = toy.false_claim("ann", lie.state(lie.first_step + lie.steps)).entry
    entries = [false, toy.made["bob", STEP].entry]
    rounds, findings = audit(toy, list(entries))
    assert findings == []
    finding = execution_finding(rounds, false, executor_of)
    assert finding is not None
    assert finding.lie is Lie.EXECUTION
    number = accuser(toy).dispute(rounds, false, executor_of)
    own = trace_of(rounds, false, executor_of)
    game = toy.contracts.game
    sides = [
        DisputeSession(game, toy.wallets[name], own.program, number, ReplayPlayer(trace))
        for name, trace in (("ann", lie), ("challenger", own))
    ]
    while game.winner(number) is Side.NONE:
        for side in sides:
            side.advance()
    assert game.winner(number) is Side.CHALLENGER
    toy.contracts.disputes.settle(toy.wallets["challenger"], number)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED
    toy.check_books()
