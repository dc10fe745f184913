"""A page about a simulation: its epochs, and the earnings of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from lab.simulations.population import EPOCH, SimulationResult
from pol.report.economics_page import section
from pol.report.elements import charts
from pol.report.elements.html_elements import element, table
from pol.report.elements.page_parts import card, page_of


def simulation_page(result: SimulationResult, rows: Sequence[Sequence[str]], title: str) -> str:
    """A page about a simulation: its epochs, and the earnings of each kind."""
    counted: dict[str, list[tuple[int, float]]] = {
        "lies that stand": [],
        "fabricated, paid": [],
        "drawn that watch": [],
    }
    enrolled = []
    for number, epoch in enumerate(result.epochs):
        at = (number + 1) * EPOCH
        counted["lies that stand"].append((at, _share(epoch.lies - epoch.lies_caught, epoch.seatings)))
        counted["fabricated, paid"].append((at, _share(epoch.fabricated, epoch.tasks)))
        counted["drawn that watch"].append((at, _share(epoch.watches, epoch.drawn)))
        enrolled.append((at, float(epoch.enrolled)))
    shares = charts.lines({name: [run] for name, run in counted.items()}, "shares by task", "task")
    sections = (
        element("h1", title),
        section("Shares of verdicts, tasks and watches", shares),
        section("Whistleblowers that are enrolled", charts.lines({"enrolled": [enrolled]}, "whistleblowers", "task")),
        card("Earnings", table(("role", "kind", "parties", "earned by each and task", "catches"), rows)),
    )
    return page_of("pol econ simulate", *sections)


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0
