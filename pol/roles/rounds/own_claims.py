"""What a worker counts next, and what it demands before: claims that the keeper has signed for and doesn't log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pol.chain.rounds.round_demands import entry_content
from pol.chain.rounds.worker_bonds import Standing
from pol.errors import OperationalError
from pol.incentives.work_shares import CountedClaim, pay_of
from pol.roles.party.decisions import Mode
from pol.roles.rounds.pay_state import Course
from pol.roles.rounds.round_party import RoundParty
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.log.logged_rounds import is_signed
from pol.rounds.round_claim import BoundSlot, RoundClaim

DEMAND_GAS = 300_000
"""Gas of a demand, which its author pays besides the bond."""


@dataclass(frozen=True)
class Omission:
    """A claim that isn't logged, and the receipt by which the keeper owes its entry."""

    entry: ClaimEntry
    receipt: DeliveryEntry
    covered: tuple[RoundClaim, Sequence[BoundSlot]] | None
    """Of a receipt that is of a claim which follows from this one: that claim and its sources."""
    pay: int
    """The most that the claim is paid."""


@dataclass(frozen=True)
class OwnClaims:
    """A worker's claims that count and aren't counted yet."""

    line: Sequence[CountedClaim]
    """Those that it can show, in their order, before the first one that it waits for: a later one would give it up."""
    due: Sequence[Omission] = ()
    """Those that it demands now."""
    last: int = 0
    """The last second of a demand whose answer comes in time for a line."""

    @classmethod
    def of(cls, role: RoundParty, course: Course) -> OwnClaims:
        """Those of a party, by its log, its journal, and what was shown on the chain.

        A claim is demanded if it may be paid more than the demand costs, which is lost if the keeper enters it then;
        and behind the round of its receipt, within which an honest keeper enters it.
        """
        kept, demands = role.kept, role.contracts.demands
        counted = role.contracts.shares.owned(role.plan_id, role.wallet.address).counted
        claims = role.commitment.line(kept.rounds, role.name, counted)
        missing = [claim for claim in claims if claim.claim not in kept.logged.claims]
        if not missing:
            return cls(claims)
        shown, last = demands.shown_entries(role.plan_id), _last_line(role, course)
        opened = {demand.content: demand.deadline for demand in demands.demands(role.plan_id)}
        lacks = [claim for claim in missing if claim.claim not in shown]
        asked = {claim.claim: opened.get(entry_content(kept.rounds.claims[claim.claim])) for claim in lacks}
        waited = {claim for claim, deadline in asked.items() if deadline is not None and deadline <= last}
        due, now, last = list[Omission](), role.connection.now(), last - role.terms.answer_window
        unasked = [claim for claim in lacks if asked[claim.claim] is None]
        if unasked and now <= last and _may_demand(role):
            cost, newest = _cost(role), max(kept.logged.rosters, default=0)
            # Nothing says that the last round is over: the log is waited for, but for a window of lines.
            is_late = now > last - role.terms.line_window
            worth = [each for each in _owed(role, unasked) if each.pay > cost]
            waited.update(each.entry.claim.digest for each in worth)
            due = [each for each in worth if is_late or each.receipt.round < newest]
        end = min((claim.place for claim in missing if claim.claim in waited), default=None)
        line = [claim for claim in claims if claim.claim in kept.logged.claims or claim.claim in shown]
        return cls([claim for claim in line if end is None or claim.place < end], due, last)


def _may_demand(role: RoundParty) -> bool:
    """Whether this party puts up bonds, and its keeper has a stake to lose; nobody without one is paid."""
    keeper = role.contracts.bonds.bond(role.plan_id, role.terms.coordinator)
    return role.mode is Mode.PROPOSE and {keeper.standing, role.bond().standing} == {Standing.JOINED}


def _owed(role: RoundParty, claims: Sequence[CountedClaim]) -> Iterator[Omission]:
    """Those of some claims for which the keeper has signed: by their receipts, or of claims that follow from them."""
    rounds, terms = role.kept.rounds, role.terms
    left, first = {claim.claim: claim for claim in claims}, claims[0].round
    for receipt in role.kept.receipts:
        acknowledged = rounds.claims.get(receipt.claim)
        if acknowledged is None or acknowledged.claim.round < first or receipt.plan != role.plan_id:
            continue
        if receipt.receiver != rounds.plan.coordinator or not is_signed(receipt):
            continue
        sources = list[BoundSlot]()
        with suppress(OperationalError):  # which its author withholds
            sources = rounds.sources(acknowledged)
        for named in (receipt.claim, *(source.claim for source in sources)):
            if (claim := left.pop(named, None)) is not None:
                covered = None if named == receipt.claim else (acknowledged.claim, sources)
                yield Omission(rounds.claims[named], receipt, covered, pay_of(terms.pay, claim.units, terms.work))


def _cost(role: RoundParty) -> int:
    """What a demand costs that is answered; in a plan whose asset isn't the chain's own, its bond alone."""
    gas = 0 if role.vault.token is not None else DEMAND_GAS * role.connection.gas_price()
    return role.contracts.demands.bond(role.plan_id) + gas


def _last_line(role: RoundParty, course: Course) -> int:
    """The last second in which this party certainly posts a line."""
    if course.next is None:
        return role.contracts.shares.settlement(role.plan_id, course.opened - 1).lines_until if course.opened else 0
    ahead = 0 if course.fell else course.all - course.opened - 1
    return course.next + ahead * role.terms.period + role.terms.line_window
