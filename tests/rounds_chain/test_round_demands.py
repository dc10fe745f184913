"""Demands with a clock: what an author or the keeper can show earns the bond, silence loses the stake."""

from dataclasses import astuple, replace

import pytest
from toy_rounds import ANSWER_GAS, DAY, MERGE, MONEY, ROSTER_ANSWER_GAS, STEP, ToyRounds, price_of

from pol.chain.account.wallet import Reverted
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.round_demands import RoundDemand
from pol.chain.rounds.signed_structs import claim_struct, logged_entry, member_proof
from pol.chain.rounds.worker_bonds import Standing
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, RosterEntry, encode_entry
from pol.rounds.roster import SHOWN_LIMIT, Member
from pol.rounds.round_claim import BoundSlot, RoundClaim, sources_root, start_of
from shared_chain import SharedChain


@pytest.fixture(scope="module")
def chain(node_chain: SharedChain) -> SharedChain:
    """A real node: bonds follow the base fee, which is zero in memory."""
    return node_chain


def expire(toy: ToyRounds, demand: RoundDemand, name: str, before: int) -> None:
    """The demand of the challenger, who had ``before``, runs out: the accused is slashed."""
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        demands.expire(challenger, demand)
    toy.connection.wait_until(demand.deadline + 1)
    demands.expire(challenger, demand)
    bond = toy.contracts.bonds.bond(toy.plan_id, toy.wallets[name].address)
    assert (bond.standing, bond.open) == (Standing.SLASHED, 0)
    assert toy.free("challenger") == before + bond.stake // 16
    toy.check_books()
    with pytest.raises(Reverted, match="NoSuchDemand"):
        demands.expire(challenger, demand)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_source_is_shown(toy: ToyRounds, slot: int) -> None:
    """Of a merge from the claims of others, and of a step from initial values; the answer earns the bond."""
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    before = {name: toy.free(name) for name in ("challenger", "ann")}
    merge, step = toy.made["ann", MERGE].entry, toy.made["ann", STEP].entry
    giver = toy.made[("ann", "bob")[slot], STEP]
    first = demands.demand_source(challenger, toy.plan_id, merge, toy.commitment, slot)
    second = demands.demand_source(challenger, toy.plan_id, step, toy.commitment, slot)
    assert {demand.key for demand in demands.demands(toy.plan_id)} >= {first.key, second.key}
    end = [each.root for each in giver.end]
    answer = (toy.commitment, toy.sources(merge), slot, giver.entry, end)
    with pytest.raises(Reverted, match="OtherDemand"):
        demands.answer_source(toy.wallets["ann"], second, merge, *answer)
    demands.answer_source(toy.wallets["ann"], first, merge, *answer)
    demands.answer_source(toy.wallets["ann"], second, step, toy.commitment, toy.sources(step), slot)
    earned = toy.free("ann") - before["ann"]
    assert earned == before["challenger"] - toy.free("challenger")
    assert earned >= 2 * MONEY.price
    toy.check_books()


