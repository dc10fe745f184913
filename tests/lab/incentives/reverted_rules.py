"""The search on each rule as it once was."""

from __future__ import annotations

from lab.incentives.coalition_search import MOST_SHARE, CoalitionAttack, attacks
from lab.incentives.rule_variants import REVERTED
from pol.incentives.game.needs import Needs


def reverted_found(needs: Needs, share: float = MOST_SHARE) -> dict[str, CoalitionAttack]:
    """For each rule that is put back as it was, an attack that it admits."""
    found = {
        name: next((attack for attack in attacks(needs, share, rules) if attack.found.excess > 0), None)
        for name, rules in REVERTED.items()
    }
    return {name: attack for name, attack in found.items() if attack is not None}
