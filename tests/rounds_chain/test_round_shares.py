"""Pay and ownership by proven work: lines, demands, slashed lines, and every wei of the pay."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_rounds import GOSSIP, MERGE, MONEY, ROSTER_ANSWER_GAS, STEP, UNITS, WORKERS, ToyRounds, price_of

from pol.chain.account.wallet import Reverted
from pol.chain.rounds.plan_terms import PlanCommitment, PlanTerms, require_terms
from pol.chain.rounds.round_demands import RoundDemand
from pol.chain.rounds.signed_structs import logged_entry, phase_proof
from pol.chain.rounds.worker_bonds import Standing
from pol.errors import ProtocolError
from pol.incentives.work_shares import MAX_LINE, CountedClaim, encode_line, pay_of, settle_work
from pol.rounds.log.log_entries import ClaimEntry, encode_entry
from pol.rounds.log.rounds_log import load_plan
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import SHOWN_LIMIT, Member, Roster

WORK = UNITS[STEP] + UNITS[GOSSIP]


def opened(toy: ToyRounds) -> int:
    """A settlement, opened when it is time."""
    shares, bonds = toy.contracts.shares, toy.contracts.bonds
    last = shares.read("openedAt", toy.plan_id) or bonds.read("registeredAt", toy.plan_id)
    toy.connection.wait_until(last + MONEY.period)
    return shares.open(toy.wallets["keeper"], toy.plan_id)


def closed(toy: ToyRounds, number: int) -> None:
    """Behind the time in which lines can be disputed."""
    toy.connection.wait_until(toy.contracts.shares.settlement(toy.plan_id, number).closes + 1)


def post(toy: ToyRounds, name: str, number: int, line: list[CountedClaim]) -> None:
    """A line of a worker."""
    toy.contracts.shares.post(toy.wallets[name], toy.plan_id, number, line, toy.commitment)


def signed(toy: ToyRounds, roster: Roster) -> tuple[Roster, bytes]:
    """A roster with its coordinator's signature."""
    return roster, toy.keys["keeper"].sign(roster.digest)


def test_honest_work_is_paid_and_owned(toy: ToyRounds) -> None:
    shares, number = toy.contracts.shares, opened(toy)
    before = {name: toy.free(name) for name in (*WORKERS, "submitter")}
    lines = {"ann": toy.line("ann"), "bob": toy.line("bob")[:1]}
    for name, line in lines.items():
        post(toy, name, number, line)
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        shares.settle(toy.wallets["ann"], toy.plan_id, number)
    closed(toy, number)
    for name in WORKERS:
        shares.settle(toy.wallets["keeper"], toy.plan_id, number, toy.wallets[name].address)
    expected = settle_work(MONEY.pay, MONEY.work, {"ann": WORK, "bob": UNITS[STEP]})
    assert {name: toy.free(name) - before[name] for name in WORKERS} == expected.paid
    assert toy.free("submitter") == before["submitter"]
    owned = {name: shares.owned(toy.plan_id, toy.wallets[name].address).units for name in WORKERS}
    assert owned == {"ann": WORK, "bob": UNITS[STEP]}
    assert shares.read("totalUnits", toy.plan_id) == sum(owned.values())
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.settle(toy.wallets["ann"], toy.plan_id, number)
    toy.check_books()


def test_nothing_is_counted_twice(toy: ToyRounds) -> None:
    shares, ann, number, line = toy.contracts.shares, toy.wallets["ann"], opened(toy), toy.line("ann")
    phases = [(index, phase_proof(toy.commitment, index)) for index in (STEP, GOSSIP)]
    with pytest.raises(ProtocolError, match="in order"):
        encode_line(line[::-1])
    for claims in (line[1].encode() + line[0].encode(), line[0].encode() * 2, line[0].encode() + b"\0", b""):
        with pytest.raises(Reverted, match="BadLine"):
            shares.transact(ann, "post", toy.plan_id, number, claims, phases)
    post(toy, "ann", number, line)
    with pytest.raises(Reverted, match="BadLine"):
        post(toy, "ann", number, line)
    second = opened(toy)
    with pytest.raises(Reverted, match="BadLine"):
        post(toy, "ann", second, line)
    with pytest.raises(Reverted, match="WrongStanding"):
        post(toy, "challenger", second, line)


