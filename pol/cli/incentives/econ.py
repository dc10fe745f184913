"""``pol econ``: parameters with which honesty pays best, and populations that try everything else."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pol.cli.checkout import laboratory
from pol.cli.incentives import econ_tables as tables
from pol.errors import OperationalError, ProtocolError
from pol.incentives.amounts import UNIT, amount
from pol.incentives.game.coalition_search import SHARES
from pol.incentives.game.parameter_design import Design, Needs
from pol.incentives.game.parameter_design import design as find_design
from pol.incentives.game.payoffs import without_planted_errors
from pol.incentives.simulation.agents import SOLVERS, VERIFIERS, Kind
from pol.incentives.simulation.population import Result, Setting
from pol.incentives.simulation.population import simulate as run_simulation

MOST_TASKS = 1_000_000


class _Amount(click.ParamType[int]):
    """An amount in units of the asset, down to 18 places: 12, 0.25."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            exact = Fraction(str(value)) * UNIT
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no amount; write 12 or 0.25", param, ctx)
        if exact < 0 or exact.denominator != 1:
            self.fail(f"{value} has to be 0 or more, with up to 18 places", param, ctx)
        return int(exact)


class _Counts(click.ParamType[dict[Kind, int]]):
    """Parties by kind: honest=8,lazy=2."""

    name = "counts"

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.kinds = kinds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[Kind, int]:
        if isinstance(value, dict):
            return value
        counts: dict[Kind, int] = {}
        for part in str(value).split(","):
            kind, _, count = part.strip().partition("=")
            if kind not in self.kinds or not count.isdecimal():
                self.fail(f"{part!r}: write KIND=NUMBER, with a kind of {', '.join(self.kinds)}", param, ctx)
            counts[Kind(kind)] = counts.get(Kind(kind), 0) + int(count)
        if not any(counts.values()):
            self.fail(f"{value!r} is nobody: name one party at least, as in honest=1", param, ctx)
        return counts


