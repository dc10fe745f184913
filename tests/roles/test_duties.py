"""Seats, errors on purpose, secrets, watchers and bids, played by the parties on a real node."""

from dataclasses import replace

import pytest
from all_parties import Solver, Verifier, Whistleblower
from role_market import OFTEN, WATCHED, Town, gain, open_call, profiled, seated_with_duty, settle, submitted, verified

from lab.incentives.auction_rules import forfeited
from pol.chain.account.wallet import Reverted
from pol.chain.desks.challenges import ClaimChargeKind
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.errors import ProtocolError
from pol.incentives.sortition import DrawnDuty, TicketDraw
from pol.roles.party.role import Role
from pol.roles.whistleblower.profile_challenger import report_leak

MARKET_RULES, JOINED = OFTEN, (*WATCHED, (Verifier, "late"))
SECOND = 2
"""The seating of the first verifier: the first one is that of the profiler."""


@pytest.fixture(scope="module")
def final(node: Town) -> bytes:
    """A task with a final profile. There are no more tickets than watchers, so that each of them watches."""
    for kind, name in ((Verifier, "v"), (Verifier, "late"), (Whistleblower, "w")):
        node.join(kind, name)
    task_id, _ = submitted(node)
    profiled(node.join(Verifier, "v"), task_id)
    return task_id


def bidding(role: Role, task_id: bytes) -> bytes:
    """The round in which bids are taken now."""
    market = role.market
    role.connection.wait_until(market.auction.bid_until(market.auction.last_round(market.registry.address, task_id)))
    market.registry.award(role.wallet, task_id)
    return market.auction.last_round(market.registry.address, task_id)


def share(role: Role, task_id: bytes) -> int:
    """What a catch pays."""
    return role.market.registry.terms(task_id).jackpot // int(role.market.jackpot.read("shares"))


def after_watch(role: Role, task_id: bytes) -> None:
    """Nobody watches any more."""
    role.connection.wait_until(role.market.verdicts.verdict(task_id).watch_until)


# --- errors on purpose ------------------------------------------------------------------------------------------------


def test_a_forced_error_is_planted_found_disclosed_and_paid(proven: bytes, town: Town) -> None:
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    market, reserve = watcher.market, watcher.market.jackpot.available()
    terms, before = market.registry.terms(proven), gain(verifier)
    seated_with_duty(verifier, proven, forced=True)
    (verdict,) = verifier.verify(proven)
    (posted,) = market.verdicts.claims(proven, SECOND)
    assert verdict.claim is not None
    assert posted == replace(verdict.claim, replay=verifier.duty(proven).error_root)
    assert watcher.watched(proven) == []
    verifier.open_watch(proven)
    assert watcher.watched(proven) == [0]
    (finding,) = watcher.watch(proven)
    assert finding.charge.kind is ClaimChargeKind.REPLAY
    after_watch(verifier, proven)
    assert verifier.disclose(proven)
    assert market.verdicts.claims(proven, SECOND) == [verdict.claim]
    assert market.verdicts.claims_as_posted(proven, SECOND) == [posted]
    assert watcher.check(proven) == []
    with pytest.raises(ProtocolError, match="another claim stands there now"):
        watcher.challenge(proven, finding)
    with pytest.raises(Reverted):
        watcher.collect(proven, SECOND, finding.charge.index)
    settle(verifier, proven)
    assert market.registry.task(proven).outcome is TaskOutcome.ACCEPTED
    assert gain(verifier) - before == terms.verifier_fee
    assert watcher.collect(proven, SECOND, finding.charge.index) == 1
    assert gain(watcher, tickets=1) == share(watcher, proven)
    assert watcher.collect(proven, SECOND, finding.charge.index) == 0
    town.connection.wait_until(market.jackpot.catch_until(market.registry.task(proven).closed))
    market.jackpot.sweep(verifier.wallet, proven)
    tax = market.jackpot.tax(terms.jackpot)
    assert market.jackpot.available() == reserve + terms.jackpot - share(watcher, proven) + tax


def test_where_nothing_is_wrong_nobody_commits_and_the_reserve_is_swept(proven: bytes, town: Town) -> None:
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    market, reserve = watcher.market, watcher.market.jackpot.available()
    seated_with_duty(verifier, proven, forced=False)
    verifier.verify(proven)
    verifier.open_watch(proven)
    assert watcher.watch(proven) == []
    assert market.jackpot.events("Watched") == []
    after_watch(verifier, proven)
    assert not verifier.disclose(proven)
    settle(verifier, proven)
    jackpot = market.registry.terms(proven).jackpot
    town.connection.wait_until(market.jackpot.catch_until(market.registry.task(proven).closed))
    market.jackpot.sweep(verifier.wallet, proven)
    assert market.jackpot.available() == reserve + jackpot + market.jackpot.tax(jackpot)