def test_all_that_is_signed_names_the_registration(toy: ToyRounds) -> None:
    """Its id covers chain, contract, submitter and terms; a store that holds it leads to the plan."""
    require_terms(toy.contracts.bonds.terms(toy.plan_id), toy.commitment)
    assert load_plan(toy.authors["ann"].store, toy.plan_id.hex()) == toy.plan
    assert {each.plan for each in (*toy.rosters, *(made.entry.claim for made in toy.made.values()))} == {toy.plan_id}
    document = replace(toy.plan, registration=b"")
    assert document.encode() == toy.plan.encode()
    assert document.digest == toy.contracts.bonds.terms(toy.plan_id).plan


def test_variants_of_a_phase_do_not_count(toy: ToyRounds) -> None:
    """No contract knows the size of a roster: who made a claim of each would be paid for both."""
    step, *others = toy.plan.phases
    with pytest.raises(ProtocolError, match="has variants for sizes of rosters and counts"):
        replace(toy.plan, phases=(replace(step, members=2, units=0), replace(step, members=3), *others))
    step = replace(step, units=0)
    replace(toy.plan, phases=(replace(step, members=2), replace(step, members=3), *others))


def test_what_claims_count_for_is_in_the_document(toy: ToyRounds) -> None:
    """A reader of the plan computes the shares, and joins no registration with others."""
    plan, terms = RoundsPlan.decode(toy.plan.encode()), toy.contracts.bonds.terms(toy.plan_id)
    assert tuple(phase.units for phase in plan.phases) == UNITS
    step, *others = plan.phases
    other = PlanCommitment.of(replace(plan, phases=(replace(step, units=7), *others)))
    with pytest.raises(ProtocolError, match="something else than the plan's document"):
        require_terms(replace(terms, phases=other.root), PlanCommitment.of(plan))


def test_a_plan_that_no_court_or_line_can_hold_is_refused(toy: ToyRounds) -> None:
    step, *others = toy.plan.phases
    least = (1 << 32) // toy.plan.rounds
    PlanCommitment.of(replace(toy.plan, phases=(replace(step, steps=least), *others)))
    with pytest.raises(ProtocolError, match="no court decides"):
        PlanCommitment.of(replace(toy.plan, phases=(replace(step, steps=least + 1), *others)))
    for parts in (MAX_LINE - 1, MAX_LINE):  # beside one of gossip
        long = PlanCommitment.of(replace(toy.plan, phases=(replace(step, parts=parts), *others)))
        if parts < MAX_LINE:
            PlanTerms.of(long, MONEY)
            continue
        with pytest.raises(ProtocolError, match="3 settlements take 2044 each"):
            PlanTerms.of(long, MONEY)
    most = (1 << 112) // toy.plan.rounds - sum(phase.units * phase.parts for phase in others)
    PlanTerms.of(PlanCommitment.of(replace(toy.plan, phases=(replace(step, units=most), *others))), MONEY)
    with pytest.raises(ProtocolError, match="more than a line counts"):
        PlanTerms.of(PlanCommitment.of(replace(toy.plan, phases=(replace(step, units=most + 1), *others))), MONEY)


