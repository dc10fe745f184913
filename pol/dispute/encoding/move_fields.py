"""The fields of a move's calldata, in the terms of docs/spec/dispute.md#moves.

A reader takes the bytes that a position asks for. It raises `ProtocolError` if there are others, or if the facts that
are shown don't hash to the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pol.commitments.array import LEAF_SIZE
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import depth, length_of_two
from pol.commitments.program_hash import HEADER_SIZE, header_hash
from pol.dispute.agreed_facts import AtNode, AtState, AtStep, AtTrace, Facts, Replayed, Summed
from pol.dispute.disputed_claim import ProgramHeader
from pol.dispute.encoding.packed_bytes import PackedReader
from pol.dispute.one_step import DisputedTerms, execute_disputed, require_executable
from pol.dispute.openings import agreed_root, word_in_leaf
from pol.dispute.position import Level, Position, share
from pol.dispute.rules import answered, described
from pol.errors import ProtocolError
from pol.graph.node import Operand, Source
from pol.graph.step_program import Slot
from pol.graph.tensor_type import LEAF_WORDS

Value: TypeAlias = "int | str | bytes | tuple[bytes, ...] | tuple[Mapping[str, Value], ...]"
"""A number, a text, bytes, several hashes or words, or several openings."""

Fields: TypeAlias = dict[str, Value]

OPENED = {
    Level.STEPS: "state roots",
    Level.NODES: "roots of nodes",
    Level.LEAVES: "roots of leaves",
    Level.LEAF: "words",
    Level.TERMS: "accumulators",
    Level.BODY: "results",
    Level.STATE: "roots of slots",
    Level.SUM_SLOTS: "sums",
    Level.SUM_LEAVES: "sums",
}
"""Names of the parts that lie open at a level."""

SHOWN_NODE, SHOWN_LEAF = 1, 2
"""Index bytes of `show`."""
_NOTHING = bytes(32)
_STEP = AtStep(Replayed(_NOTHING, _NOTHING, _NOTHING), _NOTHING, _NOTHING, 0)


def placeholder_facts(level: Level) -> Facts:
    """Facts that a position of this level may have, for readers that need none."""
    return _STEP.before if level is Level.STEPS else _STEP


def tree_heights(top: int, bits: int) -> list[int]:
    """The heights of the positions from the top of a tree down to its leaves."""
    heights = [top]
    while (below := heights[-1] - share(heights[-1], bits)) > 0:
        heights.append(below)
    return heights


def read_witness(p: Position, index: int, reader: PackedReader) -> dict[str, Value]:
    """The witness by which a move picks a part. Raises IllegalMove: there is no such part."""
    parts = len(p.items)
    if index >= parts:
        raise ProtocolError(f"part {index} of {parts}")
    match p.level:
        case Level.BODY:
            return {"results": _words(reader.take(4 * p.count))}
        case Level.LEAF:
            return {"piece": _words(reader.take(32), "little"), "branch": reader.hashes(3)}
        case Level.TERMS:
            piece = reader.take(36)
            return {"piece": _words(piece), "branch": reader.hashes(depth(-(-parts // 8)))}
        case Level.STEPS:
            before, claimed = reader.hashes(2)
            return {"state root before": before, "claimed": claimed, "branch": reader.hashes(depth(parts))}
        case Level.SUM_SLOTS | Level.SUM_LEAVES:
            claimed = reader.take(32)
            return {"claimed": claimed, "branch": reader.hashes(depth(parts))}
        case _:
            claimed = reader.take(32)
            return {"claimed": claimed, "branch": reader.hashes(p.opened_height)}


def _answer(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    return _opened(answered(p, index), reader)


def _describe(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    header, facts, at_step = _step_facts(reader)
    roots = reader.hashes(tree_heights(depth(p.count), p.bits).index(p.height))
    _require_frame(frame, _picked(at_step, p, roots))
    branch, descriptor = reader.hashes(depth(header.nodes)), reader.sized()
    after = described(p, index, descriptor)
    shown = {"roots": roots, "branch": branch, **_node(descriptor)}
    return {**facts, **shown, **_opened(after, reader)}


def _open_state(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    opening = reader.take(32)
    header, facts, at_step = _step_facts(reader)
    _require_frame(frame, at_step.frame)
    after = Position(Level.STATE, p.turn, _STEP, height=depth(header.slots), count=header.slots, bits=p.bits)
    return {"opening": opening, **facts, **_opened(after, reader)}


def _show(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    opening = reader.take(32)
    header, facts, at_step = _step_facts(reader)
    _require_frame(frame, at_step.frame)
    branch, descriptor = reader.hashes(depth(header.nodes)), reader.sized()
    number, (root,) = reader.number(4), reader.hashes(1)
    trace_branch = reader.hashes(depth(header.nodes))
    trace = AtTrace(at_step, opening, len(trace_branch), number, root, trace_branch)
    at_node = AtNode(trace, descriptor, number)
    output = {"branch": branch, **_node(descriptor)}
    output |= {"node": number, "root": root, "trace branch": trace_branch}
    type_, level = at_node.node.type, Level.LEAVES
    if index == SHOWN_LEAF:
        output |= {"leaf": reader.number(8), "leaf hash": reader.take(32)}
        output["leaf branch"] = reader.hashes(depth(type_.leaves))
    elif index != SHOWN_NODE:
        raise ProtocolError(f"part {index} of a trace")
    if index == SHOWN_LEAF or type_.leaves == 1:
        level = Level.LEAF
    height = depth(type_.leaves) if level is Level.LEAVES else 0
    after = Position(level, p.turn, at_node, height=height, count=type_.numel, bits=p.bits)
    return {"opening": opening, **facts, **output, **_opened(after, reader)}


def _unfold(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    facts, node_frame, terms, instructions = _node_facts(reader)
    _require_frame(frame, node_frame)
    if terms > 1:
        return {**facts, **_opened(Position(Level.TERMS, p.turn, _STEP, hi=terms, bits=p.bits), reader)}
    return {**facts, **_opened(Position(Level.BODY, p.turn, _STEP, count=instructions), reader)}


def _open_body(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    facts, node_frame, _, instructions = _node_facts(reader)
    element = reader.take(8)
    _require_frame(frame, keccak256(node_frame + element))
    shown = {"element": int.from_bytes(element, "big")}
    return {**facts, **shown, **_opened(Position(Level.BODY, p.turn, _STEP, count=instructions), reader)}


def _describe_slot(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    data = reader.take(HEADER_SIZE)
    header, id_, (x, y), component = _header(data), reader.take(32), reader.hashes(2), reader.number(1)
    _require_frame(frame, Summed(id_, header_hash(data), x, y, component).frame)
    branch, descriptor = reader.hashes(depth(header.slots)), reader.sized()
    slot = Slot.decode(descriptor)
    shown: dict[str, Value] = {"header": data, "id": id_, "state X": x, "state Y": y, "component": component}
    shown |= {"branch": branch, **_slot(descriptor)}
    if slot.component != component:
        return shown
    return {**shown, **_opened(Position(Level.SUM_LEAVES, p.turn, _STEP, hi=slot.type.leaves, bits=p.bits), reader)}


def _prove_slot(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    header, facts, at_step = _step_facts(reader)
    trace = reader.take(32)
    _require_frame(frame, AtState(at_step, trace).frame)
    branch, descriptor = reader.hashes(depth(header.slots)), reader.sized()
    shown = {"trace opening": trace, "branch": branch, **_slot(descriptor), "produced": reader.take(32)}
    return {**facts, **shown, "trace branch": reader.hashes(depth(header.nodes))}


def _prove_sum(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    origin, (x, y), component = reader.take(32), reader.hashes(2), reader.take(1)
    number, descriptor = reader.take(4), reader.sized()
    before = keccak256(origin + x + y + component)
    _require_frame(frame, keccak256(before + number + keccak256(descriptor)))
    shown: dict[str, Value] = {"id and program": origin, "state X": x, "state Y": y, "component": component[0]}
    leaves = Slot.decode(descriptor).type.leaves
    openings = tuple(
        _list_opening(f"slot {int.from_bytes(number, 'big')} of state {name}", 1, depth(leaves), reader)
        for name in ("X", "Y")
    )
    return {**shown, "slot": int.from_bytes(number, "big"), **_slot(descriptor), "openings": openings}


def _prove_step(p: Position, frame: bytes, index: int, witness: Mapping[str, Value], reader: PackedReader) -> Fields:
    shown: dict[str, Value] = {}
    if reader.number(1):
        origin, constants, end = reader.hashes(3)
        shown = {"id and program": origin, "constants": constants, "end": end}
        claimed = keccak256(keccak256(origin + constants) + end)
    else:
        claimed = reader.take(32)
        shown = {"claim": claimed}
    pre, step = reader.take(32), reader.number(8)
    at_step = AtStep(_STEP.before, _NOTHING, pre, step)
    picks = tuple(_pick(at_step, reader.take(32), reader.number(1)) for _ in range(reader.number(1)))
    number, descriptor = reader.number(4), reader.sized()
    at_node = AtNode(picks[-1] if picks else _pick(at_step, _NOTHING, 0), descriptor, number)
    found = keccak256(claimed + pre + step.to_bytes(8, "big"))
    for pick in picks:
        found = keccak256(found + pick.root + bytes([pick.height]))
    found = keccak256(found + at_node.outline)
    shown |= {"state root before the step": pre, "step": step, "roots": tuple(pick.root for pick in picks)}
    shown |= {"node": number, **_node(descriptor)}
    element, term, agreed = LEAF_WORDS * p.lo + index, 0, at_node.node.init
    if p.level is not Level.LEAF:
        element = reader.number(8)
        found, shown["element"] = keccak256(found + element.to_bytes(8, "big")), element
    if p.level is Level.BODY:
        if p.count != at_node.instructions:
            raise ProtocolError(f"{p.count} results of {at_node.instructions} instructions")
        term, agreed = reader.number(8), reader.number(4)
        found = keccak256(found + term.to_bytes(8, "big") + agreed.to_bytes(4, "big"))
        shown |= {"term": term, "agreed": _hex_word(agreed)}
    _require_frame(frame, found)
    openings: list[Mapping[str, Value]] = []

    def read_leaves(operand: Operand, leaves: range) -> bytes:
        height = depth(operand.type.leaves)
        siblings = height if len(leaves) == 1 else length_of_two(leaves.start, height)
        name = f"{operand.source.name.lower()} {operand.index}"
        if operand.source is Source.NODE:
            above = agreed_root(picks, number, operand.index).height
            openings.append(_opening(name, len(leaves), siblings, above, reader))
        else:
            openings.append(_list_opening(name, len(leaves), siblings, reader))
        leaf = openings[-1]["leaf"]
        assert isinstance(leaf, bytes)
        return leaf

    terms, said = _disputed_terms(p, index, witness, at_node, element, term, agreed)
    executed = execute_disputed(require_executable(terms, step), step, said, read_leaves)
    shown["openings"] = tuple(openings)
    shown["operation"] = "a chunk of FFMA" if executed.op is None else executed.op.name
    if executed.op is not None:
        shown["operands"] = tuple(word.to_bytes(4, "big") for word in executed.operands)
    return {**shown, "claimed": _hex_word(executed.claimed), "computed": _hex_word(executed.computed)}


def _disputed_terms(
    p: Position, index: int, witness: Mapping[str, Value], at_node: AtNode, element: int, term: int, agreed: int
) -> tuple[DisputedTerms, int]:
    """The terms that the proof executes, and the word that the other side had claimed."""
    words = [int.from_bytes(word, "big") for word in _tuple(witness["results" if p.level is Level.BODY else "piece"])]
    if p.level is Level.BODY:
        return DisputedTerms(at_node, element, term, term + 1, agreed, index, tuple(words)), words[index]
    if p.level is Level.LEAF:
        return DisputedTerms(at_node, element, 0, at_node.node.terms, agreed, 0, ()), words[index % 8]
    ends, before = p.boundaries, words[index % 8]
    return DisputedTerms(at_node, element, ends[index], ends[index + 1], before, 0, ()), words[index % 8 + 1]


REST: dict[str, Callable[[Position, bytes, int, Mapping[str, Value], PackedReader], Fields]] = {
    "answer": _answer,
    "describe": _describe,
    "openState": _open_state,
    "show": _show,
    "unfold": _unfold,
    "openBody": _open_body,
    "describeSlot": _describe_slot,
    "proveStep": _prove_step,
    "proveSlot": _prove_slot,
    "proveSum": _prove_sum,
}


# --- parts of moves --------------------------------------------------------------------------------------------------


def _opened(after: Position, reader: PackedReader) -> Fields:
    """The parts that the mover opens at the next position."""
    payload = reader.take(after.expected_bytes)
    name = f"opens {OPENED[after.level]}"
    if after.level is Level.LEAF:
        return {name: _words(payload, "little")}
    size = after.item_bytes
    return {name: tuple(payload[at : at + size] for at in range(0, len(payload), size))}


def _header(data: bytes) -> ProgramHeader:
    return ProgramHeader.decode(data, header_hash(data))


def _step_facts(reader: PackedReader) -> tuple[ProgramHeader, Fields, AtStep]:
    data = reader.take(HEADER_SIZE)
    header = _header(data)
    (id_, constants, end, pre), step = reader.hashes(4), reader.number(8)
    shown: Fields = {"header": data, "id": id_, "constants": constants, "end": end}
    shown |= {"state root before the step": pre, "step": step}
    return header, shown, AtStep(Replayed(id_, header_hash(data), constants), end, pre, step)


def _node_facts(reader: PackedReader) -> tuple[Fields, bytes, int, int]:
    """Facts about a node, its frame, terms and instructions."""
    previous, outline = reader.take(32), reader.take(49)
    read = PackedReader(outline)
    descriptor, number, terms, init, instructions = read.take(32), *(read.number(size) for size in (4, 8, 4, 1))
    shown: Fields = {"frame before": previous, "descriptor hash": descriptor, "node": number, "terms": terms}
    shown |= {"init": _hex_word(init), "instructions": instructions}
    return shown, keccak256(previous + outline), terms, instructions


def _picked(at_step: AtStep, p: Position, roots: tuple[bytes, ...]) -> bytes:
    """The frame after picks from NODES with these roots, outermost first."""
    frame = at_step.frame
    for root, height in zip(roots, tree_heights(depth(p.count), p.bits), strict=False):
        frame = keccak256(frame + root + bytes([height]))
    return frame


def _pick(at_step: AtStep, root: bytes, height: int) -> AtTrace:
    """A pick with its root, as far as a proof names it."""
    return AtTrace(at_step, root, height, 0, _NOTHING, ())


def _require_frame(frame: bytes, found: bytes) -> None:
    if frame != found:
        raise ProtocolError("the facts that are shown don't hash to the frame")


def _node(descriptor: bytes) -> Fields:
    type_ = AtNode(_pick(_STEP, _NOTHING, 0), descriptor, 0).node.type
    return {"descriptor": descriptor, "output": f"{type_.dtype.name} {list(type_.shape)}"}


def _slot(descriptor: bytes) -> Fields:
    slot = Slot.decode(descriptor)
    text = f"{slot.component.name.lower()}, {slot.type.dtype.name} {list(slot.type.shape)}, from node {slot.producer}"
    return {"descriptor": descriptor, "slot holds": text}


def _opening(name: str, leaves: int, siblings: int, above: int, reader: PackedReader) -> Fields:
    leaf, branch = reader.take(LEAF_SIZE * leaves), reader.hashes(siblings)
    return {"of": name, "leaf": leaf, "leaf branch": branch, "list branch": reader.hashes(above)}


def _list_opening(name: str, leaves: int, siblings: int, reader: PackedReader) -> Fields:
    count = reader.number(4)
    return {"list count": count, **_opening(name, leaves, siblings, depth(count), reader)}


def _words(data: bytes, order: str = "big") -> tuple[bytes, ...]:
    words = tuple(data[at : at + 4] for at in range(0, len(data), 4))
    return words if order == "big" else tuple(word_in_leaf(word, 0).to_bytes(4, "big") for word in words)


def _hex_word(word: int) -> bytes:
    return word.to_bytes(4, "big")


def _tuple(value: Value) -> tuple[bytes, ...]:
    assert isinstance(value, tuple)
    return tuple(item for item in value if isinstance(item, bytes))
