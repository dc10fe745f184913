"""What roots and signatures show: claims of another phase, start, source or rule, and equivocations."""

from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from toy_rounds import GOSSIP, MERGE, MONEY, STEP, WORKERS, ToyRounds
from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.rounds.round_evidence import AccusedSource, Falsehood
from pol.chain.rounds.signed_structs import phase_proof, roster_fact, signed_claim, tensor_proof
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.rounds.log.log_entries import ClaimEntry, encode_entry
from pol.rounds.roster import ROSTER_TYPE, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot, sources_root, start_of
from pol.rounds.typed_message import message_digest

OF_ROSTERS = (Falsehood.TWO_ROSTERS, Falsehood.SHARED_SEAT, Falsehood.LATE_MEMBER)


def show(toy: ToyRounds, what: str, *about: object) -> TxReceipt:
    """The challenger shows evidence of this kind."""
    verb = getattr(toy.contracts.evidence, f"show_{what}")
    return verb(toy.wallets["challenger"], toy.plan_id, *about)  # type: ignore[no-any-return]  # each returns a receipt


def refused(toy: ToyRounds, error: str, what: str, *about: object) -> None:
    """It shows nothing."""
    with pytest.raises(Reverted, match=error):
        show(toy, what, *about)


def slashed(toy: ToyRounds, name: str, what: str, *about: object) -> None:
    """Showing it costs the party its stake, of which the prover gets the smaller share."""
    account, before = toy.wallets[name].address, (toy.free("challenger"), toy.free("treasury"))
    stake = toy.contracts.bonds.bond(toy.plan_id, account).stake
    verb = "rosters" if Falsehood[what.upper()] in OF_ROSTERS else what
    show(toy, verb, *about)
    assert toy.contracts.bonds.bond(toy.plan_id, account).standing is Standing.SLASHED
    assert toy.contracts.evidence.events("Shown", worker=account)[-1]["falsehood"] == Falsehood[what.upper()]
    assert toy.free("challenger") - before[0] == stake // 16
    assert toy.free("treasury") - before[1] == stake - stake // 16
    toy.check_books()
    refused(toy, "WrongStanding", verb, *about)


def named(roster: Roster) -> dict[str, object]:
    """The members of a claim that names a roster."""
    return {"plan": roster.plan, "roster": roster.document}


def standings(toy: ToyRounds) -> list[Standing]:
    """Of the workers."""
    return [toy.contracts.bonds.bond(toy.plan_id, toy.wallets[name].address).standing for name in WORKERS]


def source(toy: ToyRounds, entry: ClaimEntry, sources: list[BoundSlot], slot: int) -> AccusedSource:
    return AccusedSource(entry, toy.commitment, sources, slot)


def false_source(toy: ToyRounds, entry: ClaimEntry, sources: list[BoundSlot], slot: int) -> AccusedSource:
    """The same of a claim that ann makes from these sources, signed."""
    signed = toy.signed("ann", entry, sources=sources_root(sources), start=start_of(sources))
    return source(toy, signed, sources, slot)


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
    slashed(toy, "ann", "other_phase", entry, toy.commitment)


def test_the_constants_of_another_seat_are_slashed(toy: ToyRounds) -> None:
    """Ann steps on bob's data: a constant of the phase, but not of her seat."""
    for innocent in (made.entry for made in toy.made.values()):
        refused(toy, "NothingWrong", "other_seat", innocent, toy.commitment, toy.rosters[0])
    others = toy.plan.phases[STEP].constants[1].root
    false = toy.signed("ann", toy.made["ann", STEP].entry, constants=others)
    refused(toy, "NothingWrong", "other_phase", false, toy.commitment)
    refused(toy, "OtherRoster", "other_seat", false, toy.commitment, toy.rosters[1])
    slashed(toy, "ann", "other_seat", false, toy.commitment, toy.rosters[0])


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
    refused(toy, "NothingWrong", "other_seat", entry, toy.commitment, roster)


def test_a_start_that_its_sources_do_not_give_is_slashed(toy: ToyRounds) -> None:
    entry = toy.made["ann", MERGE].entry
    sources, false = toy.sources(entry), toy.signed("ann", entry, start=b"\x07" * 32)
    for made in toy.made.values():
        refused(toy, "NothingWrong", "other_start", made.entry, toy.commitment, toy.sources(made.entry))
    for wrong in (sources[:1], [*sources, sources[0]], sources[::-1]):
        refused(toy, "NotInSources", "other_start", false, toy.commitment, wrong)
    slashed(toy, "ann", "other_start", false, toy.commitment, sources)