def test_a_counted_claim_is_shown(toy: ToyRounds) -> None:
    shares, challenger, number, line = toy.contracts.shares, toy.wallets["challenger"], opened(toy), toy.line("ann")
    post(toy, "ann", number, line)
    before = toy.free("ann")
    head, log, entries = toy.log()
    account = toy.wallets["ann"].address
    bonds, named = 0, signed(toy, toy.rosters[0])
    for index, phase in enumerate((STEP, GOSSIP)):
        entry = toy.made["ann", phase].entry
        demand = shares.demand_counted(challenger, toy.plan_id, number, account, index)
        at = entries.index(entry)
        about = (entry.claim, toy.commitment, named, logged_entry(entry, at, head, log.inclusion(at)))
        other = 1 - index
        with pytest.raises(Reverted, match="NotCounted"):
            shares.answer_counted(toy.wallets["ann"], demand, number, line, other, *about)
        shares.answer_counted(toy.wallets["ann"], demand, number, line, index, *about)
        bonds += price_of(demand, len(named[0].encode()))
    assert toy.free("ann") == before + bonds
    with pytest.raises(Reverted, match="NotCounted"):
        shares.demand_counted(challenger, toy.plan_id, number, account, 2)
    closed(toy, number)
    shares.settle(challenger, toy.plan_id, number, account)
    assert shares.owned(toy.plan_id, account).units == WORK
    toy.check_books()


@pytest.mark.parametrize(("lie", "refused"), [("unlogged", "NotLogged"), ("others", "OtherSigner")])
def test_a_false_line_is_slashed_and_void(toy: ToyRounds, lie: str, refused: str) -> None:
    """A claim that the log doesn't hold, the claim of another worker."""
    shares, challenger, number = toy.contracts.shares, toy.wallets["challenger"], opened(toy)
    ann, bob = toy.wallets["ann"], toy.wallets["bob"]
    head, log, entries = toy.log()
    entry = toy.made["ann" if lie == "unlogged" else "bob", STEP].entry
    at = entries.index(entry)
    line = toy.line("ann")
    if lie == "unlogged":
        entry = toy.signed("ann", entry, round=1, first_step=4, roster=toy.rosters[1].document)
        line = [CountedClaim(1, STEP, 0, entry.claim.digest, UNITS[STEP])]
    else:
        line[0] = replace(line[0], claim=entry.claim.digest)
    post(toy, "ann", number, line)
    post(toy, "bob", number, toy.line("bob"))
    demand = shares.demand_counted(challenger, toy.plan_id, number, ann.address, 0)
    logged = logged_entry(entry, at, head, log.inclusion(at))
    roster = signed(toy, toy.rosters[entry.claim.round])
    with pytest.raises(Reverted, match=refused):
        shares.answer_counted(ann, demand, number, line, 0, entry.claim, toy.commitment, roster, logged)
    toy.connection.wait_until(demand.deadline + 1)
    shares.expire(challenger, demand)
    assert toy.contracts.bonds.bond(toy.plan_id, ann.address).standing is Standing.SLASHED
    shares.settle(bob, toy.plan_id, number, ann.address)
    assert shares.line(toy.plan_id, number, ann.address).units == 0
    assert shares.settlement(toy.plan_id, number).units == WORK
    before = toy.free("bob"), toy.free("submitter")
    closed(toy, number)
    shares.settle(bob, toy.plan_id, number)
    shares.close(bob, toy.plan_id, number)
    expected = settle_work(MONEY.pay, MONEY.work, {"bob": WORK})
    assert (toy.free("bob") - before[0], toy.free("submitter") - before[1]) == (expected.paid["bob"], expected.returned)
    toy.check_books()


def counted(toy: ToyRounds, name: str, roster: Roster, claim: ClaimEntry) -> tuple[RoundDemand, tuple[Any, ...]]:
    """A worker's claim is logged, counted alone, and demanded in the last minute; the demand, and the answer to it."""
    shares, number = toy.contracts.shares, opened(toy)
    line = [CountedClaim(0, STEP, claim.claim.part, claim.claim.digest, UNITS[STEP])]
    post(toy, name, number, line)
    head, log = toy.head([encode_entry(claim)])
    account = toy.wallets[name].address
    toy.connection.wait_until(shares.settlement(toy.plan_id, number).closes - 60)
    demand = shares.demand_counted(toy.wallets["challenger"], toy.plan_id, number, account, 0)
    logged = logged_entry(claim, 0, head, log.inclusion(0))
    return demand, (demand, number, line, 0, claim.claim, toy.commitment, signed(toy, roster), logged)


