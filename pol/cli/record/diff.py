"""``pol diff A B``: differences of two models or trainings, tensor by tensor, and the step where they begin."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from pol.cli.examples import example
from pol.cli.file_output import DIFFERS, FINE, SHORTER, SHOWN_ROWS, console, json_option, unsupported_is_unseen
from pol.training.record.recorded_run import split_step

if TYPE_CHECKING:
    from pol.verification.runs.run_comparison import Change, StateComparison
    from pol.verification.runs.tensor_comparison import NamedTensors, TensorComparison

CHANGES_SHOWN = 40


@click.command(epilog=example("pol diff runs/first runs/second", "pol diff runs/first@20 model.safetensors"))
@click.argument("a")
@click.argument("b", required=False)
@click.option("--all", "show_all", is_flag=True, help=f"Show equal tensors too, and more than {SHOWN_ROWS}.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw a map as SVG.")
@json_option
@unsupported_is_unseen
def diff(a: str, b: str | None, show_all: bool, picture: Path | None, as_json: bool) -> int:
    """Compare A and B: each a safetensors file, a folder of them, or a learning record (RECORD@STEP: a checkpoint).

    Of two records: at the newest step that both have, and since which checkpoint each part differs. Exit code 4: they
    are equal there, and one of them is shorter. Generators that nobody drew from are listed apart.
    """
    from pol.verification.runs.run_comparison import generators
    from pol.verification.runs.tensor_comparison import aligned, compare_tensors

    if b is None:
        raise click.UsageError(f"two are compared: name what {a} is held against (pol diff {a} OTHER)")
    # Where checkpoints are named, earlier and later ones don't count.
    whole = all(split_step(text)[1] is None for text in (a, b))
    one, other = _open(a, b)
    one, other, beside = aligned(one, other)
    records = _compare_records(one, other, whole)
    states, since, apart, shorter = records.states, records.since, records.apart, records.shorter
    rows = [row for row in compare_tensors(one, other) if row.name not in apart]
    alike = all(row.how == "equal" for row in rows) and (states is None or not states.entries) and not (whole and since)
    equal = alike and not apart
    code = SHORTER if equal and shorter else FINE if equal else DIFFERS
    if picture is not None:
        _draw(picture, one, other, rows, records.steps if since else [])
    if as_json:
        found = {"equal": equal, "shorter": shorter, "equal_but_for": generators(apart) if alike else []}
        print(json.dumps(_document(one, other, rows, states, since, beside) | found, indent=2))
        return code
    terminal = console()
    chosen = rows if show_all else [row for row in rows if row.how != "equal" or row.name in since]
    shown = chosen if show_all else chosen[:SHOWN_ROWS]
    if shown:
        terminal.print(_table(shown, since))
    if len(shown) < len(chosen):
        terminal.print(f"and {len(chosen) - len(shown)} more tensors: --all shows every one, --json has all")
    equal_rows = sum(row.how == "equal" for row in rows)
    terminal.print(f"{one.label} and {other.label}: {equal_rows} of {len(rows)} tensors are equal", soft_wrap=True)
    if states is not None and states.changes:
        terminal.print(_changes(states.changes, since))
        if len(states.changes) > CHANGES_SHOWN:
            terminal.print(f"and {len(states.changes) - CHANGES_SHOWN} more values; --json lists all")
    if states is not None and states.entries:
        terminal.print(f"components that differ: {', '.join(states.components)}", soft_wrap=True)
    if since:
        terminal.print(_first_difference(since), soft_wrap=True)
    if beside:
        terminal.print(f"not compared: {beside} tensors of the record that a model's file doesn't hold")
    if apart:
        but_for = "they are equal but for" if alike else "beside that they differ in"
        terminal.print(f"{but_for} generators that nobody drew from: {', '.join(generators(apart))}", soft_wrap=True)
    if shorter:
        terminal.print(shorter, soft_wrap=True)
    return code


@dataclass(frozen=True)
class _Records:
    """What two records say. shorter: which one is, in words. apart: entries of generators that nobody drew from."""

    states: StateComparison | None = None
    since: Mapping[str, int] = field(default_factory=dict)
    steps: Sequence[int] = ()
    apart: Collection[str] = ()
    shorter: str = ""


def _compare_records(one: NamedTensors, other: NamedTensors, whole: bool) -> _Records:
    from pol.verification.runs.run_comparison import compare_states, first_differences, undrawn

    if one.saved is None or other.saved is None or one.run is None or other.run is None:
        return _Records()
    states = compare_states(one.saved, other.saved)
    steps = sorted(set(one.run.steps) & set(other.run.steps))
    unlike = one.run.record.run != other.run.record.run
    idle = undrawn(one.run, other.run) if unlike else set()
    since = first_differences(one.run, other.run, steps, idle) if unlike else {}
    short, long = sorted((one, other), key=_end)
    shorter = ""
    if whole and _end(short) < _end(long):
        shorter = f"{short.label} is the end of the shorter run: the other one goes on to step {_end(long)}"
    apart = idle & {entry.name for entry in states.entries}
    return _Records(states.without(idle), since, steps, apart, shorter)


def _end(side: NamedTensors) -> int:
    return -1 if side.run is None else side.run.steps[-1]


def _open(a: str, b: str) -> tuple[NamedTensors, NamedTensors]:
    """Two records without a step are compared at the newest step that both have."""
    from pol.training.record.recorded_run import is_run, open_run
    from pol.verification.runs.run_comparison import common_steps
    from pol.verification.runs.tensor_comparison import open_named_tensors, recorded_tensors

    places = [split_step(text) for text in (a, b)]
    if all(is_run(place) and step is None for place, step in places):
        runs = open_run(a), open_run(b)
        step = common_steps(*runs)[-1]
        return recorded_tensors(runs[0], step, a), recorded_tensors(runs[1], step, b)
    return open_named_tensors(a), open_named_tensors(b)


def _first_difference(since: Mapping[str, int]) -> str:
    """The first checkpoint where two trainings differ, and the components that differ there."""
    from pol.verification.runs.run_comparison import component_of

    first = min(since.values())
    parts = sorted({component_of(name) for name, step in since.items() if step == first})
    return f"they differ first at the checkpoint of step {first}: {', '.join(parts)}"


def _draw(
    file: Path, one: NamedTensors, other: NamedTensors, rows: Sequence[TensorComparison], steps: Sequence[int]
) -> None:
    from pol.report.elements.heat_map import Column, write_heat_map
    from pol.verification.runs.tensor_comparison import compare_tensors, recorded_tensors

    if not steps or one.run is None or other.run is None:
        columns, title = [Column("difference", rows)], f"{one.label} and {other.label}"
    else:
        columns, title = [], " and ".join(side.label.rpartition("@")[0] for side in (one, other))
        for step in steps:
            sides = recorded_tensors(one.run, step, one.label), recorded_tensors(other.run, step, other.label)
            columns.append(Column(str(step), list(compare_tensors(*sides))))
    write_heat_map(file, title, columns)


def _table(rows: Sequence[TensorComparison], since: Mapping[str, int]) -> Table:
    table = Table("tensor", "", "L2", "relative", "Linf", "differing", "largest at")
    table.columns[0].overflow = "fold"
    if since:
        table.add_column("since step")
    for row in rows:
        cells = [row.name, row.how, "", "", "", "", ""]
        if (far := row.distance) is not None and far.position is not None and far.values is not None:
            cells[2:6] = [f"{far.l2:.3g}", f"{far.relative:.3g}", f"{far.linf:.3g}", f"{far.differing}/{far.elements}"]
            cells[6] = f"{list(far.position)}: {_number(far.values[0])} / {_number(far.values[1])}"
        table.add_row(*cells, *([str(since.get(row.name, ""))] if since else []))
    return table


def _changes(changes: Sequence[Change], since: Mapping[str, int]) -> Table:
    table = Table("value", "A", "B")
    for column in table.columns:
        column.overflow = "fold"
    if since:
        table.add_column("since step")
    for change in changes[:CHANGES_SHOWN]:
        step = since.get(change.path.partition("/")[0], "")
        cells = [change.path, change.before or "-", change.after or "-"]
        table.add_row(*cells, *([str(step)] if since else []))
    return table


def _document(
    one: NamedTensors,
    other: NamedTensors,
    rows: Sequence[TensorComparison],
    states: StateComparison | None,
    since: Mapping[str, int],
    beside: int,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "a": one.label,
        "b": other.label,
        "equal": True,
        "tensors": [_row(row, since) for row in rows],
        "not_compared": beside,
    }
    if states is not None:
        document["components"] = states.components
        document["values"] = [
            {"path": c.path, "a": c.before, "b": c.after, "since_step": since.get(c.path.partition("/")[0])}
            for c in states.changes
        ]
    return document


def _row(row: TensorComparison, since: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": row.name, "how": row.how, "since_step": since.get(row.name)}
    if (far := row.distance) is not None:
        found |= {
            "elements": far.elements,
            "differing": far.differing,
            "l2": _finite(far.l2),
            "linf": _finite(far.linf),
            "relative_l2": _finite(far.relative),
            "largest_at": far.position,
            "values": None if far.values is None else [_number(value) for value in far.values],
        }
    return found


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"  # JSON has no infinity


def _number(value: complex | float | int) -> str:
    return f"{value:.9g}" if isinstance(value, complex | float) else str(value)