def test_nothing_is_abandoned_whose_round_can_be_brought(proven: bytes, town: Town) -> None:
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    verdicts = verifier.market.verdicts
    seated_with_duty(verifier, proven, forced=False)
    verifier.verify(proven)
    assert verdicts.patient_until(proven) == verdicts.verdict(proven).watch_fixed_at + 2 * 7 * 24 * 3600
    town.connection.wait_until(verdicts.patient_until(proven) + 1)
    deed = open_call(watcher, proven)
    assert deed.verb == "abandon the task"
    deed.act()
    assert verdicts.patient_until(proven) == 0
    assert open_call(watcher, proven).verb == "open the watch"


@pytest.mark.parametrize("watched", [False, True])
def test_who_shows_a_leaked_secret_gets_half_of_the_stake(proven: bytes, town: Town, watched: bool) -> None:
    verifier, late, watcher = town.join(Verifier, "v"), town.join(Verifier, "late"), town.join(Whistleblower, "w")
    market, terms = watcher.market, watcher.market.registry.terms(proven)
    seated_with_duty(verifier, proven, forced=True)
    with pytest.raises(ProtocolError, match="isn't the secret of seat"):
        report_leak(watcher, proven, b"\x01" * 32)
    if watched:
        verifier.verify(proven)
        verifier.open_watch(proven)
    report_leak(watcher, proven, verifier.duty(proven).secret)
    assert gain(watcher, tickets=1) == terms.verifier_stake // 2
    if watched:
        # Watchers have worked: they go on until their time is over.
        (finding,) = watcher.watch(proven)
        after_watch(verifier, proven)
        with pytest.raises(ProtocolError, match="holds no seat"):
            verifier.disclose(proven)
        market.verdicts.claim_undisclosed(late.wallet, proven)
    assert market.registry.task(proven).status is Status.COMMITTED
    verified(late, proven)
    settle(late, proven)
    if watched:
        assert watcher.collect(proven, SECOND, finding.charge.index) == 1
    assert market.registry.task(proven).outcome is TaskOutcome.ACCEPTED


# --- seats ------------------------------------------------------------------------------------------------------------


def test_the_better_claim_displaces_the_other(proven: bytes, town: Town) -> None:
    roles = [town.join(Verifier, "v"), town.join(Verifier, "late")]
    with pytest.raises(ProtocolError, match="no ticket when the seat was opened"):
        town.join(Verifier, "new").claim_seat(proven)
    seat = roles[0].market.seats.seating(proven)
    draw = TicketDraw(DrawnDuty.SEAT, proven, seat.number, seat.fixed_at, seat.seed)
    better, worse = sorted(roles, key=lambda role: draw.rank(bytes.fromhex(role.wallet.address[2:]), 0))
    worse.claim_seat(proven)
    better.claim_seat(proven)
    assert (worse.take_seat(proven), better.take_seat(proven)) == (False, True)


# --- bids -------------------------------------------------------------------------------------------------------------


def test_the_cheapest_bid_wins_and_is_paid_the_next_score(final: bytes, town: Town) -> None:
    cheap, dear, silent = (town.join(Solver, name) for name in ("a", "b", "c"))
    market, terms = cheap.market, cheap.market.registry.terms(final)
    round_id = bidding(cheap, final)
    offers = {cheap: 20, dear: 10, silent: 5}
    bids = {solver: solver.bid(final, discount_percent=discount) for solver, discount in offers.items()}
    assert all(gain(solver) == -terms.solver_stake for solver in offers)
    dear.reveal(final, discount_percent=10)
    cheap.reveal(final, discount_percent=20)
    assert (gain(cheap), gain(dear)) == (-terms.solver_stake, 0)
    town.connection.wait_until(market.auction.bid_until(round_id) + terms.bid_window)
    market.registry.award(dear.wallet, final)
    state = market.registry.task(final)
    assert (state.status, state.solver, state.price) == (Status.TRAINING, cheap.wallet.address, bids[dear].price)
    market.auction.forfeit(dear.wallet, round_id, silent.wallet.address)
    assert gain(silent) == -forfeited(terms.solver_stake)