@pytest.mark.parametrize(
    ("lie", "refused"),
    [
        ("route", "NotCounted"),
        ("member", "NotCounted"),
        ("provisional", "NotCounted"),
        ("no route", "OtherText"),
        ("unsigned", "OtherSigner"),
        ("another roster", "OtherRoster"),
        ("another phase", "NotInPlan"),
    ],
)
def test_a_copy_of_another_members_claim_is_not_counted(toy: ToyRounds, lie: str, refused: str) -> None:
    """It is true, and was paid as soon as it was seen: its author has signed what another one has computed."""
    any_author, toy = toy.commitment, toy.beside("member:1" if lie == "member" else "route:1")
    shares, ann, bob = toy.contracts.shares, toy.wallets["ann"], toy.wallets["bob"]
    roster = toy.rosters[0]
    of_ann = replace(roster, routes=((1, 0),))
    if lie == "provisional":  # of the member that falls out, and then of the other one
        roster = replace(of_ann, provisional=True)
    elif lie == "no route":
        roster = replace(roster, routes=())
    elif lie == "unsigned":
        roster = of_ann
    changes = {"plan": toy.plan_id, "roster": roster.document, "worker": toy.keys["ann"].name}
    copy = toy.signed("ann", toy.made["bob", STEP].entry, **changes)
    demand, (*about, commitment, shown, logged) = counted(toy, "ann", roster, copy)
    if lie == "unsigned":
        shown = (roster, toy.keys["ann"].sign(roster.digest))
    elif lie == "another roster":
        shown = signed(toy, of_ann)
    elif lie == "another phase":
        commitment = any_author
    with pytest.raises(Reverted, match=refused):
        shares.answer_counted(ann, *about, commitment, shown, logged)
    toy.connection.wait_until(demand.deadline + 1)
    shares.expire(bob, demand)
    assert toy.contracts.bonds.bond(toy.plan_id, ann.address).standing is Standing.SLASHED
    toy.check_books()


@pytest.mark.parametrize(
    ("author", "members", "parts", "role"),
    [
        ("route:1", 2, 1, ""),
        ("route:1", 2, 3, ""),
        ("route:1", 2, 20_000, ""),
        ("member:999", 1000, 1, ""),
        ("route:1", 1000, 1, ""),
        ("member:1", 2, 1, "x" * 123_000),
        ("member:1", 2, 1, '},"' * 30_000),
    ],
)
def test_an_answer_of_any_size_is_paid_for(toy: ToyRounds, author: str, members: int, parts: int, role: str) -> None:
    """However long the roster, wherever its author stands in it, and whatever others are named."""
    toy = toy.beside(author, parts)
    shares, made = toy.contracts.shares, toy.made["bob", STEP].entry
    ann, bob = toy.rosters[0].members
    others = tuple(Member(f"0x{number:040x}", number) for number in range(2, members))
    routes = tuple((0, 0 if part < parts - 1 else members - 1) for part in range(parts)) if "route" in author else ()
    roster = Roster(toy.plan_id, 0, (replace(ann, role=role), *others, bob), (), routes)
    assert len(roster.encode()) <= SHOWN_LIMIT
    entry = toy.signed("bob", made, plan=toy.plan_id, roster=roster.document, part=parts - 1)
    demand, answer = counted(toy, "bob", roster, entry)
    before = toy.free("bob")
    receipt = shares.answer_counted(toy.wallets["ann"], *answer)
    assert toy.free("bob") - before == price_of(demand, len(roster.encode()))
    fee = (demand.bond - MONEY.price) // ROSTER_ANSWER_GAS  # at the demand
    assert receipt["gasUsed"] * fee <= toy.free("bob") - before - MONEY.price
    # With the longest roster, and 64 hashes for a long log and a long line, it is one that nodes take.
    beside = len(toy.connection.web3.eth.get_transaction(receipt["transactionHash"])["input"]) - len(roster.encode())
    assert SHOWN_LIMIT + beside + 64 * 32 < 1 << 17
    toy.check_books()


