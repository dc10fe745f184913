"""``pol econ``: parameters with which honesty pays best."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import click
from rich.console import Console

from pol.cli.checkout import laboratory
from pol.cli.dispute.program_seconds import seconds_of_program
from pol.cli.examples import defaulted, example
from pol.cli.incentives import econ_tables as tables
from pol.cli.verb_group import VerbGroup
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.incentives.amounts import UNIT
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import design as find_design

OF_A_CHECKOUT = {"coalition": "Search for the joint strategy that brings a coalition most."}
"""Verbs of the laboratory (`tests/lab`), and their lines in ``pol econ --help``."""


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


AMOUNT = _Amount()
OPTIONS = (
    click.option("--task-value", type=AMOUNT, required=True, help="What the model is worth to its submitter."),
    click.option("--verify-cost", type=AMOUNT, required=True, help="What replaying the whole training costs."),
    click.option(
        "--cheat-gain", type=AMOUNT, required=True, help="What passing off fabricated work brings, beside saved work."
    ),
    click.option("--train-cost", type=AMOUNT, help="What the training costs; as much as its replay, if not given."),
    defaulted("--segments", type=click.IntRange(1, 10_000), default=100),
    defaulted("--cheat-fraction", default=0.05, help="Least part that brings the gain."),
    defaulted(
        "--saved-by-one-lie",
        default=1.0,
        help="Most of the training that one false segment saves; all: it may jump to where training stands still.",
    ),
    defaulted("--objectors", default=0.0, help="How surely an outsider looks at the whole log and objects."),
    defaulted("--confidence", default=0.99, help="How surely a false verdict is found."),
    defaulted("--detection", default=0.0, help="How surely the least cheat has to be drawn."),
    defaulted("--coalition", default=0.25, help="Share of all tickets that one hand may hold."),
    defaulted("--beacon-bits", default=0, help="Bits of the seed that an adversary can choose."),
    defaulted("--margin", default=0.2, help="By which part honesty has to be better."),
    defaulted("--most-draws", default=32),
    click.option(
        "--most-stake", type=AMOUNT, help="Of a solver; twice the value of the task, if not given. More: fewer draws."
    ),
    defaulted("--transaction", type=AMOUNT, default="0.001", help="What a transaction costs."),
    defaulted("--dispute", type=AMOUNT, default="0.01", help="All moves of one side."),
    defaulted("--capital", default=0.1, help="Interest on locked money, a year."),
    defaulted("--train-seconds", default=86_400),
    defaulted("--slowest", default=4.0, help="How many times as slow the slowest party may be."),
    defaulted("--fastest", default=4.0, help="How many times as fast the fastest one is."),
    click.option("--side-seconds", default=0.0, help="All moves of one side of a dispute; a replay at least."),
    click.option("--replay-seconds", default=0.0, help="The longest of them that executes a step or more; the same."),
    click.option("--move-seconds", default=0.0, help="The longest other one."),
    click.option(
        "--program",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Compute these three from a step program (program.bin), at this machine's speed of hashing ...",
    ),
    click.option("--interval", type=click.IntRange(1), help="... and the steps of a segment."),
    defaulted("--commit-window", default=120, help="Seconds in which watchers commit."),
    defaulted("--paid-within", default=12, help="Watches after which 95 % have been paid once."),
    defaulted("--false-reject", default=1e-4, help="How often honest work is rejected."),
    click.option("--exact", is_flag=True, help="The solver runs canonically; there is no profile."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)


def with_needs(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options of a design and gets it as `Needs`."""

    @functools.wraps(command)
    def wrapped(program: Path | None, interval: int | None, **options: Any) -> None:
        if program is not None:
            options |= _moves_of(program, interval, options["train_seconds"] / options["segments"])
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


def _moves_of(program: Path, interval: int | None, segment: float) -> dict[str, float]:
    """The seconds of moves in disputes about a segment, which takes ``segment`` seconds here.

    Raises:
        click.UsageError: the steps of a segment aren't given.
        OperationalError: the program can't be read.
        ProtocolError: the file is no step program's.
    """
    if interval is None:
        raise click.UsageError("--program needs --interval, the steps of a segment")
    taken = seconds_of_program(program, interval, segment / interval)
    return {"side_seconds": taken.all, "replay_seconds": taken.at_trace, "move_seconds": taken.later}


class _Econ(VerbGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *OF_A_CHECKOUT})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in OF_A_CHECKOUT:
            return super().get_command(ctx, cmd_name)
        try:
            return cast(click.Command, getattr(laboratory(f"incentives.{cmd_name}_verb"), cmd_name))
        except click.UsageError:
            if ctx.resilient_parsing:  # Completion offers only what can run.
                return None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(
                sorted([*own, *((name, f"{line} Needs a checkout.") for name, line in OF_A_CHECKOUT.items())])
            )


@click.group(cls=_Econ, epilog=example("pol econ design --task-value 25 --verify-cost 1 --cheat-gain 2"))
def econ() -> None:
    """Find the stakes that make honesty pay best, and try everything else."""


@econ.command(epilog=example("pol econ design --task-value 25 --verify-cost 1 --cheat-gain 2"))
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with pictures (HTML).")
@with_needs
def design(needs: Needs, as_json: bool, plot: Path | None) -> None:
    """Find the cheapest parameters with which honesty is everybody's best answer.

    Every deviation is then tried with the code that pays: the tables say how much worse the best of them is. Amounts
    are in units of the asset; JSON has them in its smallest unit (18 places).
    """
    found = find_design(needs)
    title = "Parameters with which honesty pays best"
    if plot is not None:
        from pol.report.economics_page import design_page

        write_page(plot, design_page(found, tables.parameters(found), title))
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


def write_page(file: Path, page: str) -> None:
    """Write an HTML page.

    Raises:
        click.UsageError: the file's name doesn't end with .html.
        OperationalError: the file can't be written.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{file} is no page: name a file that ends with .html")
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OperationalError(f"can't write {file}: {reason_of(error)}") from error
