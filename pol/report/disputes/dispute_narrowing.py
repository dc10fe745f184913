"""How a dispute narrows, down to the operation that the chain has executed, as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pol.report.disputes.dispute_entries import DisputeEntry
from pol.report.disputes.dispute_picture import COLORS, picture
from pol.report.disputes.last_operation import OneStep, shown
from pol.report.elements.html_elements import Markup, element, table

if TYPE_CHECKING:
    from pol.roles.monitor.market_view import EvmOperation


def narrowing(moves: Sequence[DisputeEntry], executed: OneStep | EvmOperation | None) -> list[Markup]:
    """A dispute as a picture, where it ended, what the chain has executed, and all moves."""
    places = [entry.place for entry in moves]
    found = [element("div", picture(moves), class_="picture")]
    last = next((place for place in reversed(places) if place.node is not None), None)
    if last is not None:
        numbers = (("step", last.step), ("element", last.element), ("term", last.term))
        where = ", ".join(f"{name} {value}" for name, value in numbers if value is not None)
        told = [element("code", f"{last.node}: {where}"), element("code", last.source or "")]
        found.append(element("div", element("b", "Down to"), *told, class_="operation"))
    if executed is not None:
        one = executed
        operands = ", ".join(shown(word, one.op) for word in one.operands)
        found.append(
            element(
                "div",
                element("b", "The chain has executed it"),
                element("code", f"{one.op}({operands})" if one.operands else f"{one.op} in a row"),
                element("code", f"claimed  {shown(one.claimed, one.op)}"),
                element("code", f"it is    {shown(one.computed, one.op)}"),
                class_="operation",
            )
        )
    sides = (element("span", e.row.side, style=f"color: {COLORS[e.row.side]}") for e in moves)
    rows = (
        (str(e.number), side, e.row.move, e.row.picked, e.row.remains) for e, side in zip(moves, sides, strict=True)
    )
    listed = table(("", "side", "move", "picks", "what is left of it"), rows)
    return [*found, element("details", element("summary", f"All {len(moves)} moves"), listed)]
