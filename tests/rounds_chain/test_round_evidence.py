"""What roots and signatures show: claims of another phase, start, source or rule, and equivocations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from toy_rounds import GOSSIP, MERGE, MONEY, STEP, ToyRounds
from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted
from pol.chain.rounds.round_evidence import AccusedSource, Falsehood
from pol.chain.rounds.signed_structs import phase_proof, signed_claim, tensor_proof
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, encode_entry
from pol.rounds.roster import ROSTER_TYPE, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot, sources_root, start_of
from pol.rounds.typed_message import message_digest


def expect_slashed(toy: ToyRounds, name: str, falsehood: Falsehood, show: Callable[[], TxReceipt]) -> None:
    """Showing it costs the party its stake, of which the prover gets the smaller share."""
    account, before = toy.wallets[name].address, (toy.free("challenger"), toy.free("treasury"))
    stake = toy.contracts.bonds.bond(toy.plan_id, account).stake
    show()
    assert toy.contracts.bonds.bond(toy.plan_id, account).standing is Standing.SLASHED
    assert toy.contracts.evidence.events("Shown", worker=account)[-1]["falsehood"] == falsehood
    assert toy.free("challenger") - before[0] == stake // 16
    assert toy.free("treasury") - before[1] == stake - stake // 16
    toy.check_books()
    with pytest.raises(Reverted, match="WrongStanding"):
        show()


def with_sources(toy: ToyRounds, entry: ClaimEntry, sources: list[BoundSlot]) -> ClaimEntry:
    """Ann's claim from other sources, signed."""
    return toy.signed("ann", entry, sources=sources_root(sources), start=start_of(sources))