def test_a_source_is_shown_by_nothing_else(toy: ToyRounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of another end, the rule of another slot, and a claim of a phase that the rule doesn't name."""
    demands, challenger, ann = toy.contracts.demands, toy.wallets["challenger"], toy.wallets["ann"]
    merge, own, other = toy.made["ann", MERGE].entry, toy.made["ann", STEP], toy.made["bob", MERGE]
    sources = toy.sources(merge)
    demand = demands.demand_source(challenger, toy.plan_id, merge, toy.commitment, 0)
    ends = [[each.root for each in made.end] for made in (own, other)]
    with pytest.raises(Reverted, match="NotAtPlace"):
        demands.answer_source(ann, demand, merge, toy.commitment, sources, 0, own.entry, ends[1])
    with monkeypatch.context() as patched:
        rule = toy.commitment.rule
        patched.setattr(PlanCommitment, "rule", lambda _, phase, slot: rule(phase, 1 - slot))
        with pytest.raises(Reverted, match="NotInRules"):
            demands.answer_source(ann, demand, merge, toy.commitment, sources, 0, own.entry, ends[0])
    sources[0] = replace(sources[0], claim=other.entry.claim.digest, root=ends[1][sources[0].slot])
    false = toy.signed("ann", merge, sources=sources_root(sources), start=start_of(sources))
    demand = demands.demand_source(challenger, toy.plan_id, false, toy.commitment, 0)
    with pytest.raises(Reverted, match="OtherRule"):
        demands.answer_source(ann, demand, false, toy.commitment, sources, 0, other.entry, ends[1])


@pytest.mark.parametrize("slot", [2, 2**32 - 1])
def test_a_slot_that_there_isnt_is_demanded_of_nobody(toy: ToyRounds, slot: int) -> None:
    """No source stands there, so no honest author could answer."""
    with pytest.raises(Reverted, match="NoSuchSlot"):
        toy.contracts.demands.demand_source(
            toy.wallets["challenger"], toy.plan_id, toy.made["ann", STEP].entry, toy.commitment, slot
        )


def test_a_source_that_no_worker_has_signed_is_none(toy: ToyRounds) -> None:
    """Ann binds its merge to a claim of a key that has no stake: it can't answer, and is slashed."""
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    before = toy.free("challenger")
    entry, given = toy.made["ann", MERGE].entry, toy.made["bob", STEP]
    stranger = toy.signed("challenger", given.entry, worker=toy.keys["challenger"].name)
    sources = toy.sources(entry)
    sources[1] = replace(sources[1], claim=stranger.claim.digest)
    false = toy.signed("ann", entry, sources=sources_root(sources), start=start_of(sources))
    demand = demands.demand_source(challenger, toy.plan_id, false, toy.commitment, 1)
    end = [each.root for each in given.end]
    with pytest.raises(Reverted, match="NoWorker"):
        demands.answer_source(toy.wallets["ann"], demand, false, toy.commitment, sources, 1, stranger, end)
    expire(toy, demand, "ann", before)


def test_a_source_of_a_member_without_a_stake_is_shown(toy: ToyRounds) -> None:
    """Ann merges what a member of the roster has sent: she can answer, and the coordinator is to blame."""
    demands, challenger, keeper = toy.contracts.demands, toy.wallets["challenger"], toy.keys["keeper"]
    entry, given, stranger = toy.made["ann", MERGE].entry, toy.made["bob", STEP], toy.keys["challenger"].name
    ann, bob = toy.rosters[0].members
    roster = replace(toy.rosters[0], members=(ann, replace(bob, worker=stranger)))
    message = toy.signed("challenger", given.entry, worker=stranger, roster=roster.document)
    sources = toy.sources(entry)
    sources[1] = replace(sources[1], claim=message.claim.digest)
    merge = toy.signed("ann", entry, sources=sources_root(sources), start=start_of(sources), roster=roster.document)
    demand = demands.demand_source(challenger, toy.plan_id, merge, toy.commitment, 1)
    answer = (merge, toy.commitment, sources, 1, message, [each.root for each in given.end])
    for key, one in (("ann", roster), ("keeper", replace(roster, round=1))):
        member = member_proof(one, toy.keys[key].sign(one.digest), stranger)
        with pytest.raises(Reverted, match="OtherSigner"):
            demands.answer_source(toy.wallets["ann"], demand, *answer, member)
    of_ann = member_proof(roster, keeper.sign(roster.digest), ann.worker)
    with pytest.raises(Reverted, match="OtherText"):
        demands.answer_source(toy.wallets["ann"], demand, *answer, of_ann)
    member = member_proof(roster, keeper.sign(roster.digest), stranger)
    before = toy.free("ann")
    demands.answer_source(toy.wallets["ann"], demand, *answer, member)
    assert toy.free("ann") == before + price_of(demand, len(roster.encode()))
    toy.check_books()


@pytest.mark.parametrize("place", [STEP, MERGE])
def test_bytes_that_show_no_roster_are_not_paid_for(toy: ToyRounds, place: int) -> None:
    """Zeros cost less than the 47 gas that a byte of a roster earns: an author would live on who doubts its claims."""
    demands, entry, giver = toy.contracts.demands, toy.made["ann", place].entry, toy.made["ann", STEP]
    demand = demands.demand_source(toy.wallets["challenger"], toy.plan_id, entry, toy.commitment, 0)
    named = (giver.entry, [each.root for each in giver.end]) if place == MERGE else (None, ())
    before = toy.free("ann")
    zeros = (bytes(SHOWN_LIMIT), (0, 0, 0), False, 0, b"")
    demands.answer_source(
        toy.wallets["ann"], demand, entry, toy.commitment, toy.sources(entry), 0, *named, member=zeros
    )
    assert toy.free("ann") == before + price_of(demand, 0)
    toy.check_books()


def test_a_roster_is_shown_to_all(toy: ToyRounds) -> None:
    demands, challenger, entry = toy.contracts.demands, toy.wallets["challenger"], toy.made["ann", STEP].entry
    roster, before = toy.rosters[0], {name: toy.free(name) for name in ("ann", "challenger")}
    assert demands.shown_roster(toy.plan_id, roster.document) is None
    demand = demands.demand_roster(challenger, toy.plan_id, entry)
    assert [event["content"] for event in demands.events("RosterDemanded", id=toy.plan_id)] == [demand.content]
    signature = toy.keys["keeper"].sign(roster.digest)
    with pytest.raises(Reverted, match="OtherDemand"):
        demands.answer_roster(toy.wallets["bob"], demand, toy.made["bob", STEP].entry, roster, signature)
    demands.answer_roster(toy.wallets["bob"], demand, entry, roster, signature)
    assert demands.shown_roster(toy.plan_id, roster.document) == roster
    price = price_of(demand, len(roster.encode()))
    assert price - MONEY.price < (demand.bond - MONEY.price) // 10  # the rest returns
    assert toy.free("ann") == before["ann"] + price
    assert toy.free("challenger") == before["challenger"] - price
    toy.check_books()


@pytest.mark.parametrize("members", [2, 100, 600, 1000])
def test_an_answer_of_any_size_is_paid_for(toy: ToyRounds, members: int) -> None:
    """Nobody makes an honest worker poorer by demanding rosters: the bond has the gas of the answer."""
    demands, bob = toy.contracts.demands, toy.wallets["bob"]
    ann, *_ = toy.rosters[0].members
    others = tuple(Member(f"0x{number:040x}", number) for number in range(1, members))
    roster = replace(toy.rosters[0], members=(ann, *others), partners=(), routes=())
    assert len(roster.encode()) <= SHOWN_LIMIT
    entry = toy.signed("ann", toy.made["ann", STEP].entry, roster=roster.document)
    demand = demands.demand_roster(toy.wallets["challenger"], toy.plan_id, entry)
    before = toy.free("ann")
    receipt = demands.answer_roster(bob, demand, entry, roster, toy.keys["keeper"].sign(roster.digest))
    gas_part = toy.free("ann") - before - MONEY.price
    fee = (demand.bond - MONEY.price) // ROSTER_ANSWER_GAS  # at the demand
    assert receipt["gasUsed"] * fee <= gas_part
    toy.check_books()


@pytest.mark.parametrize("lie", ["nowhere", "unsigned", "other round", "no member", "other roster"])
def test_a_roster_that_nobody_can_show_is_slashed(toy: ToyRounds, lie: str) -> None:
    """Its author has made it up, signed it itself, taken it from another round, or isn't in it."""
    demands, challenger, bob = toy.contracts.demands, toy.wallets["challenger"], toy.wallets["bob"]
    before, roster, key = toy.free("challenger"), toy.rosters[0], toy.keys["keeper"]
    refused: type[Exception] = Reverted
    match lie:
        case "nowhere":
            document, match = b"\x07" * 32, "OtherRoster"
        case "unsigned":
            roster, key, match = replace(roster, members=roster.members[::-1]), toy.keys["ann"], "OtherSigner"
            document = roster.document
        case "other round":
            roster, match = toy.rosters[1], "OtherSigner"
            document = roster.document
        case "no member":
            roster = replace(roster, members=roster.members[1:], partners=(), routes=())
            document, match, refused = roster.document, "no member", ProtocolError
        case _:
            document, match = toy.rosters[1].document, "OtherRoster"
    false = toy.signed("ann", toy.made["ann", STEP].entry, roster=document)
    demand = demands.demand_roster(challenger, toy.plan_id, false)
    with pytest.raises(refused, match=match):
        demands.answer_roster(bob, demand, false, roster, key.sign(roster.digest))
    if lie == "no member":  # nor by the seat of another one
        of_bob = member_proof(roster, key.sign(roster.digest), toy.keys["bob"].name)
        with pytest.raises(Reverted, match="OtherText"):
            demands.transact(bob, "answerRoster", astuple(demand), claim_struct(false.claim), of_bob)
    expire(toy, demand, "ann", before)


def test_a_source_from_nowhere_is_slashed(toy: ToyRounds) -> None:
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    before = toy.free("challenger")
    false = toy.signed("ann", toy.made["ann", MERGE].entry, sources=b"\x07" * 32)
    expire(toy, demands.demand_source(challenger, toy.plan_id, false, toy.commitment, 0), "ann", before)


def test_an_omitted_claim_is_entered_or_the_keeper_slashed(toy: ToyRounds) -> None:
    demands, keeper, bob = toy.contracts.demands, toy.wallets["keeper"], toy.wallets["challenger"]
    before = toy.free("challenger")
    _, _, entries = toy.log()
    omitted = toy.made["bob", MERGE].entry
    receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, omitted.claim.digest)
    forged = DeliveryEntry.signed(toy.keys["bob"], toy.plan.digest, 0, omitted.claim.digest)
    with pytest.raises(Reverted, match="OtherSigner"):
        demands.demand_entry(bob, toy.plan_id, forged, omitted)
    with pytest.raises(Reverted, match="OtherClaim"):
        demands.demand_entry(bob, toy.plan_id, receipt, entries[0])
    demand = demands.demand_entry(bob, toy.plan_id, receipt, omitted)
    head, log = toy.head([encode_entry(entry) for entry in entries[:3]])
    # A log without the claim is no answer, nor is a log of somebody else's.
    with pytest.raises(Reverted, match="NotLogged"):
        demands.answer_entry(keeper, demand, omitted, logged_entry(omitted, 2, head, log.inclusion(2)))
    other = logged_entry(entries[2], 2, head, log.inclusion(2))
    with pytest.raises(Reverted, match="OtherSigner"):
        demands.answer_entry(keeper, demand, omitted, other)
    own = replace(head, signature=toy.keys["ann"].sign(head.digest))
    with pytest.raises(Reverted, match="OtherSigner"):
        demands.answer_entry(keeper, demand, omitted, logged_entry(entries[2], 2, own, log.inclusion(2)))
    expire(toy, demand, "keeper", before)