@pytest.mark.parametrize("change", [{"root": b"\x07" * 32}, {"slot": 2}], ids=["another end", "a slot that is none"])
def test_a_source_that_its_claim_does_not_give_is_slashed(toy: ToyRounds, change: dict[str, Any]) -> None:
    """Ann says that bob's end holds something else: ann is to blame, whoever has signed the named claim."""
    entry, named = toy.made["ann", MERGE].entry, toy.made["bob", STEP]
    sources, about = toy.sources(entry), (named.entry.claim, [slot.root for slot in named.end])
    false_sources = [sources[0], replace(sources[1], **change)]
    refused(toy, "NothingWrong", "other_source", source(toy, entry, sources, 1), *about)
    refused(toy, "NotInSources", "other_source", source(toy, entry, false_sources, 1), *about)
    slashed(toy, "ann", "other_source", false_source(toy, entry, false_sources, 1), *about)


def test_an_initial_value_that_is_none_is_slashed(toy: ToyRounds) -> None:
    entry = toy.made["ann", STEP].entry
    sources = toy.sources(entry)
    assert [each.claim for each in sources] == [INITIAL, INITIAL]
    refused(toy, "NothingWrong", "other_initial", source(toy, entry, sources, 1))
    false_sources = [sources[0], replace(sources[1], root=b"\x07" * 32)]
    slashed(toy, "ann", "other_initial", false_source(toy, entry, false_sources, 1))


def test_honest_sources_follow_the_rules(toy: ToyRounds) -> None:
    """Of round 0, and of round 1, where they are others: nothing can be shown."""
    second = {name: toy.authors[name].make(1, "step") for name in ("ann", "bob")}
    toy.authors["ann"].learn(second["bob"])
    second_merge = toy.authors["ann"].make(1, "merge")
    everything = [*toy.made.values(), *second.values(), second_merge]
    by_digest = {made.entry.claim.digest: made.entry.claim for made in everything}
    for made in everything:
        sources = toy.sources(made.entry)
        for slot, each in enumerate(sources):
            about = (source(toy, made.entry, sources, slot), by_digest.get(each.claim))
            refused(toy, "NothingWrong", "other_rule", *about)
        refused(toy, "NothingWrong", "other_phase", made.entry, toy.commitment)


@pytest.mark.parametrize("lie", ["initial", "slot", "round", "author", "phase"])
def test_a_source_against_the_rule_is_slashed(toy: ToyRounds, lie: str) -> None:
    second = toy.authors["ann"].make(1, "step")
    entry, sources = second.entry, toy.sources(second.entry)
    slot, own = 1, toy.made["ann", STEP].entry.claim  # velocity: one's own, of the round before
    assert sources[slot].claim == own.digest
    if lie == "initial":  # the position of the second round is the merged one
        sources[0] = replace(sources[0], claim=INITIAL, slot=1)
        slashed(toy, "ann", "other_rule", false_source(toy, entry, sources, 0), None)
        return
    others = {"round": entry, "author": toy.made["bob", STEP].entry, "phase": toy.made["ann", MERGE].entry}
    named = others[lie].claim if lie in others else own
    sources[slot] = replace(sources[slot], claim=named.digest, slot=0 if lie == "slot" else sources[slot].slot)
    slashed(toy, "ann", "other_rule", false_source(toy, entry, sources, slot), named)


@pytest.mark.parametrize(("phase", "slot"), [(MERGE, 0), (MERGE, 1), (GOSSIP, 1), (GOSSIP, 2), (GOSSIP, 3)])
def test_a_source_of_another_member_is_slashed(toy: ToyRounds, phase: int, slot: int) -> None:
    """A member, a partner, a route: each by the roster that the claim names."""
    roster = toy.rosters[0]
    for name in ("ann", "bob"):
        entry = toy.made[name, phase].entry
        sources = toy.sources(entry)
        named = next(made.entry.claim for made in toy.made.values() if made.entry.claim.digest == sources[slot].claim)
        refused(toy, "NothingWrong", "other_member", source(toy, entry, sources, slot), named, roster)
    entry = toy.made["ann", phase].entry
    sources = toy.sources(entry)
    right = next(name for name in ("ann", "bob") if toy.made[name, STEP].entry.claim.digest == sources[slot].claim)
    other = toy.made["bob" if right == "ann" else "ann", STEP]
    sources[slot] = BoundSlot(other.entry.claim.digest, sources[slot].slot, other.end[sources[slot].slot].root)
    about = (false_source(toy, entry, sources, slot), other.entry.claim)
    refused(toy, "NothingWrong", "other_rule", *about)
    refused(toy, "OtherRoster", "other_member", *about, toy.rosters[1])
    slashed(toy, "ann", "other_member", *about, roster)