@pytest.mark.parametrize(
    "changes",
    [
        {"program": b"\x01" * 32},
        {"constants": b"\x02" * 32},
        {"steps": 3},
        {"first_step": 4},
        {"part": 1},
        {"round": 7},
        {"phase": 3},
        {"end": bytes(32)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_claim_of_another_phase_is_slashed(toy: ToyRounds, changes: dict[str, object]) -> None:
    entry = toy.signed("ann", toy.made["ann", STEP].entry, **changes)
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]

    def show() -> TxReceipt:
        return evidence.show_other_phase(challenger, toy.plan_id, entry, toy.commitment)

    expect_slashed(toy, "ann", Falsehood.OTHER_PHASE, show)


def test_the_constants_of_another_seat_are_slashed(toy: ToyRounds) -> None:
    """Ann steps on bob's data: a constant of the phase, but not of her seat."""
    evidence, challenger, honest = toy.contracts.evidence, toy.wallets["challenger"], toy.made["ann", STEP].entry
    for innocent in (made.entry for made in toy.made.values()):
        with pytest.raises(Reverted, match="NothingWrong"):
            evidence.show_other_seat(challenger, toy.plan_id, innocent, toy.commitment, toy.rosters[0])
    others = toy.plan.phases[STEP].constants[1].root
    false = toy.signed("ann", honest, constants=others)
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_phase(challenger, toy.plan_id, false, toy.commitment)
    with pytest.raises(Reverted, match="OtherRoster"):
        evidence.show_other_seat(challenger, toy.plan_id, false, toy.commitment, toy.rosters[1])

    def show() -> TxReceipt:
        return evidence.show_other_seat(challenger, toy.plan_id, false, toy.commitment, toy.rosters[0])

    expect_slashed(toy, "ann", Falsehood.OTHER_SEAT, show)


def test_a_seat_is_read_where_it_stands(toy: ToyRounds) -> None:
    """A role that looks like a member, the seat of another worker, a place that is none."""
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    forged = f'"seat":1,"weight":1,"worker":"{toy.keys["ann"].name}"'
    members = (replace(toy.rosters[0].members[0], role=forged), toy.rosters[0].members[1])
    roster = replace(toy.rosters[0], members=members)
    entry = toy.signed("ann", toy.made["ann", STEP].entry, roster=roster.document)
    document, proof = roster.encode(), phase_proof(toy.commitment, STEP)
    roots = [constants.root for constants in toy.plan.phases[STEP].constants]
    in_role, of_bob = document.index(b'\\"seat') + 1, document.rindex(b'"seat":1')
    for at in (in_role, of_bob, document.index(b"seat"), len(document) - 3):
        about = (signed_claim(entry), proof, document, at, tensor_proof(roots, 1))
        with pytest.raises(Reverted, match="OtherText"):
            evidence.transact(challenger, "showOtherSeat", toy.plan_id, *about)
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_seat(challenger, toy.plan_id, entry, toy.commitment, roster)


def test_a_start_that_its_sources_do_not_give_is_slashed(toy: ToyRounds) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    entry = toy.made["ann", MERGE].entry
    sources = toy.sources(entry)
    false = toy.signed("ann", entry, start=b"\x07" * 32)

    def show(what: ClaimEntry = false, given: list[BoundSlot] = sources) -> TxReceipt:
        return evidence.show_other_start(challenger, toy.plan_id, what, toy.commitment, given)

    for made in toy.made.values():
        with pytest.raises(Reverted, match="NothingWrong"):
            show(made.entry, toy.sources(made.entry))
    for wrong in (sources[:1], [*sources, sources[0]], sources[::-1]):
        with pytest.raises(Reverted, match="NotInSources"):
            show(given=wrong)
    expect_slashed(toy, "ann", Falsehood.OTHER_START, show)


def test_a_source_that_its_claim_does_not_give_is_slashed(toy: ToyRounds) -> None:
    """Ann says that bob's end holds something else: ann is to blame, whoever has signed the named claim."""
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    entry, named = toy.made["ann", MERGE].entry, toy.made["bob", STEP]
    sources, end = toy.sources(entry), [slot.root for slot in named.end]
    false_sources = [sources[0], replace(sources[1], root=b"\x07" * 32)]
    false = with_sources(toy, entry, false_sources)
    claim = named.entry.claim

    def show(what: ClaimEntry = false, given: list[BoundSlot] = false_sources) -> TxReceipt:
        return evidence.show_other_source(
            challenger, toy.plan_id, AccusedSource(what, toy.commitment, given, 1), claim, end
        )

    with pytest.raises(Reverted, match="NothingWrong"):
        show(entry, sources)
    with pytest.raises(Reverted, match="NotInSources"):
        show(entry, false_sources)
    expect_slashed(toy, "ann", Falsehood.OTHER_SOURCE, show)


def test_a_slot_that_its_claim_does_not_have_is_slashed(toy: ToyRounds) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    entry, named = toy.made["ann", MERGE].entry, toy.made["bob", STEP]
    sources, end = toy.sources(entry), [slot.root for slot in named.end]
    false_sources = [sources[0], replace(sources[1], slot=2)]
    false = with_sources(toy, entry, false_sources)

    def show() -> TxReceipt:
        about = (toy.plan_id, AccusedSource(false, toy.commitment, false_sources, 1), named.entry.claim, end)
        return evidence.show_other_source(challenger, *about)

    expect_slashed(toy, "ann", Falsehood.OTHER_SOURCE, show)


def test_an_initial_value_that_is_none_is_slashed(toy: ToyRounds) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    entry = toy.made["ann", STEP].entry
    sources = toy.sources(entry)
    assert [source.claim for source in sources] == [INITIAL, INITIAL]
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_initial(challenger, toy.plan_id, AccusedSource(entry, toy.commitment, sources, 1))
    false_sources = [sources[0], replace(sources[1], root=b"\x07" * 32)]
    false = with_sources(toy, entry, false_sources)

    def show() -> TxReceipt:
        return evidence.show_other_initial(
            challenger, toy.plan_id, AccusedSource(false, toy.commitment, false_sources, 1)
        )

    expect_slashed(toy, "ann", Falsehood.OTHER_INITIAL, show)


def test_honest_sources_follow_the_rules(toy: ToyRounds) -> None:
    """Of round 0, and of round 1, where they are others: nothing can be shown."""
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    second = {name: toy.authors[name].make(1, "step") for name in ("ann", "bob")}
    toy.authors["ann"].learn(second["bob"])
    second_merge = toy.authors["ann"].make(1, "merge")
    everything = [*toy.made.values(), *second.values(), second_merge]
    by_digest = {made.entry.claim.digest: made.entry.claim for made in everything}
    for made in everything:
        sources = toy.sources(made.entry)
        for slot, source in enumerate(sources):
            named = by_digest.get(source.claim)
            with pytest.raises(Reverted, match="NothingWrong"):
                evidence.show_other_rule(
                    challenger, toy.plan_id, AccusedSource(made.entry, toy.commitment, sources, slot), named
                )
        with pytest.raises(Reverted, match="NothingWrong"):
            evidence.show_other_phase(challenger, toy.plan_id, made.entry, toy.commitment)


@pytest.mark.parametrize("lie", ["initial", "slot", "round", "author", "phase"])
def test_a_source_against_the_rule_is_slashed(toy: ToyRounds, lie: str) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    second = toy.authors["ann"].make(1, "step")
    entry, sources = second.entry, toy.sources(second.entry)
    slot, named = 1, toy.made["ann", STEP].entry.claim  # velocity: one's own, of the round before
    assert sources[slot].claim == named.digest
    match lie:
        case "initial":  # the position of the second round is the merged one
            slot, named = 0, None
            wrong = replace(sources[slot], claim=INITIAL, slot=1)
        case "slot":
            wrong = replace(sources[slot], slot=0)
        case "round":
            named = entry.claim
            wrong = replace(sources[slot], claim=named.digest)
        case "author":
            named = toy.made["bob", STEP].entry.claim
            wrong = replace(sources[slot], claim=named.digest)
        case _:
            named = toy.made["ann", MERGE].entry.claim
            wrong = replace(sources[slot], claim=named.digest)
    sources[slot] = wrong
    false = with_sources(toy, entry, sources)

    def show() -> TxReceipt:
        return evidence.show_other_rule(
            challenger, toy.plan_id, AccusedSource(false, toy.commitment, sources, slot), named
        )

    expect_slashed(toy, "ann", Falsehood.OTHER_RULE, show)


@pytest.mark.parametrize(("phase", "slot"), [(MERGE, 0), (MERGE, 1), (GOSSIP, 1), (GOSSIP, 2), (GOSSIP, 3)])
def test_a_source_of_another_member_is_slashed(toy: ToyRounds, phase: int, slot: int) -> None:
    """A member, a partner, a route: each by the roster that the claim names."""
    evidence, challenger, roster = toy.contracts.evidence, toy.wallets["challenger"], toy.rosters[0]
    for name in ("ann", "bob"):
        entry = toy.made[name, phase].entry
        sources = toy.sources(entry)
        named = next(made.entry.claim for made in toy.made.values() if made.entry.claim.digest == sources[slot].claim)
        with pytest.raises(Reverted, match="NothingWrong"):
            evidence.show_other_member(
                challenger, toy.plan_id, AccusedSource(entry, toy.commitment, sources, slot), named, roster
            )
    entry = toy.made["ann", phase].entry
    sources = toy.sources(entry)
    right = next(name for name in ("ann", "bob") if toy.made[name, STEP].entry.claim.digest == sources[slot].claim)
    other = toy.made["bob" if right == "ann" else "ann", STEP]
    sources[slot] = BoundSlot(other.entry.claim.digest, sources[slot].slot, other.end[sources[slot].slot].root)
    false = with_sources(toy, entry, sources)
    named = other.entry.claim
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_rule(challenger, toy.plan_id, AccusedSource(false, toy.commitment, sources, slot), named)
    with pytest.raises(Reverted, match="OtherRoster"):
        evidence.show_other_member(
            challenger, toy.plan_id, AccusedSource(false, toy.commitment, sources, slot), named, toy.rosters[1]
        )

    def show() -> TxReceipt:
        return evidence.show_other_member(
            challenger, toy.plan_id, AccusedSource(false, toy.commitment, sources, slot), named, roster
        )

    expect_slashed(toy, "ann", Falsehood.OTHER_MEMBER, show)


@pytest.mark.parametrize("role", ["},{", '},{"joined":0', "}],", '"}],"partners":[0', "\\", '\\"},{"j'])
def test_names_that_look_like_members_are_none(toy: ToyRounds, role: str) -> None:
    """The coordinator chooses roles; whatever they hold, the second member stays the second one."""
    evidence, challenger, entry = toy.contracts.evidence, toy.wallets["challenger"], toy.made["ann", GOSSIP].entry
    members = tuple(replace(member, role=role) for member in toy.rosters[0].members)
    roster = replace(toy.rosters[0], members=members)
    entry = toy.signed("ann", entry, roster=roster.document)
    sources, named = toy.sources(entry), toy.made["bob", STEP].entry.claim
    about = (challenger, toy.plan_id)
    for slot in (1, 2):
        with pytest.raises(Reverted, match="NothingWrong"):
            evidence.show_other_member(*about, AccusedSource(entry, toy.commitment, sources, slot), named, roster)
    own = toy.made["ann", STEP]
    sources[1] = replace(sources[1], claim=own.entry.claim.digest, root=own.end[sources[1].slot].root)
    false = with_sources(toy, entry, sources)
    source = AccusedSource(false, toy.commitment, sources, 1)
    expect_slashed(
        toy,
        "ann",
        Falsehood.OTHER_MEMBER,
        lambda: evidence.show_other_member(*about, source, own.entry.claim, roster),
    )


@pytest.mark.parametrize("lie", ["member", "round"])
def test_another_arrival_is_slashed(toy: ToyRounds, lie: str) -> None:
    """The roster of the second round takes bob's claim of the first."""
    evidence, challenger, roster, slot = toy.contracts.evidence, toy.wallets["challenger"], toy.rosters[1], 4
    second = {name: toy.authors[name].make(1, "step") for name in ("ann", "bob")}
    toy.authors["ann"].learn(second["bob"])
    entry = toy.authors["ann"].make(1, "gossip").entry
    sources, named = toy.sources(entry), toy.made["bob", STEP].entry.claim
    assert sources[slot].claim == named.digest
    about = (challenger, toy.plan_id, AccusedSource(entry, toy.commitment, sources, slot))
    for show_innocent in (
        lambda: evidence.show_other_member(*about, named, roster),
        lambda: evidence.show_other_rule(*about, named),
    ):
        with pytest.raises(Reverted, match="NothingWrong"):
            show_innocent()
    other = toy.made["ann", STEP] if lie == "member" else second["bob"]
    sources[slot] = replace(sources[slot], claim=other.entry.claim.digest, root=other.end[sources[slot].slot].root)
    false = with_sources(toy, entry, sources)
    about, claim = (challenger, toy.plan_id, AccusedSource(false, toy.commitment, sources, slot)), other.entry.claim
    if lie == "round":  # of the same round: no roster can take it
        expect_slashed(toy, "ann", Falsehood.OTHER_RULE, lambda: evidence.show_other_rule(*about, claim))
        return
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_rule(*about, claim)
    expect_slashed(toy, "ann", Falsehood.OTHER_MEMBER, lambda: evidence.show_other_member(*about, claim, roster))


def test_whose_own_claim_it_is_no_roster_says(toy: ToyRounds) -> None:
    evidence, challenger, entry = toy.contracts.evidence, toy.wallets["challenger"], toy.made["ann", GOSSIP].entry
    sources, named = toy.sources(entry), toy.made["ann", STEP].entry.claim
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_other_member(
            challenger, toy.plan_id, AccusedSource(entry, toy.commitment, sources, 0), named, toy.rosters[0]
        )


def test_two_claims_for_one_place_are_slashed(toy: ToyRounds) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    one = toy.made["ann", STEP].entry
    other = toy.signed("ann", one, end=b"\x09" * 32)
    for innocent in (one, toy.made["bob", STEP].entry, toy.made["ann", MERGE].entry):
        with pytest.raises(Reverted, match="NothingWrong"):
            evidence.show_two_claims(challenger, toy.plan_id, one, innocent)
    stolen = replace(other, signature=toy.keys["bob"].sign(other.claim.digest))
    with pytest.raises(Reverted, match="NotTheAuthor"):
        evidence.show_two_claims(challenger, toy.plan_id, one, stolen)

    def show() -> TxReceipt:
        return evidence.show_two_claims(challenger, toy.plan_id, one, other)

    expect_slashed(toy, "ann", Falsehood.TWO_CLAIMS, show)


def test_two_rosters_of_one_round_are_slashed(toy: ToyRounds) -> None:
    evidence, challenger, key = toy.contracts.evidence, toy.wallets["challenger"], toy.keys["keeper"]
    one = toy.rosters[0]
    other = replace(one, members=one.members[:1], partners=(), routes=())
    signed = {roster: key.sign(roster.digest) for roster in (one, other)}
    begun = replace(other, provisional=True)

    def show(second: Roster = other, signature: bytes | None = None) -> TxReceipt:
        signature = signature or key.sign(second.digest)
        return evidence.show_two_rosters(challenger, toy.plan_id, (one, signed[one]), (second, signature))

    for innocent in (one, begun, toy.rosters[1]):  # a round may have a provisional roster and a final one
        with pytest.raises(Reverted, match="NothingWrong"):
            show(innocent)
    with pytest.raises(Reverted, match="OtherSigner"):
        show(other, toy.keys["ann"].sign(other.digest))
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).stake == MONEY.keeper_stake
    expect_slashed(toy, "keeper", Falsehood.TWO_ROSTERS, show)


def test_a_member_without_a_stake_is_slashed(toy: ToyRounds) -> None:
    """Nobody answers for what it signs, so its coordinator does."""
    evidence, challenger, key = toy.contracts.evidence, toy.wallets["challenger"], toy.keys["keeper"]
    stranger = toy.keys["challenger"].name
    honest, bob = toy.rosters[0], toy.rosters[0].members[1]
    roster = replace(honest, members=(honest.members[0], replace(bob, worker=stranger)))

    def show(signature: bytes = key.sign(roster.digest), of: Roster = roster, worker: str = stranger) -> TxReceipt:
        return evidence.show_unstaked_member(challenger, toy.plan_id, of, signature, worker)

    with pytest.raises(Reverted, match="NothingWrong"):
        show(key.sign(honest.digest), honest, bob.worker)
    with pytest.raises(Reverted, match="OtherSigner"):
        show(toy.keys["ann"].sign(roster.digest))
    with pytest.raises(Reverted, match="OtherSigner"):
        show(key.sign(honest.digest))
    expect_slashed(toy, "keeper", Falsehood.UNSTAKED_MEMBER, show)


def test_two_members_in_one_seat_are_slashed(toy: ToyRounds) -> None:
    """Both would be paid for the work of one; a document that is no roster is its coordinator's word all the same."""
    evidence, challenger, key = toy.contracts.evidence, toy.wallets["challenger"], toy.keys["keeper"]
    roster, workers = toy.rosters[0], (toy.keys["ann"].name, toy.keys["bob"].name)
    honest = roster.encode()
    shared = honest.replace(b'"seat":1,', b'"seat":0,')
    assert shared != honest

    def show(document: bytes = shared, workers: tuple[str, str] = workers) -> TxReceipt:
        digest = message_digest(ROSTER_TYPE, [toy.plan.digest, 0, keccak256(document)])
        return evidence.show_shared_seat(challenger, toy.plan_id, 0, document, key.sign(digest), workers)

    with pytest.raises(Reverted, match="NothingWrong"):
        show(honest)
    with pytest.raises(Reverted, match="NothingWrong"):
        show(shared, (workers[0], workers[0]))
    with pytest.raises(ProtocolError, match="no member"):
        show(shared, (workers[0], toy.keys["challenger"].name))
    expect_slashed(toy, "keeper", Falsehood.SHARED_SEAT, show)


def test_copied_evidence_comes_too_late(toy: ToyRounds) -> None:
    """Who reads it on its way has announced nothing; who announces it then shows it behind it."""
    evidence, challenger, bob = toy.contracts.evidence, toy.wallets["challenger"], toy.wallets["bob"]
    one = toy.made["ann", STEP].entry
    about = (toy.plan_id, signed_claim(one), signed_claim(toy.signed("ann", one, end=b"\x07" * 32)))
    with pytest.raises(Reverted, match="NotAnnounced"):
        evidence.transact(bob, "showTwoClaims", *about)
    data = bytes.fromhex(evidence.contract.encode_abi("showTwoClaims", about)[2:])
    evidence.announce_evidence(challenger, toy.plan_id, keccak256(data))
    with pytest.raises(Reverted, match="NotAnnounced"):
        evidence.transact(bob, "showTwoClaims", *about)
    evidence.transact(challenger, "showTwoClaims", *about)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED
    toy.check_books()


@pytest.mark.parametrize("same_size", [True, False])
def test_a_forked_log_is_slashed(toy: ToyRounds, same_size: bool) -> None:
    evidence, challenger = toy.contracts.evidence, toy.wallets["challenger"]
    head, log, entries = toy.log()
    data = [encode_entry(entry) for entry in entries]
    forked_head, forked = toy.head([data[0], data[2], data[1], *(data[3:] if same_size else [])])
    paths = [(log.entries[1], log.inclusion(1)), (forked.entries[1], forked.inclusion(1))]

    def show(index: int = 1) -> TxReceipt:
        if same_size:
            return evidence.show_forked_log(challenger, toy.plan_id, head, forked_head)
        return evidence.show_forked_log(challenger, toy.plan_id, head, forked_head, index, paths)

    shorter, short_log = toy.head(data[:2])
    both = [(each.entries[1], each.inclusion(1)) for each in (log, short_log)]
    with pytest.raises(Reverted, match="NothingWrong"):
        evidence.show_forked_log(challenger, toy.plan_id, head, shorter, 1, both)
    if not same_size:
        with pytest.raises(Reverted, match="NothingWrong"):
            show(2)
    expect_slashed(toy, "keeper", Falsehood.FORKED_LOG, show)
