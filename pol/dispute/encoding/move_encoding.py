"""The calldata of a move (docs/spec/dispute.md#moves): fixed offsets, no optional parts."""

from __future__ import annotations

from pol.commitments.keccak import keccak256
from pol.dispute.agreed_facts import (
    AtNode,
    AtSlot,
    AtState,
    AtStep,
    AtSubtree,
    AtTerm,
    Summed,
    node_of,
    picked_roots,
    step_of,
)
from pol.dispute.moves import (
    Answer,
    Describe,
    DescribeSlot,
    Move,
    OpenBody,
    OpenState,
    ProveSlot,
    ProveStep,
    ProveSum,
    Show,
    Unfold,
)
from pol.dispute.openings import Opening, ShownLeaf
from pol.dispute.position import Level, Position, packed_position
from pol.graph.node import InputKind, Node, Operand, Source

FUNCTIONS: dict[type[object], str] = {
    Answer: "answer",
    Describe: "describe",
    OpenState: "openState",
    Show: "show",
    Unfold: "unfold",
    OpenBody: "openBody",
    DescribeSlot: "describeSlot",
    ProveStep: "proveStep",
    ProveSlot: "proveSlot",
    ProveSum: "proveSum",
}
"""The contract's function for each move."""


def selector(function: str) -> bytes:
    """The first four bytes of a call of a function that declares no arguments."""
    return keccak256(f"{function}()".encode())[:4]


def encode(number: int, position: Position, move: Move) -> bytes:
    """The calldata of a move in dispute ``number``."""
    index = 0 if isinstance(move, OpenState) else move.index
    witness = b"" if isinstance(move, OpenState | Show) else position.witness(index)
    start = selector(FUNCTIONS[type(move)]) + number.to_bytes(4, "big") + packed_position(position)
    return start + bytes([index]) + witness + _rest(position, move)


def _rest(p: Position, move: Move) -> bytes:
    match move:
        case Answer(_, payload):
            return payload
        case Describe(_, header, branch, descriptor, payload):
            assert isinstance(p.facts, AtStep | AtSubtree)
            roots = b"".join(pick.root for pick in picked_roots(p.facts))
            shown = b"".join(branch) + _sized(descriptor) + payload
            return header + _step(step_of(p.facts)) + roots + shown
        case OpenState(header, payload):
            return p.opening + header + _step(step_of(p.facts)) + payload
        case Show(node, header, root, trace_branch, branch, descriptor, leaf, payload):
            facts = p.opening + header + _step(step_of(p.facts))
            found = node.to_bytes(4, "big") + root + b"".join(trace_branch) + b"".join(_leaf(each) for each in leaf)
            return facts + b"".join(branch) + _sized(descriptor) + found + payload
        case Unfold(_, payload):
            at_node = node_of(p.facts)
            return at_node.before.frame + at_node.outline + payload
        case OpenBody(_, payload):
            at_node = node_of(p.facts)
            assert not isinstance(p.facts, AtNode | AtTerm)
            element: int = p.facts.element  # type: ignore[union-attr]  # `node_of` has refused all other facts
            return at_node.before.frame + at_node.outline + element.to_bytes(8, "big") + payload
        case DescribeSlot(_, header, branch, descriptor, payload):
            assert isinstance(p.facts, Summed)
            return header + p.facts.id + _sum(p.facts) + b"".join(branch) + _sized(descriptor) + payload
        case ProveStep(_, openings):
            return _proved_step(p, openings)
        case ProveSlot(_, header, branch, descriptor, produced, trace_branch):
            assert isinstance(p.facts, AtState)
            facts = header + _step(p.facts.before) + p.facts.trace
            return facts + b"".join(branch) + _sized(descriptor) + produced + b"".join(trace_branch)
        case ProveSum(_, x, y):
            assert isinstance(p.facts, AtSlot)
            slot = p.facts.slot.to_bytes(4, "big") + _sized(p.facts.descriptor)
            return p.facts.before.origin + _sum(p.facts.before) + slot + _opening(x) + _opening(y)


def _proved_step(p: Position, openings: tuple[Opening, ...]) -> bytes:
    at_step, at_node = step_of(p.facts), node_of(p.facts)
    first = at_step.before
    if reads_constants(at_node.node):
        facts = b"\1" + first.origin + first.constants + at_step.end
    else:
        facts = b"\0" + at_step.claimed
    picks = picked_roots(at_node.before)
    facts += at_step.pre + at_step.step.to_bytes(8, "big") + bytes([len(picks)])
    facts += b"".join(pick.root + bytes([pick.height]) for pick in picks)
    facts += at_node.number.to_bytes(4, "big") + _sized(at_node.descriptor)
    if p.level is not Level.LEAF:
        at_element = p.facts.before if isinstance(p.facts, AtTerm) else p.facts
        element: int = at_element.element  # type: ignore[union-attr]  # the facts below LEAF are about an element
        facts += element.to_bytes(8, "big")
    if isinstance(p.facts, AtTerm):
        facts += p.facts.term.to_bytes(8, "big") + p.facts.agreed.to_bytes(4, "big")
    return facts + b"".join(_opening(opening) for opening in openings)


def reads_constants(node: Node) -> bool:
    """Whether some input of the node's body comes from the constants, be it as an index."""
    operands = node.operands
    found: list[Operand] = []
    for source in node.inputs:
        if source.kind is InputKind.OPERAND:
            operand = operands[source.index]
            found += [operand] if operand.gather is None else [operand, operands[operand.gather.operand]]
    return any(operand.source is Source.CONSTANT for operand in found)


def _step(facts: AtStep) -> bytes:
    first = facts.before
    return first.id + first.constants + facts.end + facts.pre + facts.step.to_bytes(8, "big")


def _sum(facts: Summed) -> bytes:
    return facts.x + facts.y + facts.component.to_bytes(1, "big")


def _leaf(leaf: ShownLeaf) -> bytes:
    return leaf.number.to_bytes(8, "big") + leaf.hash + b"".join(leaf.branch)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _opening(opening: Opening) -> bytes:
    count = opening.list_count.to_bytes(4, "big") if opening.list_count else b""
    return count + opening.leaf + b"".join(opening.leaf_branch) + b"".join(opening.list_branch)
