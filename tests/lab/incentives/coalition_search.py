"""The search's bounds: which terms, coalitions and shares of the tickets are tried (docs/spec/game.md, "A search").

Two families of terms: those of `design`, where anybody may be outside; and a submitter's own, at the bounds that the
contracts set for terms, where submitter and solver are one, as nobody else stakes money on such terms.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lab.incentives.coalition import CoalitionStrategy, best, coalitions
from lab.incentives.coalition_moves import Coalition
from lab.incentives.game_inputs import Stakes, Threat
from lab.incentives.parameter_design import design
from lab.incentives.payoffs import Game
from lab.incentives.rule_variants import REVERTED, RULES, RuleVariant
from lab.incentives.task_needs import Needs
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import SAYER_OF_BOND, UNSERVED_OF_LOSS, WHOLE, WORDS

LOOKS = 8
"""Reruns of a second look."""
MOST_SHARE = 0.49
SHARES = (0.1, 0.25, MOST_SHARE)
MOST_DRAWS = 32


@dataclass(frozen=True)
class CoalitionAttack:
    """The best that was found."""

    terms: str
    objective: str
    found: CoalitionStrategy


def worst(needs: Needs, share: float, rules: RuleVariant = RULES) -> CoalitionAttack:
    """What brings a coalition with up to this share of the tickets most, over all terms and roles.

    Raises:
        ProtocolError: the needs have no design, or a strategy has no bound.
    """
    return max(attacks(needs, share, rules), key=lambda attack: attack.found.excess)


def attacks(needs: Needs, share: float, rules: RuleVariant) -> Iterator[CoalitionAttack]:
    """The best attack of each coalition on each set of terms. Raises as `worst`."""
    most = 100 * needs.task_value if needs.most_stake is None else needs.most_stake
    designed = design(replace(needs, coalition=share, most_stake=most)).game
    for coalition in coalitions(share):
        # Only who trains can land where looks decide.
        for objective in ("profit", "damage") if coalition.solver else ("profit",):
            found = best(designed, coalition, rules, LOOKS, objective == "damage")
            yield CoalitionAttack("of the design", objective, found)
    for name, game in _own_terms(designed, rules):
        yield CoalitionAttack(name, "profit", best(game, Coalition(True, True, True, share), rules, LOOKS))


def _own_terms(designed: Game, rules: RuleVariant) -> Iterator[tuple[str, Game]]:
    """A task that costs nothing to train, with the least stakes and fees that terms may have."""
    chance, costs = designed.chance, designed.costs
    assert chance is not None
    for watchers in sorted({1, chance.watchers}):
        for rate in sorted({LEAST_RATE, chance.rate, LARGEST_RATE}):
            own = JackpotRules(watchers, 2 * watchers, rate)
            for watched in (True, False):
                # Claims that nobody outside looks at: they cost more than a watch is expected to bring.
                segment = 0 if watched else designed.share
                draws = 1 if watched else MOST_DRAWS
                stakes = _least_stakes(own, designed.share, draws, rules)
                game = Game(own, stakes, replace(costs, training=0, segment=segment), Threat(0, 1, 0.0))
                told = "watched" if watched else "too dear to watch"
                yield f"own: {watchers} watchers, R = {own.rate / 2**32:.3f}, {told}", game


def _least_stakes(chance: JackpotRules, share: int, draws: int, rules: RuleVariant) -> Stakes:
    reserved = share * chance.shares
    # Two words leave the tax: less than withheld data do.
    kept = WHOLE**2 - WORDS * UNSERVED_OF_LOSS * SAYER_OF_BOND
    solver = -(-chance.tax(reserved) * WHOLE**2 // kept) + 2
    verifier = rules.verifier_stake(chance, reserved)
    return Stakes(1, 0, solver, verifier, -(-verifier // 16), reserved, draws, draws)


def reverted_found(needs: Needs, share: float = MOST_SHARE) -> dict[str, CoalitionAttack]:
    """For each rule that is put back as it was, an attack that it admits."""
    found = {
        name: next((attack for attack in attacks(needs, share, rules) if attack.found.excess > 0), None)
        for name, rules in REVERTED.items()
    }
    return {name: attack for name, attack in found.items() if attack is not None}