@pytest.mark.parametrize("role", ["},{", '},{"joined":0', "}],", '"}],"partners":[0', "\\", '\\"},{"j'])
def test_names_that_look_like_members_are_none(toy: ToyRounds, role: str) -> None:
    """The coordinator chooses roles; whatever they hold, the second member stays the second one."""
    members = tuple(replace(member, role=role) for member in toy.rosters[0].members)
    roster = replace(toy.rosters[0], members=members)
    entry = toy.signed("ann", toy.made["ann", GOSSIP].entry, roster=roster.document)
    sources, named = toy.sources(entry), toy.made["bob", STEP].entry.claim
    for slot in (1, 2):
        refused(toy, "NothingWrong", "other_member", source(toy, entry, sources, slot), named, roster)
    own = toy.made["ann", STEP]
    sources[1] = replace(sources[1], claim=own.entry.claim.digest, root=own.end[sources[1].slot].root)
    slashed(toy, "ann", "other_member", false_source(toy, entry, sources, 1), own.entry.claim, roster)


@pytest.mark.parametrize("lie", ["member", "round"])
def test_another_arrival_is_slashed(toy: ToyRounds, lie: str) -> None:
    """The roster of the second round takes bob's claim of the first."""
    roster, slot = toy.rosters[1], 4
    second = {name: toy.authors[name].make(1, "step") for name in ("ann", "bob")}
    toy.authors["ann"].learn(second["bob"])
    entry = toy.authors["ann"].make(1, "gossip").entry
    sources, named = toy.sources(entry), toy.made["bob", STEP].entry.claim
    assert sources[slot].claim == named.digest
    honest = (source(toy, entry, list(sources), slot), named)
    refused(toy, "NothingWrong", "other_member", *honest, roster)
    refused(toy, "NothingWrong", "other_rule", *honest)
    other = toy.made["ann", STEP] if lie == "member" else second["bob"]
    sources[slot] = replace(sources[slot], claim=other.entry.claim.digest, root=other.end[sources[slot].slot].root)
    about = (false_source(toy, entry, sources, slot), other.entry.claim)
    if lie == "round":  # of the same round: no roster can take it
        slashed(toy, "ann", "other_rule", *about)
        return
    refused(toy, "NothingWrong", "other_rule", *about)
    slashed(toy, "ann", "other_member", *about, roster)


def test_whose_own_claim_it_is_no_roster_says(toy: ToyRounds) -> None:
    entry, named = toy.made["ann", GOSSIP].entry, toy.made["ann", STEP].entry.claim
    about = (source(toy, entry, toy.sources(entry), 0), named, toy.rosters[0])
    refused(toy, "NothingWrong", "other_member", *about)


def test_two_claims_for_one_place_are_slashed(toy: ToyRounds) -> None:
    one = toy.made["ann", STEP].entry
    other = toy.signed("ann", one, end=b"\x09" * 32)
    for innocent in (one, toy.made["bob", STEP].entry, toy.made["ann", MERGE].entry):
        refused(toy, "NothingWrong", "two_claims", one, innocent)
    stolen = replace(other, signature=toy.keys["bob"].sign(other.claim.digest))
    refused(toy, "NotTheAuthor", "two_claims", one, stolen)
    slashed(toy, "ann", "two_claims", one, other)


