"""``pol bench AREA --json``: every figure that the project claims, measured at this moment, ratios side by side."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from pol.cli.figures import AREAS, Figure
from pol.errors import ProtocolError


@click.command()
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(areas: tuple[str, ...], as_json: bool) -> None:
    """Measure the figures of some areas (all, if none is named) now, on this machine."""
    unknown = [area for area in areas if area not in AREAS]
    if unknown:
        raise ProtocolError(f"no area {', '.join(unknown)}; there are: {', '.join(AREAS)}")
    figures: dict[str, Figure] = {}
    for area in areas or AREAS:
        figures |= AREAS[area]()
    if as_json:
        print(json.dumps({"figures": {name: figure.to_dict() for name, figure in figures.items()}}, indent=2))
        return
    table = Table("figure", "value", "unit", "peer", "ratio")
    for name, figure in figures.items():
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
        table.add_row(name, f"{figure.value:,.6g}", figure.unit, figure.peer or "", ratio)
    Console().print(table)
