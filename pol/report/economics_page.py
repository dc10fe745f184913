"""Pages about a design and about a simulation: what tempts whom, and what a population does."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from pol.incentives.game.parameter_design import Design
from pol.incentives.game.payoffs import Choice
from pol.incentives.simulation.population import EPOCH, Result
from pol.report import charts
from pol.report.html_elements import Markup, document, element, join, table

STYLE = """
body { font: 15px/1.5 sans-serif; color: #212529; background: #fff; max-width: 900px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { text-align: left; padding: 3px 12px 3px 0; }
td { border-top: 1px solid #dee2e6; }
"""
POINTS = 200


def design_page(found: Design, rows: Sequence[Sequence[str]], title: str) -> str:
    """A design: its parameters, what fabricating is worth, how stakes and draws go together, what watching pays."""
    sections = (
        element("h1", title),
        table(("parameter", "value"), rows),
        _section("What fabricating segments brings, beside honesty, as a part of the price", _temptation(found)),
        _section("A false verdict is found, by the share of tickets that one hand holds", _coalitions(found)),
        _section("A ticket has been paid at least once, by the number of its watches", _patience(found)),
    )
    return document("pol econ design", STYLE, *sections)


def simulation_page(result: Result, rows: Sequence[Sequence[str]], title: str) -> str:
    """A simulation: what happened in its epochs, and what each kind earned."""
    counted: dict[str, list[tuple[int, float]]] = {
        "lies that stand": [],
        "fabricated, paid": [],
        "drawn that watch": [],
    }
    enrolled = []
    for number, epoch in enumerate(result.epochs):
        at = (number + 1) * EPOCH
        counted["lies that stand"].append((at, _of(epoch.lies - epoch.lies_caught, epoch.seatings)))
        counted["fabricated, paid"].append((at, _of(epoch.fabricated, epoch.tasks)))
        counted["drawn that watch"].append((at, _of(epoch.watches, epoch.drawn)))
        enrolled.append((at, float(epoch.enrolled)))
    shares = charts.lines({name: [run] for name, run in counted.items()}, "shares by task", "task")
    sections = (
        element("h1", title),
        _section("Shares of verdicts, tasks and watches", shares),
        _section("Whistleblowers that are enrolled", charts.lines({"enrolled": [enrolled]}, "whistleblowers", "task")),
        table(("role", "kind", "parties", "earned by each and task", "catches"), rows),
    )
    return document("pol econ simulate", STYLE, *sections)


def _section(title: str, chart: Markup) -> Markup:
    return join((element("h2", title), chart))


def _of(count: int, total: int) -> float:
    return count / total if total else 0.0


def _temptation(found: Design) -> Markup:
    choices = [found.game.solver(), *(c for c in found.game.coalition() if "solver" in c.state)]
    series = {}
    for choice, name in zip(choices, ("a solver", "with a coalition"), strict=False):
        series[name] = [_thin(_fabricating(choice, found.stakes.price))]
    return charts.lines(series, "gain over honesty", "fabricated segments")


def _fabricating(choice: Choice, price: int) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for action, value in choice.others.items():
        words = action.replace(",", "").split()
        if words[0] == "fabricate":
            cheated, gain = int(words[1]), (value - choice.honest) / price
            best[cheated] = max(gain, best.get(cheated, gain))
    return sorted(best.items())


def _thin(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    every = max(1, len(points) // POINTS)
    return [point for number, point in enumerate(points) if number % every == 0 or number == len(points) - 1]


def _coalitions(found: Design) -> Markup:
    watchers = found.chance.watchers
    runs = {
        "every lie": [[(q, 1 - exp(-(1 - q / 100) * watchers)) for q in range(100)]],
        "beside a planted": [[(q, 1 - exp(-(1 - q / 100) * watchers / 2)) for q in range(100)]],
    }
    return charts.lines(runs, "found", "percent of the tickets")


def _patience(found: Design) -> Markup:
    rate = found.game.rate
    return charts.lines({"paid": [[(n, 1 - (1 - rate) ** n) for n in range(1, 101)]]}, "paid", "watches")
