"""A page about a design: its parameters and the incentives to deviate."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from pol.incentives.game.parameter_design import Design
from pol.incentives.game.payoffs import Choice
from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, table
from pol.report.elements.page_parts import card, page_of

POINTS = 200


def design_page(found: Design, rows: Sequence[Sequence[str]], title: str) -> str:
    """A page about a design: its parameters, the value of fabricating, and the pay of watching."""
    sections = (
        element("h1", title),
        card("Parameters", table(("parameter", "value"), rows)),
        section("What fabricating segments brings, beside honesty, as a part of the price", _temptation(found)),
        section("A false verdict is found, by the share of tickets that one hand holds", _coalitions(found)),
        section("A ticket has been paid at least once, by the number of its watches", _patience(found)),
    )
    return page_of("pol econ design", *sections)


def section(title: str, chart: Markup) -> Markup:
    """A chart below its heading."""
    return card(title, chart)


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
