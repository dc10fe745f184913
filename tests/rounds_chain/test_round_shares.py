"""Pay and ownership by proven work: lines, demands, slashed lines, and every wei of the pay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_rounds import GOSSIP, MONEY, STEP, UNITS, WORKERS, ToyRounds

from pol.chain.account.wallet import Reverted
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.signed_structs import logged_claim
from pol.chain.rounds.worker_bonds import Standing
from pol.errors import ProtocolError
from pol.incentives.work_shares import CountedClaim, encode_line, pay_of, settle_work

WORK = UNITS[STEP] + UNITS[GOSSIP]


def opened(toy: ToyRounds) -> int:
    """A settlement, opened by the coordinator."""
    return toy.contracts.shares.open(toy.wallets["keeper"], toy.plan_id)


def closed(toy: ToyRounds, number: int) -> None:
    """Behind the time in which lines can be disputed."""
    toy.connection.wait_until(toy.contracts.shares.settlement(toy.plan_id, number).closes + 1)


def test_honest_work_is_paid_and_owned(toy: ToyRounds) -> None:
    shares, number = toy.contracts.shares, opened(toy)
    before = {name: toy.free(name) for name in (*WORKERS, "submitter")}
    lines = {"ann": toy.line("ann"), "bob": toy.line("bob")[:1]}
    for name, line in lines.items():
        shares.post(toy.wallets[name], toy.plan_id, number, line)
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        shares.settle(toy.wallets["ann"], toy.plan_id, number)
    closed(toy, number)
    for name in WORKERS:
        shares.settle(toy.wallets["keeper"], toy.plan_id, number, toy.wallets[name].address)
    expected = settle_work(MONEY.pay, {"ann": WORK, "bob": UNITS[STEP]})
    assert {name: toy.free(name) - before[name] for name in WORKERS} == expected.paid
    assert toy.free("submitter") - before["submitter"] == expected.returned > 0
    owned = {name: shares.owned(toy.plan_id, toy.wallets[name].address).units for name in WORKERS}
    assert owned == {"ann": WORK, "bob": UNITS[STEP]}
    assert shares.total_units(toy.plan_id) == sum(owned.values())
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.settle(toy.wallets["ann"], toy.plan_id, number)
    toy.check_books()


def test_nothing_is_counted_twice(toy: ToyRounds) -> None:
    shares, ann, number, line = toy.contracts.shares, toy.wallets["ann"], opened(toy), toy.line("ann")
    with pytest.raises(ProtocolError, match="in order"):
        encode_line(line[::-1])
    with pytest.raises(Reverted, match="BadLine"):
        shares.transact(ann, "post", toy.plan_id, number, line[1].encode() + line[0].encode())
    with pytest.raises(Reverted, match="BadLine"):
        shares.transact(ann, "post", toy.plan_id, number, line[0].encode() * 2)
    with pytest.raises(Reverted, match="BadLine"):
        shares.transact(ann, "post", toy.plan_id, number, line[0].encode() + b"\0")
    shares.post(ann, toy.plan_id, number, line)
    with pytest.raises(Reverted, match="BadLine"):
        shares.post(ann, toy.plan_id, number, line)
    second = opened(toy)
    with pytest.raises(Reverted, match="BadLine"):
        shares.post(ann, toy.plan_id, second, line)
    with pytest.raises(Reverted, match="WrongStanding"):
        shares.post(toy.wallets["challenger"], toy.plan_id, second, line)


def test_variants_of_a_phase_do_not_count(toy: ToyRounds) -> None:
    """No contract knows the size of a roster: who made a claim of each would be paid for both."""
    step, *others = toy.plan.phases
    plan = replace(toy.plan, phases=(replace(step, members=2), replace(step, members=3), *others))
    with pytest.raises(ProtocolError, match="has variants for sizes of rosters and counts"):
        PlanCommitment.of(plan, (0, 100, 0, 10))
    PlanCommitment.of(plan, (0, 0, 0, 10))


def test_a_counted_claim_is_shown(toy: ToyRounds) -> None:
    shares, challenger, number, line = toy.contracts.shares, toy.wallets["challenger"], opened(toy), toy.line("ann")
    shares.post(toy.wallets["ann"], toy.plan_id, number, line)
    before = toy.free("ann")
    head, log, entries = toy.log()
    account = toy.wallets["ann"].address
    bonds = 0
    for index, phase in enumerate((STEP, GOSSIP)):
        entry = toy.made["ann", phase].entry
        demand = shares.demand_counted(challenger, toy.plan_id, number, account, index)
        at = entries.index(entry)
        logged = logged_claim(entry, at, head, log.inclusion(at))
        answer = (toy.commitment, logged)
        other = 1 - index
        with pytest.raises(Reverted, match="NotCounted"):
            shares.answer_counted(toy.wallets["ann"], demand, number, line, other, entry.claim, *answer)
        shares.answer_counted(toy.wallets["ann"], demand, number, line, index, entry.claim, *answer)
        bonds += demand.bond
    assert toy.free("ann") == before + bonds
    with pytest.raises(Reverted, match="NotCounted"):
        shares.demand_counted(challenger, toy.plan_id, number, account, 2)
    closed(toy, number)
    shares.settle(challenger, toy.plan_id, number, account)
    assert shares.owned(toy.plan_id, account).units == WORK
    toy.check_books()


@pytest.mark.parametrize(
    ("lie", "refused"), [("units", "NotCounted"), ("unlogged", "NotLogged"), ("others", "OtherSigner")]
)
def test_a_false_line_is_slashed_and_void(toy: ToyRounds, lie: str, refused: str) -> None:
    """More units than the plan gives, a claim that the log doesn't hold, the claim of another worker."""
    shares, challenger, number = toy.contracts.shares, toy.wallets["challenger"], opened(toy)
    ann, bob = toy.wallets["ann"], toy.wallets["bob"]
    head, log, entries = toy.log()
    entry = toy.made["ann", STEP].entry
    at = entries.index(entry)
    line = toy.line("ann")
    match lie:
        case "units":
            line[0] = replace(line[0], units=UNITS[STEP] + 1)
        case "unlogged":
            entry = toy.signed("ann", entry, round=1, first_step=4)
            line = [CountedClaim(1, STEP, 0, entry.claim.digest, UNITS[STEP])]
        case _:
            entry = toy.made["bob", STEP].entry
            at = entries.index(entry)
            line[0] = replace(line[0], claim=entry.claim.digest)
    shares.post(ann, toy.plan_id, number, line)
    shares.post(bob, toy.plan_id, number, toy.line("bob"))
    demand = shares.demand_counted(challenger, toy.plan_id, number, ann.address, 0)
    logged = logged_claim(entry, at, head, log.inclusion(at))
    with pytest.raises(Reverted, match=refused):
        shares.answer_counted(ann, demand, number, line, 0, entry.claim, toy.commitment, logged)
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.void(bob, toy.plan_id, number, ann.address)
    toy.connection.wait_until(demand.deadline + 1)
    shares.expire(challenger, demand)
    assert toy.contracts.bonds.bond(toy.plan_id, ann.address).standing is Standing.SLASHED
    shares.void(bob, toy.plan_id, number, ann.address)
    assert shares.settlement(toy.plan_id, number).units == WORK
    before = toy.free("bob")
    closed(toy, number)
    shares.settle(bob, toy.plan_id, number)
    # All of the pay is bob's.
    assert toy.free("bob") - before == MONEY.pay
    assert shares.owned(toy.plan_id, ann.address).units == 0
    assert shares.settlement(toy.plan_id, number).left == 0
    toy.check_books()


