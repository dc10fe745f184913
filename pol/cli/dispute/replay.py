"""``pol replay DIR``: replay a recorded dispute off chain, move by move, by the same rules."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from pol.cli.dispute.dispute import tell_end
from pol.cli.dispute.recorded_dispute import read
from pol.cli.examples import example
from pol.report.disputes.dispute_entries import DisputeEntry
from pol.report.disputes.move_descriptions import line


@click.command(epilog=example("pol demo --out story", "pol replay story"))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--false-dispute", "which", flag_value="false_dispute", help="Replay the challenge to the honest verdict instead."
)
@click.option("--objection", "which", flag_value="objection", help="Replay the objection to the solver's log instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(folder: Path, which: str | None, as_json: bool) -> None:
    """Replay the dispute that `pol demo --out DIR` recorded: claim, task and proof must agree with it."""
    entries = read(folder, which or "dispute").entries()
    if as_json:
        last, moves = entries[-1], [_move(entry) for entry in entries[1:]]
        print(json.dumps({"winner": last.winner, "detail": last.outcome, "moves": moves}, indent=2))
        return
    console, told = Console(highlight=False), None
    for entry in entries:
        console.print(f"{entry.number:>3}  {line(entry.row, entry.gas or 0)}", markup=False, soft_wrap=True)
        if entry.place.node is not None and entry.place.node != told:
            told = entry.place.node
            console.print(f"     {told}  {entry.place.source}", markup=False, soft_wrap=True)
    tell_end(entries[-1], console)


def _move(entry: DisputeEntry) -> dict[str, object]:
    one = entry.one_step
    return asdict(entry.row) | {"gas": entry.gas} | ({"one_step": one.to_dict()} if one is not None else {})
