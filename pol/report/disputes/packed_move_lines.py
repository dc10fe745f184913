"""A packed move in words and hexadecimal, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pol.dispute.encoding.move_decoding import PICKLESS, PackedMove
from pol.dispute.encoding.move_fields import Value
from pol.report.disputes.move_descriptions import part

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