def test_a_worker_slashed_behind_the_first_payment_gets_nothing(toy: ToyRounds) -> None:
    """What it would have got returns to the submitter; while an accusation is open, its line waits."""
    shares, number = toy.contracts.shares, opened(toy)
    ann, bob, challenger = (toy.wallets[name] for name in ("ann", "bob", "challenger"))
    for wallet, name in ((ann, "ann"), (bob, "bob")):
        shares.post(wallet, toy.plan_id, number, toy.line(name))
    closed(toy, number)
    demands, before = toy.contracts.demands, toy.free("submitter")
    demand = demands.demand_source(challenger, toy.plan_id, toy.made["ann", STEP].entry, toy.commitment, 0)
    with pytest.raises(Reverted, match="AccusationsOpen"):
        shares.settle(ann, toy.plan_id, number)
    shares.settle(bob, toy.plan_id, number)
    toy.connection.wait_until(demand.deadline + 1)
    demands.expire(challenger, demand)
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.void(bob, toy.plan_id, number, ann.address)
    shares.settle(challenger, toy.plan_id, number, ann.address)
    expected = settle_work(MONEY.pay, {"ann": WORK, "bob": WORK}, frozenset({"ann"}))
    assert toy.free("submitter") - before == expected.returned
    assert shares.total_units(toy.plan_id) == WORK
    toy.check_books()


