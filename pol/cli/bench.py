"""``pol bench AREA --json``: measures every figure that the project claims, with ratios to peers."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from pol.cli.examples import example
from pol.cli.file_output import json_option

if TYPE_CHECKING:
    from lab.benchmarks.figure import Figure
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pol


def laboratory(module: str) -> ModuleType:
    """A module of ``tests/lab``. Raises click.UsageError: this isn't a checkout."""
    tests = Path(pol.__file__).parents[1] / "tests"
    if not (tests / "lab" / "__init__.py").is_file():
        raise click.UsageError("this needs a checkout of the repository: clone it and run .ci/setup there")
    if str(tests) not in sys.path:
        sys.path.insert(0, str(tests))
    return importlib.import_module(f"lab.{module}")


@click.command(epilog=example("pol bench demo --json"))
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@json_option
@click.option("--markdown", is_flag=True, help="Print docs/benchmarks.md.")
@click.option("--epochs", type=click.IntRange(1), help="Fewer than the 100 of the litepaper's experiment.")
def bench(areas: tuple[str, ...], as_json: bool, markdown: bool, epochs: int | None) -> None:
    """Measure the figures of some areas (all, if none is named) now, on this machine. Needs a checkout."""
    measured = laboratory("benchmarks.benchmark_areas")
    unknown = [area for area in areas if area not in measured.AREAS]
    if unknown:
        raise click.UsageError(f"no area {', '.join(unknown)}; there are: {', '.join(measured.AREAS)}")
    if not areas:
        import_module("torch")  # most areas need it: said before the first one takes its time
    figures: dict[str, Figure] = {}
    for area in areas or measured.AREAS:
        figures |= measured.litepaper_figures(epochs) if area == "litepaper" else measured.AREAS[area]()
    if as_json:
        print(json.dumps({"figures": {name: figure.to_dict() for name, figure in figures.items()}}, indent=2))
        return
    if markdown:
        print(as_markdown(figures))
        return
    table = Table("figure", "value", "unit", "peer", "ratio")
    table.columns[0].no_wrap = True
    for name, figure in figures.items():
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
        table.add_row(name, shown(figure.value), figure.unit, figure.peer or "", ratio)
    Console().print(table)


def as_markdown(figures: dict[str, Figure]) -> str:
    """The figures as a document."""
    lines = [
        "# Figures",
        "",
        f"Measured by `pol bench --markdown` with {os.cpu_count()} cores; timings vary from run to run.",
        "Ratio: ours over the peer's, side by side in one run. One area, for programs: `pol bench AREA --json`.",
        "What was aimed at, what was missed, and what figures leave out: [goals](goals.md).",
        "",
        "| figure | value | unit | peer | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, figure in figures.items():
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
        lines.append(f"| {name} | {shown(figure.value)} | {figure.unit} | {figure.peer or ''} | {ratio} |")
    return "\n".join(lines)


def shown(value: float) -> str:
    """A figure with its significant digits."""
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.4g}"
