"""A recorded dispute for an auditor: every move with its place, the parts that lay open, and the parts it opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pol.dispute.agreed_facts import AtElement, AtNode, AtStep, AtTerm, Facts, Replayed
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.moves import Describe, DisputeEnded, Move, OpenState, ProveStep, Show
from pol.dispute.position import Level, Position
from pol.dispute.rules import picked
from pol.errors import ProtocolError
from pol.graph.node_names import ProgramNames
from pol.graph.tensor_type import LEAF_WORDS
from pol.report.disputes.last_operation import OneStep, one_step
from pol.report.disputes.move_descriptions import MoveRow, opening_row, part, resignation_row, row, side_name


@dataclass(frozen=True)
class DisputePlace:
    """The agreed place of a dispute in the computation."""

    step: int | None = None
    node: str | None = None
    source: str | None = None
    """The line of user code behind the node."""
    element: int | None = None
    term: int | None = None


@dataclass(frozen=True)
class OpenedPart:
    """One opened part and its value: a root, a sum or a word, in hexadecimal."""

    part: str
    value: str


@dataclass(frozen=True)
class DisputeEntry:
    """One transaction of a dispute; number 0 is the challenge itself."""

    number: int
    row: MoveRow
    gas: int | None
    place: DisputePlace
    lay_open: tuple[OpenedPart, ...]
    """Parts that the other side had opened before."""
    picked: int | None
    """Index of the picked part."""
    opened: tuple[OpenedPart, ...]
    opening: str | None
    """Commitment to the opened parts; None if nothing was opened."""
    one_step: OneStep | None
    winner: str | None = None
    """Winner of the dispute, if it ended here."""
    outcome: str | None = None
    """How the dispute ended."""

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        scalar = self.one_step.to_dict() if self.one_step is not None else None
        document = asdict(self) | {"one_step": scalar}
        return asdict(self.row) | {name: value for name, value in document.items() if name != "row"}


def entries(
    record: DisputeRecord, names: ProgramNames, gas_of: Callable[[int], int | None] = lambda number: None
) -> Iterator[DisputeEntry]:
    """All moves of a dispute, with every rule checked. ``gas_of`` gives the gas of a move, counted from 1, if known."""
    start = record.start
    yield DisputeEntry(
        0, opening_row(start), None, DisputePlace(), (), None, shown_at(start), start.opening.hex(), None
    )
    for number, (position, move, after) in enumerate(record.walk(), 1):
        yield DisputeEntry(
            number,
            row(position, move, after),
            gas_of(number),
            place_of(position, move, names),
            shown_at(position),
            None if isinstance(move, OpenState | Show) else move.index,
            () if isinstance(after, DisputeEnded) else shown_at(after),
            None if isinstance(after, DisputeEnded) else after.opening.hex(),
            one_step(position, move, names) if isinstance(move, ProveStep) else None,
            side_name(after.winner) if isinstance(after, DisputeEnded) else None,
            after.detail if isinstance(after, DisputeEnded) else None,
        )


def given_up(record: DisputeRecord, names: ProgramNames, how: str, gas: int | None = None) -> DisputeEntry:
    """The end of a dispute whose side on turn made no more move. Raises ProtocolError: a proof has ended it."""
    ends = [after for _, _, after in record.walk()]
    last: Position | DisputeEnded = ends[-1] if ends else record.start
    if isinstance(last, DisputeEnded):
        raise ProtocolError("a proof has ended the dispute; nobody has given up")
    outcome = f"the {side_name(last.turn)} made no more move ({how})"
    found = (place_of(last, None, names), shown_at(last), None, (), None, None)
    return DisputeEntry(len(record.moves) + 1, resignation_row(last), gas, *found, side_name(last.turn.other), outcome)


def shown_at(position: Position) -> tuple[OpenedPart, ...]:
    """All open parts of a position."""
    count = len(position.items)
    if position.level is Level.LEAF:
        count = min(LEAF_WORDS, position.count - LEAF_WORDS * position.lo)
    return tuple(OpenedPart(part(position, i), f"0x{picked(position, i).hex()}") for i in range(count))


def place_of(position: Position, move: Move | None, names: ProgramNames) -> DisputePlace:
    """The place of a dispute, with the node that ``move`` describes, if any."""
    facts: Facts = position.facts
    step = node = element = term = None
    if isinstance(move, Describe):
        node = position.lo + move.index
    elif isinstance(move, Show):
        node = move.node
    while not isinstance(facts, Replayed) and hasattr(facts, "before"):
        match facts:
            case AtTerm():
                term = facts.term
            case AtElement():
                element = facts.element
            case AtNode():
                node = facts.number
            case AtStep():
                step = facts.step
        facts = facts.before
    if node is None:
        return DisputePlace(step)
    return DisputePlace(step, names.nodes[node].name, names.nodes[node].source, element, term)
