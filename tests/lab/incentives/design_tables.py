"""Tables of docs/spec/game.md and docs/guides/economics.md: `design` for needs that differ from the example's.

``PYTHONPATH=tests python -m lab.incentives.design_tables task_value=200 coalition=0.5``
"""

import sys
from dataclasses import replace
from typing import Any

from lab.incentives.amounts import UNIT, amount
from lab.incentives.griefing import burns, hostage
from lab.incentives.parameter_design import alternatives, design
from lab.incentives.task_needs import EXAMPLE, Needs

AMOUNTS = {"task_value", "verify_cost", "cheat_gain", "train_cost", "most_stake", "transaction", "dispute"}
"""Needs in units of the asset."""


def needs_of(words: list[str]) -> Needs:
    """The example's needs with changes of the form ``name=number``."""
    changes: dict[str, Any] = {}
    for name, _, number in (word.partition("=") for word in words):
        is_float = isinstance(getattr(EXAMPLE, name), float)
        changes[name] = int(float(number) * UNIT) if name in AMOUNTS else float(number) if is_float else int(number)
    return replace(EXAMPLE, **changes)


def main() -> None:
    """Print parameters, other numbers of draws, every decision, and what attackers burn."""
    needs = needs_of(sys.argv[1:])
    found = design(needs)
    stakes, chance, windows = found.stakes, found.chance, found.windows
    print(f"draws {stakes.draws} of {stakes.segments}; watchers {chance.watchers}, rate {found.game.rate:.4f}")
    for name in ("price", "verifier_fee", "solver_stake", "verifier_stake", "bond", "jackpot"):
        print(name, amount(getattr(stakes, name)))
    print("tax", amount(found.game.tax), "a catch", amount(found.game.share), windows)
    print("\ndraws | one lie is drawn | solver's stake | verifier's stake | submitter pays")
    for each in alternatives(needs):
        amounts = map(amount, (each.stakes.solver_stake, each.stakes.verifier_stake, each.pays))
        print(each.stakes.draws, f"{each.one_lie_detection:.2%}", *amounts, sep=" | ")
    print("\nrole | when | honesty brings | best deviation | brings less by")
    for choice in found.game.choices():
        if choice.others:
            honest, margin = amount(choice.honest), amount(choice.margin)
            print(choice.role, choice.state, honest, choice.temptation, margin, sep=" | ")
    print("\ndrawn tickets in one hand | each earns a watch")
    for hand in (1, 2, chance.watchers):
        print(hand, amount(found.game.watching(hand)), sep=" | ")
    print("\nattack | burns | costs others | times")
    for burn in (*burns(found.game), hostage(found)):
        print(burn.attack, amount(burn.burnt), amount(burn.harm), f"{burn.ratio:.1f}", sep=" | ")


if __name__ == "__main__":
    main()
