"""``pol dispute DIR``: a recorded dispute for auditors: all moves side by side, or one in depth."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pol.cli.dispute.recorded_dispute import read
from pol.cli.examples import example
from pol.report.disputes.dispute_entries import DisputeEntry, DisputePlace, OpenedPart
from pol.report.disputes.last_operation import OneStep, shown


@click.command(epilog=example("pol demo --out story", "pol dispute story --move 4"))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--false-dispute", "which", flag_value="false_dispute", help="Show the challenge to the honest verdict instead."
)
@click.option("--objection", "which", flag_value="objection", help="Show the objection to the solver's log instead.")
@click.option("--move", "number", type=click.IntRange(0), metavar="N", help="Show one move in depth.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def dispute(folder: Path, which: str | None, number: int | None, as_json: bool) -> None:
    """Show the dispute that `pol demo --out DIR` recorded: every pick, and what remained. Every rule is checked."""
    entries = read(folder, which or "dispute").entries()
    if number is not None and number >= len(entries):
        raise click.UsageError(f"the dispute ends with move {entries[-1].number}; there is no move {number}")
    if as_json:
        document = [e.to_dict() for e in entries]
        print(json.dumps({"moves": document} if number is None else document[number], indent=2))
        return
    console = Console(highlight=False)
    if number is None:
        console.print(table(entries))
        tell_end(entries[-1], console)
        console.print(f"One move in depth: pol dispute {folder} --move {entries[-1].number}", markup=False)
    else:
        tell(entries[number], console)


def table(entries: list[DisputeEntry]) -> Table:
    """A row a move."""
    found = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("", "side", "move", "picks", "what is left of it"):
        found.add_column(name, no_wrap=True)
    for name in ("bytes", "gas"):
        found.add_column(name, justify="right", no_wrap=True)
    for e in entries:
        gas = "" if e.gas is None else f"{e.gas:,}"
        found.add_row(str(e.number), e.row.side, e.row.move, e.row.picked, e.row.remains, f"{e.row.bytes:,}", gas)
    return found


def tell(entry: DisputeEntry, console: Console) -> None:
    """One move in depth."""
    told, gas = entry.row, "" if entry.gas is None else f", {entry.gas:,} gas"
    console.print(f"[bold]Move {entry.number}: {told.side}, {told.move}[/bold]   {told.bytes:,} bytes{gas}")
    tell_place(entry.place, console)
    if entry.lay_open:
        console.print(f"\nOpen at {told.level}, by the other side:")
        tell_parts(entry.lay_open, entry.picked, console)
    if entry.opened:
        console.print(f"\nThe {told.side}'s own version of {told.picked}:")
        tell_parts(entry.opened, None, console)
        console.print(f"\nCommitted to by 0x{entry.opening}", soft_wrap=True)
    if entry.outcome is not None:
        console.print()
        tell_end(entry, console)


def tell_place(place: DisputePlace, console: Console) -> None:
    """Where in the computation it is, as far as that is agreed."""
    numbers = (("step", place.step), ("element", place.element), ("term", place.term))
    line = ", ".join(f"{name} {value}" for name, value in numbers if value is not None)
    if line:
        console.print(line)
    if place.node is not None:
        console.print(f"node {place.node}, from: {place.source}", markup=False, soft_wrap=True)


def tell_parts(parts: tuple[OpenedPart, ...], picked: int | None, console: Console) -> None:
    """What lies open, a line a part."""
    width = max(len(found.part) for found in parts)
    for index, found in enumerate(parts):
        mark, style = ("->", "bold") if index == picked else ("  ", "dim")
        console.print(f" {mark} {found.part:<{width}}  {found.value}", style=style, markup=False, soft_wrap=True)


def tell_end(entry: DisputeEntry, console: Console) -> None:
    """What was executed, and who won."""
    if entry.one_step is not None:
        tell_scalar(entry.one_step, console)
    console.print(f"[bold]The {entry.winner} wins: {escape(entry.outcome or '')}.[/bold]")


def tell_scalar(one: OneStep, console: Console) -> None:
    """The scalar operation, with its operands and its result."""
    console.print(f"step {one.step}, node {one.node}, from: {one.source}", markup=False, soft_wrap=True)
    console.print(f"{one.place}: {one.expression}", markup=False, soft_wrap=True)
    console.print(f"  claimed {shown(one.claimed, one.op)}\n  it is   {shown(one.computed, one.op)}", markup=False)
