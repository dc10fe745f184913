"""Moves of a dispute in words: the side, the picked part, and the remaining disagreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pol.dispute.encoding.move_decoding import PICKLESS, PackedMove
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.encoding.move_fields import Value
from pol.dispute.moves import DisputeEnded, Move, OpenState, Show
from pol.dispute.position import TREES, Level, Position, Side
from pol.graph.tensor_type import LEAF_WORDS

RANGES = {
    Level.STEPS: "step",
    Level.NODES: "node",
    Level.LEAVES: "leaf",
    Level.TERMS: "term",
    Level.STATE: "slot",
    Level.SUM_SLOTS: "slot",
    Level.SUM_LEAVES: "leaf",
}
"""Unit of the ranges of a level."""


RESIGNATION_BYTES = 93
"""Selector, number, packed position, index byte and opening."""

HEADING = f"{'side':<10} {'move':<12} {'picks':<18} {'what is left of it':<25}"


@dataclass(frozen=True)
class MoveRow:
    """One move, in words."""

    side: str
    level: str
    """Level before the move."""
    move: str
    picked: str
    remains: str
    """Disputed part after the move."""
    bytes: int
    """Bytes of calldata."""


def row(position: Position, move: Move, after: Position | DisputeEnded) -> MoveRow:
    """A move in words."""
    remains = "nothing: decided" if isinstance(after, DisputeEnded) else open_at(after)
    kind = type(move).__name__
    size = len(encode(0, position, move))
    return MoveRow(side_name(position.turn), position.level.name, kind, picked_by(position, move), remains, size)


def opening_row(position: Position) -> MoveRow:
    """The challenger's opening, which is sent with the challenge, in words."""
    return MoveRow(side_name(Side.CHALLENGER), "", "Start", "the claim", open_at(position), len(position.opened))


def resignation_row(position: Position) -> MoveRow:
    """A resignation in words."""
    return MoveRow(side_name(position.turn), position.level.name, "Resign", "", "nothing: given up", RESIGNATION_BYTES)


def side_name(side: Side) -> str:
    """A side in words."""
    return side.name.lower()


def picked_by(position: Position, move: Move) -> str:
    """The part that a move picks."""
    match move:
        case OpenState():
            return "state after step"
        case Show(node=node, leaf=leaves):
            return ", ".join([f"node {node}", *(f"leaf {leaf.number}" for leaf in leaves)])
        case _:
            return part(position, move.index)


def part(position: Position, index: int) -> str:
    """One of the open parts, in words."""
    match position.level:
        case Level.LEAF:
            return f"element {LEAF_WORDS * position.lo + index}"
        case Level.BODY:
            return f"instruction {index}"
        case level if level in TREES:
            width = 1 << (position.height - position.opened_height)
            lo = position.lo + index * width
            return _range(RANGES[level], lo, min(lo + width, position.list_length))
        case level:
            return _range(RANGES[level], *position.boundaries[index : index + 2])


def open_at(position: Position) -> str:
    """The open parts of a position, in words."""
    match position.level:
        case Level.LEAF:
            return f"leaf {position.lo}, {min(LEAF_WORDS, position.count - LEAF_WORDS * position.lo)} words"
        case Level.BODY:
            return f"body of {position.count} instructions"
        case level if level in TREES:
            what = _range(RANGES[level], position.lo, min(position.lo + (1 << position.height), position.list_length))
        case level:
            what = _range(RANGES[level], position.lo, position.hi)
    return f"{what}, {len(position.items)} part{'s' * (len(position.items) != 1)}"


def line(found: MoveRow, gas: int = 0) -> str:
    """A move in a line, as below `HEADING`."""
    price = f"{gas:>8,}" if gas else ""
    return f"{found.side:<10} {found.move:<12} {found.picked:<18} {found.remains:<25}{price}".rstrip()


def _range(what: str, lo: int, hi: int) -> str:
    if hi - lo == 1:
        return f"{what} {lo}"
    return f"{'leaves' if what == 'leaf' else what + 's'} {lo} to {hi - 1}"


ACTS = {
    "answer": "picks {} and opens the sender's own version of it",
    "describe": "picks {}, shows its descriptor and opens the sender's own output of it",
    "show": "shows a lie in the published trace, and opens its own version",
    "openState": "agrees with the whole trace and opens the state after the step",
    "unfold": "picks {} and opens how the sender computes it",
    "openBody": "picks {} and opens the results of all instructions",
    "describeSlot": "picks {}, shows its descriptor and opens the sums of its leaves",
    "proveStep": "proves that {} is wrong: the contract executes the operation",
    "proveSlot": "proves that {} is wrong: its node produced another tensor",
    "proveSum": "proves that {} is wrong: the contract adds up the leaf",
    "resign": "gives up: the other side wins",
}


def lines(move: PackedMove) -> Iterator[str]:
    """The move in a sentence, and then each field by its name in docs/spec/dispute.md."""
    yield sentence(move)
    if move.sent_for:
        yield f"sent by somebody else for 0x{move.sent_for.hex()}, the side on turn"
    if move.signature:
        yield f"relayed; the side on turn signed it: 0x{move.signature.hex()}"
    yield f"frame    0x{move.frame.hex()}"
    if move.outline is not None:
        yield f"count    {move.outline.count}, lo {move.outline.lo}, hi {move.outline.hi}"
    yield from _fields("witness", move.witness)
    yield from _fields("rest", move.rest)


def sentence(move: PackedMove) -> str:
    """What the move does, and where."""
    levels = " or ".join(level.name for level in move.levels)
    picked = f"part {move.index}"
    if move.outline is not None and len(move.levels) == 1 and move.function not in PICKLESS:
        picked = part(move.outline, move.index)
    return f"{move.function} in dispute {move.dispute}{f', at {levels}' * bool(levels)}: {ACTS[move.function]}".format(
        picked
    )


def _fields(title: str, fields: Mapping[str, Value]) -> Iterator[str]:
    if fields:
        yield title
    for name, value in fields.items():
        yield from _field(name, value, "  ")


def _field(name: str, value: Value, margin: str) -> Iterator[str]:
    if not isinstance(value, tuple):
        yield f"{margin}{name}: {_text(value)}"
        return
    yield f"{margin}{name}: {len(value)}"
    for index, item in enumerate(value):
        if isinstance(item, Mapping):
            for inner, shown in item.items():
                yield from _field(inner, shown, f"{margin}  ")
        else:
            yield f"{margin}  {index:>2}  {_text(item)}"


def _text(value: object) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)