def test_two_rosters_of_one_round_are_slashed(toy: ToyRounds) -> None:
    one, key = toy.rosters[0], toy.keys["keeper"]
    other, ann = replace(one, members=one.members[:1], partners=(), routes=()), toy.keys["ann"].name

    def signed(roster: Roster) -> tuple[bytes, bytes, str]:
        return roster.encode(), key.sign(roster.digest), ann

    # A round may have a provisional roster and a final one that names it.
    begun = replace(one, provisional=True)
    for innocent in ((one, one), (begun, begun.ended(one.members[:1])), (begun.ended(one.members), begun)):
        refused(toy, "NothingWrong", "rosters", 0, *map(signed, innocent))
    text = one.encode().replace(b"provisional", b"temporary")
    unread = (text, key.sign(roster_digest(toy, text)), ann)
    for pair in ((unread, signed(one)), (signed(one), unread)):
        refused(toy, "OtherText", "rosters", 0, *pair)
    for stranger in (signed(toy.rosters[1]), (other.encode(), toy.keys["ann"].sign(other.digest), ann)):
        for pair in ((signed(one), stranger), (stranger, signed(one))):
            refused(toy, "OtherSigner", "rosters", 0, *pair)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).stake == MONEY.keeper_stake
    slashed(toy, "keeper", "two_rosters", 0, signed(one), signed(other))


