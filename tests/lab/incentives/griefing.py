"""Griefing: an attacker's loss for each unit of harm to honest parties (docs/spec/game.md)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lab.incentives.game_inputs import CLAIM_TRANSACTIONS
from lab.incentives.parameter_design import LONGEST_TRAINING, YEAR, Design
from lab.incentives.payoffs import Game
from pol.incentives import payouts


@dataclass(frozen=True)
class Burn:
    """An attack without gain: the attacker's loss, and the harm to others before they are compensated."""

    attack: str
    burnt: int
    harm: float

    @property
    def ratio(self) -> float:
        """Loss over harm."""
        return self.burnt / self.harm if self.harm else inf


def burns(game: Game) -> list[Burn]:
    """Every attack, with the cheapest accomplice, who gives its share of the slash back to the attacker.

    Watchers lose nothing: their findings are paid in any case.
    """
    deal, costs = game.deal, game.costs
    lost = payouts.challenger_wrong(deal)
    defence = costs.dispute + costs.segment + costs.dispute_delay
    attack = costs.dispute + costs.segment + costs.seating_delay + costs.dispute_delay
    sent = CLAIM_TRANSACTIONS * costs.transaction
    vanished = payouts.seat_defaulted(deal)
    failed = payouts.solver_defaulted(deal)
    # The fund pays watchers that find a lie, and gets the rest of the slash.
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
    """A task that idles as long as terms admit, so that the fund can't promise its jackpot to another task.

    Its submitter is its own solver, trains nothing of value, and pays the tax. The harm is interest on the jackpot.
    """
    kept = found.stakes.jackpot * found.needs.capital * LONGEST_TRAINING / YEAR
    return Burn("the fund's money held by a task that idles for a year", found.game.tax, kept)


def burn_ratio(game: Game) -> float:
    """The smallest ratio: an attacker's least loss for each unit of harm."""
    return min(burn.ratio for burn in burns(game))