def test_what_is_shown_at_last_is_refuted_before_it_is_paid(toy: ToyRounds) -> None:
    """A false claim that the keeper had shown to nobody was paid in the block of the answer; then its author left."""
    shares, bonds, ann, bob = toy.contracts.shares, toy.contracts.bonds, toy.wallets["ann"], toy.wallets["bob"]
    honest = toy.made["ann", STEP].entry
    false = toy.signed("ann", honest, end=b"\x07" * 32)
    demand, (_, number, *answer) = counted(toy, "ann", toy.rosters[0], false)
    bonds.leave(ann, toy.plan_id)
    toy.connection.wait_until(demand.deadline - 60)
    shares.answer_counted(ann, demand, number, *answer)
    toy.connection.wait_until(toy.connection.now() + MONEY.line_window - 60)
    for gain in (shares.settle, bonds.depart):
        with pytest.raises(Reverted, match=r"DeadlineNotPassed|TooEarly"):
            gain(ann, toy.plan_id, *((number,) if gain == shares.settle else ()))
    toy.contracts.evidence.show_two_claims(bob, toy.plan_id, honest, false)
    shares.settle(bob, toy.plan_id, number, ann.address)
    assert shares.line(toy.plan_id, number, ann.address).units == 0
    toy.check_books()


def test_a_source_that_is_shown_at_last_is_refuted_before_it_is_paid(toy: ToyRounds) -> None:
    """The claim behind a counted one was shown when lines could be disputed no more, paid in that block, and false."""
    shares, bonds, ann, bob = toy.contracts.shares, toy.contracts.bonds, toy.wallets["ann"], toy.wallets["bob"]
    number, merge, false = opened(toy), toy.made["ann", MERGE].entry, toy.made["ann", STEP]
    post(toy, "ann", number, toy.line("ann"))
    bonds.leave(ann, toy.plan_id)
    toy.connection.wait_until(shares.settlement(toy.plan_id, number).closes - 60)
    demands = toy.contracts.demands
    demand = demands.demand_source(toy.wallets["challenger"], toy.plan_id, merge, toy.commitment, 0)
    toy.connection.wait_until(demand.deadline - 60)
    end = [slot.root for slot in false.end]
    demands.answer_source(ann, demand, merge, toy.commitment, toy.sources(merge), 0, false.entry, end)
    quiet = bonds.bond(toy.plan_id, ann.address).quiet
    assert quiet - toy.connection.now() > MONEY.line_window - 60
    toy.connection.wait_until(quiet - 60)
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        shares.settle(ann, toy.plan_id, number)
    other = toy.signed("ann", false.entry, end=b"\x07" * 32)
    toy.contracts.evidence.show_two_claims(bob, toy.plan_id, false.entry, other)
    shares.settle(bob, toy.plan_id, number, ann.address)
    assert shares.line(toy.plan_id, number, ann.address).units == 0
    toy.check_books()


def test_settlements_are_opened_in_time_and_end(toy: ToyRounds) -> None:
    """A period after the one before; pay for which nobody has worked returns to the submitter."""
    shares, ann = toy.contracts.shares, toy.wallets["ann"]
    before = toy.free("submitter")
    with pytest.raises(Reverted, match="NotOpenable"):
        shares.open(toy.wallets["keeper"], toy.plan_id)
    for number in range(MONEY.settlements):
        assert opened(toy) == number
        with pytest.raises(Reverted, match="DeadlineNotPassed"):
            shares.close(ann, toy.plan_id, number)
        closed(toy, number)
        shares.close(ann, toy.plan_id, number)
    with pytest.raises(Reverted, match="NotOpenable"):
        opened(toy)
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.close(ann, toy.plan_id, 0)
    assert toy.free("submitter") - before == MONEY.pay * MONEY.settlements
    assert toy.contracts.vault.pot(shares.address, toy.plan_id) == 0
    toy.check_books()


