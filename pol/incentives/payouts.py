"""Who gets what: the integer mirror of the settlement split of `contracts/market/TaskMarket.sol`.

Every function takes a `Deal` and returns the `Payout` of one row of the settlement table, in wei. A payout sums to what
the row releases; shares round down and the treasury gets the rest, so the whole of a slash never goes to the party that
proved it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

from pol.errors import ProtocolError

WHOLE = 10_000
"""Basis points in a whole."""
SUBMITTER_OF_SOLVER_STAKE = 5_000
"""Of the stake of a solver that is rejected or misses its deadline, to the submitter."""
SUBMITTER_OF_VERIFIER_STAKE = 5_000
"""Of the stake of a verifier that misses its deadline, to the submitter."""
CHALLENGER_OF_VERIFIER_STAKE = 5_000
"""Of the stake of a verifier that lost a dispute, to the challenger."""
VERIFIER_OF_BOND = 5_000
"""Of the bond of a challenger that lost a dispute, to the verifier."""

MAX_DOUBLINGS = 3
"""Challenges that double the bond: from the smallest that the terms may ask for to the largest."""


@dataclass(frozen=True)
class Deal:
    """What the parties of one task put in, in wei.

    Raises:
        ProtocolError: amounts that the market does not admit.
    """

    fee: int
    """Escrow of the submitter: the maximum price and the verifier's fee."""
    price: int
    """Agreed with the solver."""
    verifier_fee: int
    solver_stake: int
    verifier_stake: int
    bond: int
    """What the challenger put up, see `bond_after`."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) < 1 << 128:
                raise ProtocolError(f"{field.name} is not an amount of wei below 2^128")
        if self.price + self.verifier_fee > self.fee:
            raise ProtocolError(f"price and verifier's fee exceed the escrow of {self.fee} wei; lower the price")
        if share_down(self.solver_stake, SUBMITTER_OF_SOLVER_STAKE) < self.verifier_fee:
            raise ProtocolError(
                "the submitter's share of the solver's stake does not cover the verifier's fee; raise the stake"
            )


@dataclass(frozen=True)
class Payout:
    """What each party is credited in wei when something is released."""

    submitter: int = 0
    solver: int = 0
    verifier: int = 0
    challenger: int = 0
    treasury: int = 0

    @property
    def total(self) -> int:
        """Sum over all parties."""
        return sum(astuple(self))


def share_down(amount: int, points: int) -> int:
    """`amount * points / 10000`, rounded down."""
    return amount * points // WHOLE


def bond_after(bond: int, verifier_stake: int, earlier: int) -> int:
    """What a challenger puts up against a verdict that has seen ``earlier`` challenges, in wei.

    Each has doubled the bond of the terms; it is never more than what the challenger wins if it is right.
    """
    return min(bond << min(earlier, MAX_DOUBLINGS), share_down(verifier_stake, CHALLENGER_OF_VERIFIER_STAKE))


def accepted(deal: Deal) -> Payout:
    """The verdict accepts and stands: releases fee and both stakes."""
    return Payout(
        submitter=deal.fee - deal.price - deal.verifier_fee,
        solver=deal.price + deal.solver_stake,
        verifier=deal.verifier_fee + deal.verifier_stake,
    )


def rejected(deal: Deal) -> Payout:
    """The verdict rejects and stands: releases fee and both stakes; the solver loses its own."""
    share = share_down(deal.solver_stake, SUBMITTER_OF_SOLVER_STAKE)
    return Payout(
        submitter=deal.fee - deal.verifier_fee + share,
        verifier=deal.verifier_fee + deal.verifier_stake,
        treasury=deal.solver_stake - share,
    )


def challenger_right(deal: Deal) -> Payout:
    """The verdict falls: releases the bond and the verifier's stake; the verifier loses its own."""
    share = share_down(deal.verifier_stake, CHALLENGER_OF_VERIFIER_STAKE)
    return Payout(challenger=deal.bond + share, treasury=deal.verifier_stake - share)


def challenger_wrong(deal: Deal) -> Payout:
    """The claim stands: releases the bond."""
    share = share_down(deal.bond, VERIFIER_OF_BOND)
    return Payout(verifier=share, treasury=deal.bond - share)


def challenge_moot(deal: Deal) -> Payout:
    """The verdict fell in another dispute: releases the bond."""
    return Payout(challenger=deal.bond)


def solver_defaulted(deal: Deal) -> Payout:
    """No learning proof in time: releases fee and both stakes; the solver loses its own."""
    share = share_down(deal.solver_stake, SUBMITTER_OF_SOLVER_STAKE)
    return Payout(submitter=deal.fee + share, verifier=deal.verifier_stake, treasury=deal.solver_stake - share)


def verifier_defaulted(deal: Deal) -> Payout:
    """No verdict in time: releases the verifier's stake."""
    share = share_down(deal.verifier_stake, SUBMITTER_OF_VERIFIER_STAKE)
    return Payout(submitter=share, treasury=deal.verifier_stake - share)


def cancelled(deal: Deal) -> Payout:
    """The submitter withdraws the task before a solver accepts: releases the fee and the seated verifier's stake."""
    return Payout(submitter=deal.fee, verifier=deal.verifier_stake)