def test_a_receipt_covers_the_sources_of_its_claim(toy: ToyRounds) -> None:
    """Bob's merge is in the log, and ann's step that it follows from is kept out: nobody would pay her for it."""
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    left_out, merge, other = (toy.made[place].entry for place in (("ann", STEP), ("bob", MERGE), ("ann", MERGE)))
    stranger = toy.signed("challenger", left_out, worker=toy.keys["challenger"].name)
    sources = toy.sources(merge)
    strange = [replace(sources[0], claim=stranger.claim.digest), sources[1]]
    of_stranger = toy.signed("bob", merge, sources=sources_root(strange))

    def demanded(
        acknowledged: ClaimEntry, entry: ClaimEntry, *covered: tuple[RoundClaim, list[BoundSlot]]
    ) -> RoundDemand:
        receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, acknowledged.claim.digest)
        return demands.demand_entry(challenger, toy.plan_id, receipt, entry, *covered)

    covered = (merge.claim, sources)
    for error, about in (
        ("OtherClaim", (merge, left_out)),
        ("OtherClaim", (other, left_out, covered)),
        ("OtherClaim", (merge, other, covered)),
        ("NotInSources", (merge, left_out, (merge.claim, sources[::-1]))),
        ("NotInSources", (merge, stranger, (merge.claim, strange))),
        ("NoWorker", (of_stranger, stranger, (of_stranger.claim, strange))),
    ):
        with pytest.raises(Reverted, match=error):
            demanded(*about)
    head, log, _ = toy.log()
    logged = logged_entry(left_out, 0, head, log.inclusion(0))
    demands.answer_entry(toy.wallets["bob"], demanded(merge, left_out, covered), left_out, logged)
    before = toy.free("challenger")
    expire(toy, demanded(merge, left_out, covered), "keeper", before)


