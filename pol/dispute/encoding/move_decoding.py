"""Decoder of a move's calldata into the terms of docs/spec/dispute.md#moves: for users of an explorer.

Calldata names neither the level nor the height of the position; the chain stores them (`StoredPlace`). If they aren't
given, every place where such a move is legal is tried: lengths and frames exclude the wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pol.commitments.merkle import depth
from pol.dispute.encoding.move_encoding import selector
from pol.dispute.encoding.move_fields import REST, Value, placeholder_facts, read_witness, tree_heights
from pol.dispute.encoding.packed_bytes import PackedReader
from pol.dispute.position import HASH_BITS, SUMS, TREES, Level, Position, Side
from pol.errors import ProtocolError
from pol.graph.tensor_type import LEAF_WORDS

ADDRESS_BYTES, SIGNATURE_BYTES = 20, 65
LEVELS: dict[str, tuple[Level, ...]] = {
    "answer": (Level.STEPS, Level.TERMS, *TREES, *SUMS),
    "describe": (Level.NODES,),
    "openState": (Level.NODES,),
    "show": (Level.NODES,),
    "unfold": (Level.LEAF,),
    "openBody": (Level.TERMS,),
    "describeSlot": (Level.SUM_SLOTS,),
    "proveStep": (Level.LEAF, Level.TERMS, Level.BODY),
    "proveSlot": (Level.STATE,),
    "proveSum": (Level.SUM_LEAVES,),
}
"""Where each move belongs."""
PICKLESS = frozenset({"openState", "show"})
"""Moves without a witness: they pick nothing that lies open in parts."""


class StoredPlace(NamedTuple):
    """The parts of a position that the chain stores and a move doesn't repeat; the deployment fixes ``bits``."""

    level: Level
    height: int
    bits: int


@dataclass(frozen=True)
class PackedMove:
    """A move as it was sent.

    ``levels`` are the levels at which the dispute may have stood: one, or several if calldata alone can't tell.
    ``outline`` is the position that the move repeats; its facts and its open parts are placeholders. ``sent_for`` is
    the side on turn of a `help`, ``signature`` that of a `relay`; empty otherwise.
    """

    function: str
    dispute: int
    frame: bytes
    index: int
    levels: tuple[Level, ...]
    outline: Position | None
    witness: Mapping[str, Value]
    rest: Mapping[str, Value]
    sent_for: bytes = b""
    signature: bytes = b""

    def to_dict(self) -> dict[str, object]:
        """A JSON-able document; bytes are hexadecimal with 0x."""
        place = self.outline
        document: dict[str, object] = {"function": self.function, "dispute": self.dispute}
        document["levels"] = [level.name.lower() for level in self.levels]
        document |= {"frame": _plain(self.frame), "index": self.index}
        if place is not None:
            document |= {"count": place.count, "lo": place.lo, "hi": place.hi}
        document |= {"witness": _plain(self.witness), "rest": _plain(self.rest)}
        if self.sent_for:
            document["sent_for"] = _plain(self.sent_for)
        if self.signature:
            document["signature"] = _plain(self.signature)
        return document


def decode(data: bytes, place: StoredPlace | None = None, bits: int = HASH_BITS) -> PackedMove:
    """The move in a transaction's calldata.

    Args:
        data: the calldata, selector included.
        place: where the dispute stood, if it is known.
        bits: levels of a tree that one move opens, if ``place`` is not given.
    """
    if data[:4] == selector("help"):
        side, inner = data[4 : 4 + ADDRESS_BYTES], data[4 + ADDRESS_BYTES :]
        return replace(_decoded(inner, place, bits), sent_for=side)
    if data[:4] == selector("relay"):
        signature, inner = data[4 : 4 + SIGNATURE_BYTES], data[4 + SIGNATURE_BYTES :]
        return replace(_decoded(inner, place, bits), signature=signature)
    return _decoded(data, place, bits)


def _decoded(data: bytes, place: StoredPlace | None, bits: int) -> PackedMove:
    name = {selector(name): name for name in (*LEVELS, "resign")}.get(data[:4])
    if name is None:
        raise ProtocolError(f"no move of a dispute begins with 0x{data[:4].hex()}")
    reader = PackedReader(data[4:])
    dispute, frame = reader.number(4), reader.take(32)
    count, lo, hi, index = (reader.number(size) for size in (4, 8, 8, 1))
    rest = reader.rest()
    if name == "resign":
        if len(rest) != 32:
            raise ProtocolError(f"resign ends with an opening of 32 bytes, not {len(rest)}")
        return PackedMove(name, dispute, frame, index, (), None, {}, {"opening": rest})
    found: list[PackedMove] = []
    for outline in _outlines(name, count, lo, hi, place, bits):
        try:
            parsed = PackedReader(rest)
            witness = {} if name in PICKLESS else read_witness(outline, index, parsed)
            shown = REST[name](outline, frame, index, witness, parsed)
            parsed.end()
        except (ProtocolError, ValueError, TypeError, OverflowError, StopIteration):
            continue
        found.append(PackedMove(name, dispute, frame, index, (outline.level,), outline, witness, shown))
    if not found:
        raise ProtocolError(f"{name} with {len(data)} bytes fits no position: calldata was cut, or it is no move")
    first = found[0]
    if any((other.witness, other.rest) != (first.witness, first.rest) for other in found):
        first = replace(first, witness={}, rest={"witness and payload": rest})
    return replace(first, levels=tuple(dict.fromkeys(other.levels[0] for other in found)))


def _outlines(name: str, count: int, lo: int, hi: int, place: StoredPlace | None, bits: int) -> Iterator[Position]:
    """Positions with these numbers at which the move belongs; placeholders lie open."""
    places = [place] if place is not None else _places(LEVELS[name], count, bits)
    for level, height, width in places:
        is_range = level in (Level.STEPS, Level.TERMS, *SUMS)
        facts = placeholder_facts(level)
        p = Position(level, Side.ASSERTER, facts, height=height, count=count, lo=lo, hi=hi, bits=width)
        p = replace(p, agreed=bytes(p.item_bytes) if is_range else b"")
        if (
            level not in LEVELS[name]
            or is_range != (hi > lo)
            or (level in TREES and not (lo < p.list_length and lo % (1 << height) == 0))
            or (level is Level.BODY and not 0 < count < 1 << 8)
        ):
            continue
        yield replace(p, opened=bytes(p.expected_bytes))


def _places(levels: tuple[Level, ...], count: int, bits: int) -> Iterator[StoredPlace]:
    for level in levels:
        if level not in TREES:
            yield StoredPlace(level, 0, bits)
        elif count:
            leaves = -(-count // LEAF_WORDS) if level is Level.LEAVES else count
            yield from (StoredPlace(level, height, bits) for height in tree_heights(depth(leaves), bits))


def _plain(value: Value | Mapping[str, Value]) -> object:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value
