"""``pol econ simulate`` and ``pol econ coalition``: populations and coalitions that try everything but duty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from lab.incentives.coalition_search import SHARES
from lab.simulations import econ_verb_tables as tables
from lab.simulations.agents import SOLVERS, VERIFIERS, Behavior
from lab.simulations.population import Population, SimulationResult
from lab.simulations.population import simulate as run_population
from lab.simulations.simulation_page import simulation_page
from pol.cli.examples import example
from pol.cli.incentives.econ import AMOUNT, with_needs, write_page
from pol.cli.incentives.econ_tables import table
from pol.incentives.amounts import amount
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import Design
from pol.incentives.game.parameter_design import design as find_design
from pol.incentives.game.payoffs import without_planted_errors

MOST_TASKS = 1_000_000


class _Counts(click.ParamType[dict[Behavior, int]]):
    """Parties by kind: honest=8,lazy=2."""

    name = "counts"

    def __init__(self, kinds: tuple[Behavior, ...]) -> None:
        self.kinds = kinds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[Behavior, int]:
        if isinstance(value, dict):
            return value
        counts: dict[Behavior, int] = {}
        for part in str(value).split(","):
            kind, _, count = part.strip().partition("=")
            if kind not in self.kinds or not count.isdecimal():
                self.fail(f"{part!r}: write KIND=NUMBER, with a kind of {', '.join(self.kinds)}", param, ctx)
            counts[Behavior(kind)] = counts.get(Behavior(kind), 0) + int(count)
        if not any(counts.values()):
            self.fail(f"{value!r} is nobody: name one party at least, as in honest=1", param, ctx)
        return counts


@click.command(epilog=example("pol econ simulate --task-value 25 --verify-cost 1 --cheat-gain 2 --tasks 50"))
@click.option("--verifiers", type=_Counts(VERIFIERS), default="honest=8", show_default=True, help="KIND=NUMBER,...")
@click.option("--solvers", type=_Counts(SOLVERS), default="honest=4", show_default=True, help="KIND=NUMBER,...")
@click.option("--whistleblowers", type=click.IntRange(0, 1000), default=8, show_default=True, help="That may enrol.")
@click.option("--tasks", type=click.IntRange(1, MOST_TASKS), default=200, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--upkeep", type=AMOUNT, default="0", help="What one ticket costs its holder for the time of a task.")
@click.option("--no-planted-errors", is_flag=True, help="What would happen without them: the verifier's dilemma.")
@click.option(
    "--contracts", is_flag=True, help="Play at contracts on an EVM in this process too, and compare all balances."
)
@with_needs
def simulate(
    needs: Needs,
    verifiers: dict[Behavior, int],
    solvers: dict[Behavior, int],
    whistleblowers: int,
    tasks: int,
    seed: int,
    upkeep: int,
    no_planted_errors: bool,
    contracts: bool,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Let a population play for money with the parameters of a design.

    Kinds of verifiers: honest, lazy, copying, colluding, sybil, griefing, withholding, rational. Kinds of solvers:
    honest, lazy (fabricates), colluding, rational. Rational parties do what they believe to pay best, and learn.

    With --contracts all of it are transactions: some seconds for each task. Needs a checkout.
    """
    found, setting = find_design(needs), Population(verifiers, solvers, whistleblowers, tasks, seed, upkeep)
    if contracts:
        if no_planted_errors:
            raise click.UsageError("every deployment plants errors: leave out --contracts or --no-planted-errors")
        result = _at_contracts(found, setting)
    else:
        result = run_population(without_planted_errors(found.game) if no_planted_errors else found.game, setting)
    title = "A population that plays for money"
    if plot is not None:
        write_page(plot, simulation_page(result, tables.earnings(result), title))
    if as_json:
        print(json.dumps(tables.simulation_json(result), indent=2))
        return
    console = Console(highlight=False)
    console.print(table(title, tables.EPOCHS, tables.epochs(result)))
    console.print(table("What each kind earned", tables.EARNINGS, tables.earnings(result)))
    console.print(f"All balances together changed by {result.total_change}.")
    if contracts:
        console.print("At the contracts every single one of them is the same.")


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
def coalition(needs: Needs, shares: tuple[float, ...], as_json: bool, plot: Path | None) -> None:
    """Search for the joint strategy that brings a coalition most, with the rules as decided and as they were.

    Amounts are units of the asset for each task above duty and staying away; for second looks what honest verifiers
    work for without pay. JSON has them in its smallest unit, with the strategies.
    """
    if plot is not None:
        raise click.UsageError("a search has no page: leave out --plot")
    found = [(share, tables.attacks(needs, share)) for share in shares]
    if as_json:
        print(json.dumps([tables.attacks_json(share, row) for share, row in found], indent=2))
        return
    console = Console(highlight=False)
    head = ("of all tickets", *found[0][1])
    rows = [(f"{share:.0%}", *(amount(a.found.excess) for a in row.values())) for share, row in found]
    console.print(table("What a coalition gains at most", head, rows))
    for name, attack in found[-1][1].items():
        if attack.found.excess > 0:
            console.print(f"{name}: {attack.found.coalition.members}; terms {attack.terms}", soft_wrap=True)
            for line in attack.found.lines:
                console.print(f"  {line}", soft_wrap=True, markup=False)


def _at_contracts(found: Design, setting: Population) -> SimulationResult:
    from lab.simulations.population_on_chain import play
    from pol.chain.node.connection import Connection

    return play(Connection.embedded(setting.seed), found, setting)