def test_an_entry_is_shown(toy: ToyRounds) -> None:
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    before = toy.free("keeper")
    head, log, entries = toy.log()
    receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, entries[3].claim.digest)
    demand = demands.demand_entry(challenger, toy.plan_id, receipt, entries[3])
    # Anybody may answer, for the keeper.
    logged = logged_entry(entries[3], 3, head, log.inclusion(3))
    assert demands.answer_entry(toy.wallets["bob"], demand, entries[3], logged)["gasUsed"] < ANSWER_GAS // 2
    assert toy.free("keeper") == before + demand.bond
    (shown,) = demands.events("EntryShown")
    assert shown["logged"]["index"] == 3
    toy.check_books()


def test_a_roster_is_in_the_log_or_the_keeper_slashed(toy: ToyRounds) -> None:
    """One beside the log may have members that have gone: nobody answers for them."""
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    roster, (head, log, entries) = toy.rosters[0], toy.log()
    entry = RosterEntry(roster.document.hex(), toy.keys["keeper"].sign(roster.digest))
    data = [*map(encode_entry, entries), encode_entry(entry)]
    with pytest.raises(Reverted, match="OtherSigner"):
        demands.demand_roster_entry(challenger, toy.plan_id, roster, toy.keys["ann"].sign(roster.digest))
    demand = demands.demand_roster_entry(challenger, toy.plan_id, roster, entry.signature)
    about = (demand, roster.round, roster.document)
    other = logged_entry(entries[0], 0, head, log.inclusion(0))
    with pytest.raises(Reverted, match="OtherText"):
        demands.answer_roster_entry(toy.wallets["keeper"], *about, other)
    head, log = toy.head(data)
    logged = logged_entry(entry, len(entries), head, log.inclusion(len(entries)))
    demands.answer_roster_entry(toy.wallets["keeper"], *about, logged)
    before = toy.free("challenger")
    expire(toy, demands.demand_roster_entry(challenger, toy.plan_id, roster, entry.signature), "keeper", before)


