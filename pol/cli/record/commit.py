"""``pol commit PATH``: the complete root of tensors in files, or of a recorded checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from pol.cli.examples import example
from pol.cli.file_output import FINE, SHOWN_ROWS, console, json_option, shown_bytes, unsupported_is_unseen, write_file
from pol.commitments.complete_state import StateEntry
from pol.training.record.recorded_run import is_run, open_run, split_step
from pol.training.storage.commitment import Commitment
from pol.training.storage.tensor_folder import open_tensors


@click.command(epilog=example("pol commit model.safetensors --out model.json"))
@click.argument("path")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the commitment.")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than the first {SHOWN_ROWS} entries.")
@json_option
@unsupported_is_unseen
def commit(path: str, out: Path | None, show_all: bool, as_json: bool) -> int:
    """Commit to PATH: a safetensors file, a folder of them, or a learning record (PATH@STEP: one of its checkpoints).

    Files are hashed from a memory map, whatever their size. Pickled checkpoints are refused: nothing is ever unpickled.
    """
    entries, left_out = entries_of(path)
    commitment = Commitment(entries)
    if out is not None:
        write_file(out, commitment.encode())
    if as_json:
        print(json.dumps(commitment.document() | {"left_out": list(left_out)}, indent=2))
        return FINE
    terminal = console()
    shown = entries if show_all else entries[:SHOWN_ROWS]
    terminal.print(_table(shown))
    if len(shown) < len(entries):
        terminal.print(f"and {len(entries) - len(shown)} more entries: --all shows every one, --json has all")
    terminal.print(f"complete root  {commitment.root.hex()}", soft_wrap=True)
    if left_out:
        terminal.print(f"not part of it: {', '.join(left_out)}", soft_wrap=True)
    if out is not None:
        terminal.print(f"written to {out}; check with: pol check {path} {out}", soft_wrap=True)
    return FINE


def entries_of(path: str) -> tuple[tuple[StateEntry, ...], tuple[str, ...]]:
    """The entries of a file, folder or checkpoint, hashed now, and the files beside it that aren't part of it.

    Raises:
        UnsupportedError: a pickled checkpoint.
    """
    place, step = split_step(path)
    if not is_run(place):
        tensors = open_tensors(Path(path))
        return tensors.entries(), tensors.left_out
    run = open_run(place)
    saved = run.document(run.checkpoint(step))
    run.verify(saved)
    return saved.entries, ()


def _table(entries: tuple[StateEntry, ...]) -> Table:
    table = Table("name", "type", "shape", "size", "root")
    table.columns[0].overflow = "fold"
    table.columns[4].no_wrap = True
    for entry in entries:
        if entry.type is None:
            table.add_row(entry.name, "document", "", "", _short(entry))
            continue
        shape = " x ".join(map(str, entry.type.shape)) or "scalar"
        table.add_row(entry.name, entry.type.element.name, shape, shown_bytes(entry.type.nbytes), _short(entry))
    return table


def _short(entry: StateEntry) -> str:
    return f"{entry.content.hex()[:16]}..."