def test_settlements_are_opened_in_time_and_end(toy: ToyRounds) -> None:
    """The coordinator opens when it likes, anybody behind a period; unclaimed pay returns to the submitter."""
    shares, ann = toy.contracts.shares, toy.wallets["ann"]
    before = toy.free("submitter")
    with pytest.raises(Reverted, match="NotOpenable"):
        shares.open(ann, toy.plan_id)
    opened(toy)
    with pytest.raises(Reverted, match="NotOpenable"):
        shares.open(ann, toy.plan_id)
    toy.connection.wait_until(toy.connection.now() + MONEY.period)
    shares.open(ann, toy.plan_id)
    last = opened(toy)
    with pytest.raises(Reverted, match="NotOpenable"):
        opened(toy)
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        shares.close(ann, toy.plan_id, last)
    closed(toy, last)
    for number in range(MONEY.settlements):
        shares.close(ann, toy.plan_id, number)
    with pytest.raises(Reverted, match="NothingToSettle"):
        shares.close(ann, toy.plan_id, 0)
    assert toy.free("submitter") - before == MONEY.pay * MONEY.settlements
    assert toy.contracts.vault.pot(shares.address, toy.plan_id) == 0
    toy.check_books()


def test_a_worker_that_leaves_too_soon_counts_nothing(toy: ToyRounds) -> None:
    bonds, shares, ann = toy.contracts.bonds, toy.contracts.shares, toy.wallets["ann"]
    bonds.leave(ann, toy.plan_id)
    toy.connection.wait_until(bonds.bond(toy.plan_id, ann.address).until - MONEY.line_window)
    number = opened(toy)
    with pytest.raises(Reverted, match="DeadlinePassed"):
        shares.post(ann, toy.plan_id, number, toy.line("ann"))


AMOUNTS, NUMBERS = st.integers(0, 2**112), st.lists(st.integers(1, 2**112), min_size=1, max_size=8)


@given(AMOUNTS, NUMBERS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_every_wei_is_paid_or_returned(pay: int, units: list[int]) -> None:
    settled = settle_work(pay, {str(place): own for place, own in enumerate(units)})
    assert sum(settled.paid.values()) + settled.returned == pay
    assert 0 <= settled.returned < len(units)


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
    """It can't leave before, and without its stake nobody counts anything: the pay returns."""
    bonds, shares, keeper = toy.contracts.bonds, toy.contracts.shares, toy.wallets["keeper"]
    with pytest.raises(Reverted, match="SettlementsAhead"):
        bonds.leave(keeper, toy.plan_id)
    number = opened(toy)
    head, _, _ = toy.log()
    other, _ = toy.head([b"another entry", *(b"entries" for _ in range(5))])
    toy.contracts.evidence.show_forked_log(toy.wallets["bob"], toy.plan_id, head, other)
    with pytest.raises(Reverted, match="WrongStanding"):
        shares.post(toy.wallets["ann"], toy.plan_id, number, toy.line("ann"))
    with pytest.raises(Reverted, match="WrongStanding"):
        bonds.join(toy.wallets["challenger"], toy.plan_id)
    closed(toy, number)
    before = toy.free("submitter")
    shares.close(toy.wallets["ann"], toy.plan_id, number)
    assert toy.free("submitter") - before == MONEY.pay
    toy.check_books()