@pytest.mark.parametrize("names", ["none", "another"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_provisional_roster_that_is_signed_since_is_slashed(toy: ToyRounds, names: str, is_first: bool) -> None:
    """Behind the round, a friend of the coordinator's would make claims of it that no round has waited for."""
    final, key, ann = toy.rosters[0], toy.keys["keeper"], toy.keys["ann"].name
    friend = replace(final.members[0], worker=toy.keys["challenger"].name, seat=7)
    since = replace(final, members=(*final.members, friend), provisional=True, partners=(), routes=())
    if names == "another":
        final = replace(final, provisional=True).ended(final.members)
    pair = [(roster.encode(), key.sign(roster.digest), ann) for roster in (since, final)]
    slashed(toy, "keeper", "two_rosters", 0, *(pair if is_first else pair[::-1]))


@pytest.mark.parametrize("twice", [b'"provisional":true', b'"members":[]', b'"routes":[[0,1]]'])
def test_a_text_that_says_a_thing_twice_is_slashed(toy: ToyRounds, twice: bytes) -> None:
    """A place would have an author by each."""
    text = toy.rosters[0].encode()[:-1] + b"," + twice + b"}"
    signed = (text, toy.keys["keeper"].sign(roster_digest(toy, text)), toy.keys["ann"].name)
    refused(toy, "NothingWrong", "rosters", 0, signed, signed)
    slashed(toy, "keeper", "two_rosters", 0, signed, (*signed, True))


def roster_digest(toy: ToyRounds, document: bytes) -> bytes:
    """What the coordinator signs of a document that is no roster: it is its word all the same."""
    return message_digest(ROSTER_TYPE, [toy.plan.digest, 0, keccak256(document)])


def test_a_member_without_a_stake_is_slashed(toy: ToyRounds) -> None:
    """Nobody answers for what it signs, so its coordinator does."""
    key, stranger, honest = toy.keys["keeper"], toy.keys["challenger"].name, toy.rosters[0]
    bob = honest.members[1]
    roster = replace(honest, members=(honest.members[0], replace(bob, worker=stranger)))
    refused(toy, "NothingWrong", "unstaked_member", honest, key.sign(honest.digest), bob.worker)
    for signature in (toy.keys["ann"].sign(roster.digest), key.sign(honest.digest)):
        refused(toy, "OtherSigner", "unstaked_member", roster, signature, stranger)
    slashed(toy, "keeper", "unstaked_member", roster, key.sign(roster.digest), stranger)


def test_two_members_in_one_seat_are_slashed(toy: ToyRounds) -> None:
    """Both would be paid for the work of one, whatever else the document says."""
    workers = (toy.keys["ann"].name, toy.keys["bob"].name)
    honest = toy.rosters[0].encode()
    shared = honest.replace(b'"seat":1,', b'"seat":0,')
    assert shared != honest

    def signed(worker: str, document: bytes) -> tuple[bytes, bytes, str]:
        return document, toy.keys["keeper"].sign(roster_digest(toy, document)), worker

    ann, bob = (signed(worker, shared) for worker in workers)
    refused(toy, "NothingWrong", "rosters", 0, *(signed(worker, honest) for worker in workers))
    refused(toy, "NothingWrong", "rosters", 0, ann, ann)
    # Who is no member shares no seat with another one.
    strangers = [signed(toy.keys[name].name, shared) for name in ("challenger", "submitter")]
    for innocent in ((ann, strangers[0]), strangers):
        refused(toy, "NothingWrong", "rosters", 0, *innocent)
    refused(toy, "OtherSigner", "rosters", 1, ann, bob)
    slashed(toy, "keeper", "shared_seat", 0, ann, bob)


@pytest.mark.parametrize("role", ["worker", "},{", '"}],"partners":[0'])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_member_that_has_not_begun_its_round_is_slashed(toy: ToyRounds, role: str, is_first: bool) -> None:
    """Bob comes when others have done the work; what a name holds hides nobody of those that were there."""
    ann, bob = (replace(member, role=role) for member in toy.rosters[0].members)
    key, undrawn = toy.keys["keeper"], replace(toy.rosters[0], partners=(), routes=())
    both, alone = (replace(undrawn, members=members) for members in ((ann, bob), (ann,)))

    def of(worker: str, *rosters: Roster) -> list[tuple[bytes, bytes, str]]:
        return [(roster.encode(), key.sign(roster.digest), worker) for roster in rosters]

    begun, whole = replace(alone, provisional=True), replace(both, provisional=True)
    last = begun.ended(both.members)
    for worker, *innocent in (
        (ann.worker, whole, whole.ended(both.members)),
        (bob.worker, whole, whole.ended(both.members)),
        (ann.worker, begun, last),
        # Members do fall out of a round; and who is in neither roster has come to none.
        (bob.worker, whole, whole.ended(alone.members)),
        (toy.keys["challenger"].name, begun, last),
    ):
        refused(toy, "NothingWrong", "rosters", 0, *of(worker, *innocent))
    refused(toy, "NothingWrong", "rosters", 0, *of(ann.worker, begun), *of(bob.worker, last))
    (late,) = of(bob.worker, replace(begun, round=1))
    refused(toy, "OtherSigner", "rosters", 0, late, *of(bob.worker, last))
    pair = of(bob.worker, begun, last)
    slashed(toy, "keeper", "late_member", 0, *(pair if is_first else pair[::-1]))


def test_what_no_roster_says_is_not_noted(toy: ToyRounds) -> None:
    """Ann is a member, the challenger isn't, and what was noted of one round, plan or worker is noted of no other."""
    evidence, challenger, roster = toy.contracts.evidence, toy.wallets["challenger"], toy.rosters[0]
    document, signature = roster.encode(), toy.keys["keeper"].sign(roster.digest)
    ann, stranger = toy.wallets["ann"].address, challenger.address
    (fact, of_ann), (_, of_stranger) = (roster_fact(document, signature, worker) for worker in (ann, stranger))

    def note(error: str, *about: object) -> None:
        with pytest.raises(Reverted, match=error):
            evidence.transact(challenger, "noteRoster", *about)

    note("OtherText", toy.plan_id, 0, stranger, of_ann)
    note("OtherText", toy.plan_id, 0, ann, of_stranger)
    for place in range(3):
        places = tuple(1 if at == place else stands for at, stands in enumerate(of_ann[1]))
        note("OtherText", toy.plan_id, 0, ann, (document, places, *of_ann[2:]))
    note("OtherSigner", toy.plan_id, 1, ann, of_ann)
    note("UnknownPlan", bytes(32), 0, ann, of_ann)
    evidence.transact(challenger, "noteRoster", toy.plan_id, 0, ann, of_ann)
    for by, round_, said in (
        (stranger, 0, fact),
        (ann, 0, fact),
        (stranger, 1, fact),
        (stranger, 0, (*fact[:4], 2)),
        (stranger, 0, (*fact[:2], bytes([1] * 32), *fact[3:])),
    ):
        words = ["address", "bytes32", "uint64", "(bytes32,(uint256,uint256,uint256),bytes32,address,uint256)"]
        noted = evidence.read("notedAt", keccak256(encode(words, [by, toy.plan_id, round_, said])))
        assert (noted > 0) == ((by, round_, said) == (stranger, 0, fact))


def test_who_copies_a_note_comes_too_late(toy: ToyRounds) -> None:
    """Who reads a roster on its way may have the other one: it has announced nothing before that, and noted nothing."""
    evidence, key, one = toy.contracts.evidence, toy.keys["keeper"], toy.rosters[0]
    challenger, bob, began = toy.wallets["challenger"], toy.wallets["bob"], toy.connection.block_number()
    other, ann = replace(one, members=one.members[:1], partners=(), routes=()), toy.wallets["ann"].address
    (fact, noted), (_, shown) = (roster_fact(each.encode(), key.sign(each.digest), ann) for each in (one, other))
    note, about = (toy.plan_id, 0, ann, noted), (toy.plan_id, 0, fact, ann, shown)
    announced = keccak256(evidence.function("showRosters", *about).data)

    def refused(wallet: Wallet, error: str) -> None:
        with pytest.raises(Reverted, match=error):
            evidence.transact(wallet, "showRosters", *about)

    refused(challenger, "NotAnnounced")
    evidence.announce_evidence(challenger, toy.plan_id, announced)
    refused(challenger, "NotNoted")
    evidence.transact(bob, "noteRoster", *note)
    evidence.announce_evidence(bob, toy.plan_id, announced)
    refused(bob, "NotNoted")  # that was before its announcement
    noted_in = evidence.transact(challenger, "noteRoster", *note)["blockNumber"]
    refused(challenger, "NotNoted")  # a block before
    toy.connection.wait_for_block(noted_in + 1)
    refused(bob, "NotNoted")  # nor is it its own
    before = toy.free("challenger")
    show(toy, "rosters", 0, *((each.encode(), key.sign(each.digest), ann) for each in (one, other)))
    assert toy.free("challenger") == before + MONEY.keeper_stake // 16
    eth = toy.connection.web3.eth
    blocks = (eth.get_block(number) for number in range(began + 1, eth.block_number + 1))
    sent = [eth.get_transaction(transaction) for block in blocks for transaction in block["transactions"]]  # type: ignore[arg-type]  # hashes
    own = [each for each in sent if each["from"] == challenger.address]
    verbs = [evidence.abi.arguments(bytes(each["input"]))[0] for each in own]
    assert verbs == ["announce", "noteRoster", "showRosters"]


def test_a_claim_of_anothers_place_is_slashed(toy: ToyRounds) -> None:
    """In a plan whose steps are the second member's of a route, by the final roster."""
    toy = toy.beside("route:1")
    roster = toy.rosters[0]
    ann, bob = (toy.signed(name, toy.made[name, STEP].entry, **named(roster)) for name in WORKERS)
    refused(toy, "NothingWrong", "other_author", bob, toy.commitment, roster)
    show(toy, "other_author", ann, toy.commitment, roster)
    begun = replace(roster, provisional=True)
    assert standings(toy) == [Standing.SLASHED, Standing.JOINED]
    show(toy, "other_author", toy.signed("bob", bob, **named(begun)), toy.commitment, begun)
    assert standings(toy) == [Standing.SLASHED, Standing.SLASHED]


def test_copied_evidence_comes_too_late(toy: ToyRounds) -> None:
    """Who reads it on its way has announced nothing; who announces it then shows it behind it."""
    evidence, challenger, bob = toy.contracts.evidence, toy.wallets["challenger"], toy.wallets["bob"]
    one = toy.made["ann", STEP].entry
    about = (toy.plan_id, signed_claim(one), signed_claim(toy.signed("ann", one, end=b"\x07" * 32)))
    with pytest.raises(Reverted, match="NotAnnounced"):
        evidence.transact(bob, "showTwoClaims", *about)
    data = evidence.function("showTwoClaims", *about).data
    evidence.announce_evidence(challenger, toy.plan_id, keccak256(data))
    with pytest.raises(Reverted, match="NotAnnounced"):
        evidence.transact(bob, "showTwoClaims", *about)
    evidence.transact(challenger, "showTwoClaims", *about)
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED
    toy.check_books()


@pytest.mark.parametrize("same_size", [True, False])
def test_a_forked_log_is_slashed(toy: ToyRounds, same_size: bool) -> None:
    head, log, entries = toy.log()
    data = [encode_entry(entry) for entry in entries]
    forked_head, forked = toy.head([data[0], data[2], data[1], *(data[3:] if same_size else [])])
    shorter, short_log = toy.head(data[:2])

    def paths(other: CheckpointLog) -> list[tuple[bytes, Any]]:
        return [(each.entries[1], each.inclusion(1)) for each in (log, other)]

    refused(toy, "NothingWrong", "forked_log", head, shorter, 1, paths(short_log))
    if not same_size:
        refused(toy, "NothingWrong", "forked_log", head, forked_head, 2, paths(forked))
    slashed(toy, "keeper", "forked_log", head, forked_head, *(() if same_size else (1, paths(forked))))