AMOUNT = _Amount()
OPTIONS = (
    click.option("--task-value", type=AMOUNT, required=True, help="What the model is worth to its submitter."),
    click.option("--verify-cost", type=AMOUNT, required=True, help="What replaying the whole training costs."),
    click.option(
        "--cheat-gain", type=AMOUNT, required=True, help="What passing off fabricated work brings, beside saved work."
    ),
    click.option("--train-cost", type=AMOUNT, help="What the training costs; as much as its replay, if not given."),
    click.option("--segments", type=click.IntRange(1, 10_000), default=100, show_default=True),
    click.option("--cheat-fraction", default=0.05, show_default=True, help="Least part that brings the gain."),
    click.option(
        "--saved-by-one-lie",
        default=1.0,
        show_default=True,
        help="Most of the training that one false segment saves; all: it may jump to where training stands still.",
    ),
    click.option("--confidence", default=0.99, show_default=True, help="How surely a false verdict is found."),
    click.option("--detection", default=0.0, show_default=True, help="How surely the least cheat has to be drawn."),
    click.option("--coalition", default=0.25, show_default=True, help="Share of all tickets that one hand may hold."),
    click.option("--beacon-bits", default=0, show_default=True, help="Bits of the seed that an adversary can choose."),
    click.option("--margin", default=0.2, show_default=True, help="By which part honesty has to be better."),
    click.option("--most-draws", default=32, show_default=True),
    click.option(
        "--most-stake", type=AMOUNT, help="Of a solver; the value of the task, if not given. More: fewer draws."
    ),
    click.option("--transaction", type=AMOUNT, default="0.001", show_default=True, help="What a transaction costs."),
    click.option("--dispute", type=AMOUNT, default="0.01", show_default=True, help="All moves of one side."),
    click.option("--capital", default=0.1, show_default=True, help="Interest on locked money, a year."),
    click.option("--train-seconds", default=86_400, show_default=True),
    click.option("--slowest", default=4.0, show_default=True, help="How many times as slow the slowest party may be."),
    click.option("--fastest", default=4.0, show_default=True, help="How many times as fast the fastest one is."),
    click.option("--commit-window", default=120, show_default=True, help="Seconds in which watchers commit."),
    click.option("--paid-within", default=12, show_default=True, help="Watches after which 95 % have been paid once."),
    click.option("--false-reject", default=1e-4, show_default=True, help="How often honest work is rejected."),
    click.option("--exact", is_flag=True, help="The solver runs canonically; there is no profile."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with pictures (HTML)."),
)


def _with_needs(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options of a design and gets it as `Needs`."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        needs = {name: options.pop(name) for name in Needs.__dataclass_fields__ if name in options}
        try:
            asked = Needs(**needs)
        except ProtocolError as error:
            # What makes no sense for any market. That no design exists is an answer, and no wrong usage.
            raise click.UsageError(str(error)) from error
        command(asked, **options)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


@click.group()
def econ() -> None:
    """How high stakes have to be, and what happens to who doesn't do its duty."""


@econ.command()
@_with_needs
def design(needs: Needs, as_json: bool, plot: Path | None) -> None:
    """Find the cheapest parameters with which honesty is everybody's best answer.

    Every deviation is then tried with the code that pays: the tables say how much worse the best of them is. Amounts
    are in units of the asset; JSON has them in its smallest unit (18 places).
    """
    found = find_design(needs)
    title = "Parameters with which honesty pays best"
    if plot is not None:
        from pol.report.economics_page import design_page

        _write(plot, design_page(found, tables.parameters(found), title))
    if as_json:
        print(json.dumps(tables.design_json(found), indent=2))
        return
    console = Console(highlight=False)
    console.print(tables.table(title, ("parameter", "value"), tables.parameters(found)))
    console.print(tables.table("What more draws would take", tables.DRAWS, tables.draws(found)))
    console.print(tables.table("What everybody can do", tables.CHOICES, tables.choices(found)))
    console.print(tables.table("What tickets earn", tables.HANDS, tables.tickets(found)))
    console.print(tables.table("What harming others costs", tables.BURNS, tables.burnt(found)))
    console.print(tables.sentences(found), soft_wrap=True, markup=False)


@econ.command()
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
@_with_needs
def simulate(
    needs: Needs,
    verifiers: dict[Kind, int],
    solvers: dict[Kind, int],
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
    found, setting = find_design(needs), Setting(verifiers, solvers, whistleblowers, tasks, seed, upkeep)
    if contracts:
        if no_planted_errors:
            raise click.UsageError("every deployment plants errors: leave out --contracts or --no-planted-errors")
        result = _at_contracts(found, setting)
    else:
        result = run_simulation(without_planted_errors(found.game) if no_planted_errors else found.game, setting)
    title = "A population that plays for money"
    if plot is not None:
        from pol.report.economics_page import simulation_page

        _write(plot, simulation_page(result, tables.earnings(result), title))
    if as_json:
        print(json.dumps(tables.simulation_json(result), indent=2))
        return
    console = Console(highlight=False)
    console.print(tables.table(title, tables.EPOCHS, tables.epochs(result)))
    console.print(tables.table("What each kind earned", tables.EARNINGS, tables.earnings(result)))
    console.print(f"All balances together changed by {result.total_change}.")
    if contracts:
        console.print("At the contracts every single one of them is the same.")


@econ.command()
@click.option(
    "--share",
    "shares",
    type=click.FloatRange(0, 0.95),
    multiple=True,
    default=SHARES,
    show_default=True,
    help="Of all tickets; once for each row.",
)
@_with_needs
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
    console.print(tables.table("What a coalition gains at most", head, rows))
    for name, attack in found[-1][1].items():
        if attack.found.excess > 0:
            console.print(f"{name}: {attack.found.coalition.members}; terms {attack.terms}", soft_wrap=True)
            for line in attack.found.lines:
                console.print(f"  {line}", soft_wrap=True, markup=False)


def _at_contracts(found: Design, setting: Setting) -> Result:
    from pol.chain.node.connection import Connection

    result: Result = laboratory("simulations.population_on_chain").play(
        Connection.embedded(setting.seed), found, setting
    )
    return result


def _write(file: Path, page: str) -> None:
    if file.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{file} is no page: name a file that ends with .html")
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OperationalError(f"can't write {file}: {error}") from error
