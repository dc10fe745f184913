"""What harming others costs: what an attacker burns over what it costs the honest side (docs/spec/game.md)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pol.incentives import payouts
from pol.incentives.game.parameter_design import LONGEST_TRAINING, YEAR, Design
from pol.incentives.game.payoffs import CLAIM_TRANSACTIONS, Game


@dataclass(frozen=True)
class Burn:
    """One attack that gains nothing: what it burns, and what it costs others before they are paid for it."""

    attack: str
    burnt: int
    harm: float

    @property
    def ratio(self) -> float:
        """How many times its harm an attack burns."""
        return self.burnt / self.harm if self.harm else inf


def burns(game: Game) -> list[Burn]:
    """Every attack, with the accomplice that makes it cheapest: who gets a share of what is slashed gives it back.

    Watchers lose nothing: what they have found is paid, whoever hides it.
    """
    deal, costs = game.deal, game.costs
    lost = payouts.challenger_wrong(deal)
    defence = costs.dispute + costs.segment + costs.dispute_delay
    attack = costs.dispute + costs.segment + costs.seating_delay + costs.dispute_delay
    sent = CLAIM_TRANSACTIONS * costs.transaction
    vanished = payouts.seat_defaulted(deal)
    failed = payouts.solver_defaulted(deal)
    # Watchers that find a lie are paid by the fund, which gets what the slash leaves.
    caught = game.chance.watchers * game.share if game.chance else 0
    drained = max(0, caught - payouts.challenger_right(deal).fund)
    return [
        Burn("a challenge without a ground", lost.total, defence),
        Burn("the same by a friend of the verifier", lost.total - lost.holder, costs.dispute_delay),
        Burn("a false verdict, lost to a friend", game.fall, attack),
        Burn("the fund drained by lies", game.fall, float(drained)),
        Burn("a withheld secret", deal.verifier_stake, costs.seating_delay + sent),
        Burn("a secret leaked to a friend", deal.verifier_stake - game.reward, costs.seating_delay + sent),
        Burn("no verdict, a friend of the submitter", vanished.fund, costs.seating_delay),
        Burn("no training, a friend of the submitter", failed.fund, costs.seating_delay),
    ]


def hostage(found: Design) -> Burn:
    """A task that idles as long as terms admit, so that the fund can promise its jackpot to nobody else.

    Its submitter is its own solver, trains nothing that is worth something, and pays the tax. What it keeps from others
    is interest on the jackpot.
    """
    kept = found.stakes.jackpot * found.needs.capital * LONGEST_TRAINING / YEAR
    return Burn("the fund's money held by a task that idles for a year", found.game.tax, kept)


def burn_ratio(game: Game) -> float:
    """The smallest of all ratios: what an attacker burns at least for each unit of harm."""
    return min(burn.ratio for burn in burns(game))
