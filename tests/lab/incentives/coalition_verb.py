"""``pol econ coalition``: the joint strategy that brings a coalition most."""

import json
from typing import Any

import click
from rich.console import Console

from lab.incentives.coalition_search import SHARES, CoalitionAttack, worst
from lab.incentives.rule_variants import REVERTED
from pol.cli.examples import example
from pol.cli.incentives.econ import with_needs
from pol.cli.incentives.econ_tables import table
from pol.incentives.amounts import amount
from pol.incentives.game.needs import Needs


@click.command(epilog=example("pol econ coalition --task-value 25 --verify-cost 1 --cheat-gain 2 --share 0.2"))
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 0.95),
    multiple=True,
    default=SHARES,
    show_default=True,
    help="Of all tickets; once for each row.",
)
@with_needs
def coalition(needs: Needs, shares: tuple[float, ...], as_json: bool) -> None:
    """Search for the joint strategy that brings a coalition most, with the rules as decided and as they were.

    Amounts are units of the asset for each task above duty and staying away; for second looks what honest verifiers
    work for without pay. JSON has them in its smallest unit, with the strategies.
    """
    found = [(share, _attacks(needs, share)) for share in shares]
    if as_json:
        print(json.dumps([_json(share, row) for share, row in found], indent=2))
        return
    console = Console(highlight=False)
    head = ("rules", *(f"{share:.0%} of all tickets" for share, _ in found))
    rows = [(name, *(amount(row[name].found.excess) for _, row in found)) for name in found[0][1]]
    console.print(table("What a coalition gains at most", head, rows))
    for name, attack in found[-1][1].items():
        if attack.found.excess > 0:
            console.print(f"{name}: {attack.found.coalition.members}; terms {attack.terms}", soft_wrap=True)
            for line in attack.found.lines:
                console.print(f"  {line}", soft_wrap=True, markup=False)


def _attacks(needs: Needs, share: float) -> dict[str, CoalitionAttack]:
    """The best attack with the rules as decided, and with each that is put back as it was."""
    found = {"rules as decided": worst(needs, share)}
    return found | {name: worst(needs, share, rules) for name, rules in REVERTED.items()}


def _json(share: float, found: dict[str, CoalitionAttack]) -> dict[str, Any]:
    return {
        "share": share,
        "attacks": {
            name: {
                "excess": attack.found.excess,
                "objective": attack.objective,
                "terms": attack.terms,
                "members": attack.found.coalition.members,
                "strategy": attack.found.lines,
            }
            for name, attack in found.items()
        },
    }