def test_a_worker_that_leaves_too_soon_counts_nothing(toy: ToyRounds) -> None:
    bonds, shares, ann = toy.contracts.bonds, toy.contracts.shares, toy.wallets["ann"]
    toy.connection.wait_until(toy.connection.now() + MONEY.period - MONEY.line_window)
    bonds.leave(ann, toy.plan_id)
    number = opened(toy)
    # Its claims could be demanded, but not refuted any more when it has shown them.
    assert bonds.bond(toy.plan_id, ann.address).until > shares.settlement(toy.plan_id, number).closes
    with pytest.raises(Reverted, match="WrongStanding"):
        post(toy, "ann", number, toy.line("ann"))


AMOUNTS, NUMBERS = st.integers(0, 2**112), st.lists(st.integers(1, 2**112), min_size=1, max_size=8)


@given(AMOUNTS, NUMBERS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_all_is_paid_or_returned_but_for_what_rounding_leaves(pay: int, units: list[int]) -> None:
    for work in (1, sum(units), 2 * sum(units)):
        settled = settle_work(pay, work, {str(place): own for place, own in enumerate(units)})
        assert 0 <= pay - sum(settled.paid.values()) - settled.returned <= len(units)


@given(AMOUNTS, NUMBERS, st.integers(1, 2**112), st.integers(0, 2**112))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_split_identity_gains_nothing(pay: int, others: list[int], own: int, cut: int) -> None:
    total = sum(others) + own
    first = min(cut, own)
    assert pay_of(pay, first, total) + pay_of(pay, own - first, total) <= pay_of(pay, own, total)


def test_python_and_the_contract_agree(toy: ToyRounds) -> None:
    shares = toy.contracts.shares
    most = 2**112
    for pay, units, total in (
        (0, 1, 1), (1, 1, 2), (1, 2, 2), (MONEY.pay, 1, 3), (MONEY.pay, 2, 3), (10**18, 7, 11), (5, 0, 0),
        (most, most, most), (most, most - 1, most), (most, 1, most * 65_536), (most, most, most * 2**32),
    ):  # fmt: skip
        assert shares.read("payOf", pay, units, total) == pay_of(pay, units, total)


def test_a_keeper_answers_for_its_log_until_all_is_counted(toy: ToyRounds) -> None:
    """It can't leave before. If it falls, honest lines are paid, nobody joins, and the treasury gets the rest."""
    bonds, shares, keeper = toy.contracts.bonds, toy.contracts.shares, toy.wallets["keeper"]
    with pytest.raises(Reverted, match="SettlementsAhead"):
        bonds.leave(keeper, toy.plan_id)
    head, _, _ = toy.log()
    other, _ = toy.head([b"another entry", *(b"entries" for _ in range(5))])
    toy.contracts.evidence.show_forked_log(toy.wallets["bob"], toy.plan_id, head, other)
    with pytest.raises(Reverted, match="WrongStanding"):
        bonds.join(toy.wallets["challenger"], toy.plan_id)
    treasury, submitter, ann = toy.free("treasury"), toy.free("submitter"), toy.free("ann")
    number = opened(toy)
    assert toy.free("treasury") - treasury == MONEY.pay * (MONEY.settlements - 1)
    post(toy, "ann", number, toy.line("ann"))
    closed(toy, number)
    shares.settle(keeper, toy.plan_id, number, toy.wallets["ann"].address)
    shares.close(keeper, toy.plan_id, number)
    expected = settle_work(MONEY.pay, MONEY.work, {"ann": WORK})
    assert toy.free("ann") - ann == expected.paid["ann"]
    assert toy.free("treasury") - treasury == MONEY.pay * (MONEY.settlements - 1) + expected.returned
    assert toy.free("submitter") == submitter
    toy.check_books()
