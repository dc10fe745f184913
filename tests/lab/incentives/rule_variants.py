"""Earlier versions of rules, each with an exploit that a coalition's search finds (docs/spec/game.md, "A search")."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pol.incentives import payouts
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import Deal, Payout


def excused(deal: Deal) -> Payout:
    """A verifier lets its seat lapse before the round of its duty is recorded, as it once could."""
    return Payout(holder=deal.verifier_stake)


def covers_jackpot(chance: JackpotRules, reserved: int) -> int:
    """A fall costs the whole jackpot, so no number of own catches is worth one."""
    return 2 * reserved


def covers_average(chance: JackpotRules, reserved: int) -> int:
    """A fall costs what all watchers of a seating catch on average: less than a coalition may see drawn."""
    return -(-2 * chance.watchers * reserved // chance.shares)


def half_fined(deal: Deal) -> Payout:
    """Two words that a solver doesn't serve cost it half of its stake, of which nobody gets anything."""
    half = deal.solver_stake // 2
    return Payout(solver=half, holder=deal.verifier_stake, challenger=deal.word, fund=deal.solver_stake - half)


def costs_nothing(deal: Deal, *, contradicted: bool) -> Payout:
    """A verdict accepts and stands, and a solver that has served friends only is paid as if it had served everybody."""
    return payouts.accepted(deal)


@dataclass(frozen=True)
class RuleVariant:
    """Rules that were once other rules."""

    unrecorded_lapse: Callable[[Deal], Payout] = payouts.seat_defaulted
    """A verifier's seat lapses and nobody has recorded the round of its duty."""
    caught: frozenset[str] = frozenset({"replay", "entry"})
    """Lies that a watcher's commitment refutes: in a replay; in anything else of an entry."""
    look_fee: Callable[[int, int, int], int] = payouts.look_fee
    verifier_stake: Callable[[JackpotRules, int], int] = covers_jackpot
    """The least that terms may ask for, of a jackpot."""
    words: int = 2
    """Words that a solver doesn't serve which end a training; with none, who isn't served leaves the seat."""
    not_served: Callable[[Deal], Payout] = payouts.not_served
    """The last of them."""
    accepted: Callable[..., Payout] = payouts.accepted
    """A verdict accepts and stands, and may have contradicted a word."""
    word_to_solver: bool = False
    """The bond of a word that a verdict contradicts goes to the solver, not to the fund."""


RULES = RuleVariant()
REVERTED: Mapping[str, RuleVariant] = {
    "a lapse before the round is recorded is free": RuleVariant(unrecorded_lapse=excused),
    "only a replay refutes": RuleVariant(caught=frozenset({"replay"})),
    "second looks are unpriced": RuleVariant(look_fee=lambda fee, looks, draws: 0),
    "stakes cover average catches": RuleVariant(verifier_stake=covers_average),
    "nobody says that it isn't served": RuleVariant(words=0),
    "one word ends a training": RuleVariant(words=1),
    "two words cost a solver half of its stake": RuleVariant(not_served=half_fined),
    "a contradicted word pays the solver": RuleVariant(word_to_solver=True),
    "a contradicted word costs the solver nothing": RuleVariant(accepted=costs_nothing),
}
"""Each rule as it was."""