def test_a_path_is_shown_or_the_keeper_slashed(toy: ToyRounds) -> None:
    demands, challenger = toy.contracts.demands, toy.wallets["challenger"]
    head, log, entries = toy.log()
    data = [encode_entry(entry) for entry in entries]
    older, _ = toy.head(data[:2])
    with pytest.raises(Reverted, match="NotAnExtension"):
        demands.demand_path(challenger, toy.plan_id, head, older)
    demand = demands.demand_path(challenger, toy.plan_id, older, head)
    demands.answer_path(toy.wallets["ann"], demand, older, head, log.consistency(2))
    forked, _ = toy.head([data[1], data[0]])
    before = toy.free("challenger")
    demand = demands.demand_path(challenger, toy.plan_id, forked, head)
    with pytest.raises(Reverted, match="NotAnExtension"):
        demands.answer_path(toy.wallets["keeper"], demand, forked, head, log.consistency(2))
    expire(toy, demand, "keeper", before)


def test_a_late_answer_is_none_and_a_moot_demand_returns_its_bond(toy: ToyRounds) -> None:
    demands, challenger, bob = toy.contracts.demands, toy.wallets["challenger"], toy.wallets["bob"]
    step = toy.made["ann", STEP].entry
    late = demands.demand_source(challenger, toy.plan_id, step, toy.commitment, 0)
    toy.connection.wait_until(late.deadline - DAY // 2)
    before = toy.free("bob")
    moot = demands.demand_source(bob, toy.plan_id, step, toy.commitment, 1)
    toy.connection.wait_until(late.deadline + 1)
    with pytest.raises(Reverted, match="DeadlinePassed"):
        demands.answer_source(toy.wallets["ann"], late, step, toy.commitment, toy.sources(step), 0)
    demands.expire(challenger, late)
    demands.expire(bob, moot)
    assert toy.free("bob") == before
    toy.check_books()
