"""The best joint strategy of one coalition in every role that it can get (docs/spec/game.md, "A search")."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from lab.incentives.best_strategy import Solution, State, solve
from lab.incentives.coalition_moves import Coalition, CoalitionMoves
from lab.incentives.payoffs import Game
from lab.incentives.rule_variants import RULES, RuleVariant


def coalitions(share: float) -> Iterator[Coalition]:
    """Every set of roles, with so many of the tickets or none."""
    for submitter, solver, friend, held in product((True, False), (True, False), (True, False), sorted({share, 0.0})):
        if submitter or solver or friend or held:
            yield Coalition(submitter, solver, friend, held)


@dataclass(frozen=True)
class CoalitionStrategy:
    """The best that a coalition can do."""

    coalition: Coalition
    solution: Solution
    excess: int
    """What it brings above duty, and above staying away; in the smallest unit, rounded down if it is below."""

    @property
    def lines(self) -> list[str]:
        """Where to leave one's duty and for what, for people; numbers of own tickets that watch are put together."""
        told: dict[str, list[str]] = {}
        for state, move in self.solution.deviations.items():
            where, count = _told(state)
            told.setdefault(f"{where}: {move}", []).extend(count)
        return [line + (f" ({', '.join(counts)} own tickets drawn)" if counts else "") for line, counts in told.items()]


def _told(state: State) -> tuple[str, list[str]]:
    """A state in words, and apart from them how many own tickets have been drawn."""
    assert isinstance(state, tuple)
    name, *facts = state
    count = [str(facts.pop())] if name in ("lied", "planted", "watching") else []
    if name == "lied":
        _, kind, planted, looking = facts
        others = "others watch" if looking else "nobody else watches"
        return f"after a lie in its {kind}{' beside the planted error' if planted else ''}, {others}", count
    if name == "stands":
        return f"a verdict stands that {'rejects' if facts[1] else 'accepts'}", count
    return " ".join([name, *(f"({fact})" for fact in facts)]), count


def best(
    game: Game, coalition: Coalition, rules: RuleVariant = RULES, looks: int = 0, damage: bool = False
) -> CoalitionStrategy:
    """The coalition's best joint strategy in one task; many tasks are as many times that.

    ``looks``: reruns of a second look. ``damage``: counts what honest verifiers work for without pay as gained.
    """
    if looks:
        # Terms with second looks ask for a stake that pays for one at each drawn segment.
        looked = game.stakes.draws * rules.look_fee(game.stakes.verifier_fee, looks, game.stakes.draws)
        game = replace(game, stakes=replace(game.stakes, solver_stake=game.stakes.solver_stake + looked))
    tree = CoalitionMoves(game, coalition, rules, looks, damage)
    duty = solve(("start",), lambda state: tree.moves(state)[:1]).duty
    solution = solve(("start",), replace(tree, anew=max(duty, 0.0)).moves)
    # Who brings the task or the proof may as well not come.
    least = max(solution.duty, 0.0) if coalition.submitter or coalition.solver else solution.duty
    excess = solution.best - least
    # Amounts of a task have 20 digits and floats 15.
    scale = max(game.deal.escrow, game.stakes.solver_stake, game.stakes.verifier_stake)
    return CoalitionStrategy(coalition, solution, 0 if abs(excess) <= 1e-9 * scale else int(excess // 1))
