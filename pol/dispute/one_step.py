"""The last move of a dispute: the chain executes one primitive, a chunk of fma, one slot or one leaf."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pol.arithmetic.primitives import ARITY, Op
from pol.arithmetic.primitives import apply as execute
from pol.claims.distance import tensor_distance
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth
from pol.commitments.program_hash import SLOT_TAG
from pol.commitments.tensor import ListTag
from pol.dispute.agreed_facts import AtElement, AtNode, AtSlot, AtState, AtTerm, Pick, node_of, picked_roots, step_of
from pol.dispute.disputed_claim import ProgramHeader
from pol.dispute.moves import DisputeEnded, IllegalMove, ProveSlot, ProveStep, ProveSum, Upheld
from pol.dispute.openings import Opening, require_branch, require_node_opening, require_opening, word_in_leaf
from pol.dispute.position import CHUNK_TERMS, Level, Position
from pol.graph.node import InputKind, Node, Operand, Source
from pol.graph.step_program import Slot
from pol.graph.tensor_type import LEAF_WORDS


@dataclass(frozen=True)
class ExecutedOperation:
    """One instruction, or a chunk of fma (``op`` None), with its operands, the claimed and the right result."""

    op: Op | None
    operands: tuple[int, ...]
    claimed: int
    computed: int


@dataclass(frozen=True)
class DisputedTerms:
    """The instruction, or the terms, of one element of one node that a proof of a step executes."""

    facts: AtNode
    element: int
    begin: int
    end: int
    agreed: int
    instruction: int
    values: tuple[int, ...]

    @property
    def is_chunk(self) -> bool:
        """Whether more than one term is executed."""
        return self.end - self.begin > 1


def disputed(position: Position, index: int) -> DisputedTerms:
    """The terms that remain to be executed after the pick of part ``index``.

    Raises:
        IllegalMove: more than one proof executes: answer, unfold or open the body first.
    """
    return require_executable(_left_over(position, index), step_of(position.facts).step)


def _left_over(position: Position, index: int) -> DisputedTerms:
    facts = node_of(position.facts)
    node = facts.node
    if position.level is Level.BODY:
        assert isinstance(position.facts, AtTerm)
        place, values = position.facts, tuple(int.from_bytes(item, "big") for item in position.items)
        return DisputedTerms(facts, place.before.element, place.term, place.term + 1, place.agreed, index, values)
    if position.level is Level.LEAF:
        return DisputedTerms(facts, LEAF_WORDS * position.lo + index, 0, node.terms, node.init, 0, ())
    assert isinstance(position.facts, AtElement)
    ends = position.boundaries
    agreed = int.from_bytes([position.agreed, *position.items][index], "big")
    return DisputedTerms(facts, position.facts.element, ends[index], ends[index + 1], agreed, 0, ())


def require_executable(found: DisputedTerms, step: int) -> DisputedTerms:
    """The same terms, if one proof executes them.

    Raises:
        IllegalMove: it doesn't: answer, unfold or open the body first.
    """
    if not found.values and found.facts.instructions > 1:
        raise IllegalMove("the body has more than one instruction: unfold it, or open the body")
    if found.is_chunk and (found.end - found.begin > CHUNK_TERMS or chunk_addresses(found, step) is None):
        raise IllegalMove("these terms cannot be executed at once: narrow them down to one")
    return found


def chunk_addresses(d: DisputedTerms, step: int) -> tuple[tuple[Operand, int], tuple[Operand, int]] | None:
    """The two operands of a chain of fma and where their runs begin; None if the terms are no such chain."""
    node = d.facts.node
    body = node.body
    instruction = body.instructions[0]
    if instruction.op is not Op.FFMA or any(register >= body.inputs for register in instruction.operands):
        return None
    a, b, c = (node.inputs[register] for register in instruction.operands)
    if (a.kind, b.kind, c.kind) != (InputKind.OPERAND, InputKind.OPERAND, InputKind.ACCUMULATOR):
        return None
    first, last = (coordinates(node, step, d.element, term) for term in (d.begin, d.end - 1))
    if first[:-1] != last[:-1]:
        return None
    runs = []
    for operand in (node.operands[a.index], node.operands[b.index]):
        begin, end = address(operand, first, None), address(operand, last, None)
        if operand.gather is not None or begin is None or end is None or end - begin != d.end - 1 - d.begin:
            return None
        runs.append((operand, begin))
    return runs[0], runs[1]


def coordinates(node: Node, step: int, element: int, term: int) -> tuple[int, ...]:
    """The coordinates of an element at a term of its fold (docs/spec/program.md#coordinates)."""
    out = np.unravel_index(element, node.type.shape) if node.type.shape else ()
    fold = np.unravel_index(term, node.fold) if node.fold else ()
    return (step, *(int(c) for c in out), *(int(c) for c in fold))


def address(operand: Operand, coords: tuple[int, ...], gathered: int | None) -> int | None:
    """The word that an operand reads, or None where it yields its fill."""
    a = operand.address.at(coords)
    if operand.gather is not None:
        if gathered is None:
            return None
        index = gathered - (1 << 32) if gathered >> 31 else gathered
        if not 0 <= index < operand.gather.limit:
            return None
        a += operand.gather.stride * index
    if any(not 0 <= bound.affine.at(coords) < bound.limit for bound in operand.bounds):
        return None
    return a if 0 <= a < operand.type.numel else None


LeafReader: TypeAlias = Callable[[Operand, range], bytes]
"""Yields the bytes of one leaf of an operand's tensor, or of two adjacent ones; called in the order of the openings."""


def operand_words(d: DisputedTerms, step: int, read_leaves: LeafReader) -> tuple[int, ...]:
    """The words that the disputed instruction takes, in the order of its registers.

    Args:
        d: one instruction of one term.
        step: the disputed step.
        read_leaves: supplies what operands read; not asked where an operand yields its fill.
    """
    node = d.facts.node
    program = node.body
    coords = coordinates(node, step, d.element, d.begin)

    def read(index: int) -> int:
        operand = node.operands[index]
        gathered = read(operand.gather.operand) if operand.gather is not None else None
        a = address(operand, coords, gathered)
        if a is None:
            return operand.fill
        leaf = a // LEAF_WORDS
        return word_in_leaf(read_leaves(operand, range(leaf, leaf + 1)), a % LEAF_WORDS)

    def register(number: int) -> int:
        if number >= program.inputs + len(program.constants):
            return d.values[number - program.inputs - len(program.constants)]
        if number >= program.inputs:
            return program.constants[number - program.inputs]
        source = node.inputs[number]
        if source.kind is InputKind.ACCUMULATOR:
            return d.agreed
        return read(source.index) if source.kind is InputKind.OPERAND else coords[source.index] & 0xFFFFFFFF

    instruction = program.instructions[d.instruction]
    words: dict[int, int] = {}
    numbers = (instruction.a, instruction.b, instruction.c)[: ARITY[instruction.op]]
    for number in numbers:
        if number not in words:
            words[number] = register(number)
    return tuple(words[number] for number in numbers)


def chunk_words(d: DisputedTerms, step: int, read_leaves: LeafReader) -> tuple[list[int], list[int]]:
    """The words of both operands of a chunk, term by term."""
    runs = chunk_addresses(d, step)
    assert runs is not None, "checked when the position was narrowed down"
    instruction = d.facts.node.body.instructions[0]
    is_square, found = instruction.a == instruction.b, []
    for operand, begin in runs:
        end = begin + d.end - d.begin
        leaves = range(begin // LEAF_WORDS, (end - 1) // LEAF_WORDS + 1)
        data = read_leaves(operand, leaves)
        first = begin - LEAF_WORDS * leaves.start
        found.append([word_in_leaf(data, first + i) for i in range(d.end - d.begin)])
        if is_square:
            return found[0], found[0]
    return found[0], found[1]


def execute_last_operation(
    position: Position, index: int, claimed: bytes, read_leaves: LeafReader
) -> ExecutedOperation:
    """Execute the last disputed operation, on leaves that are supplied."""
    step = step_of(position.facts).step
    return execute_disputed(disputed(position, index), step, int.from_bytes(claimed, "big"), read_leaves)


def execute_disputed(d: DisputedTerms, step: int, claimed: int, read_leaves: LeafReader) -> ExecutedOperation:
    """Execute the disputed instruction, or chunk of fma, of a step."""
    if d.is_chunk:
        computed = np.array([d.agreed], np.uint32)
        for a, b in zip(*chunk_words(d, step, read_leaves), strict=True):
            computed = execute(Op.FFMA, np.array([a], np.uint32), np.array([b], np.uint32), computed)
        return ExecutedOperation(None, (), claimed, int(computed[0]))
    operands = operand_words(d, step, read_leaves)
    op = d.facts.node.body.instructions[d.instruction].op
    return ExecutedOperation(op, operands, claimed, int(execute(op, *(np.array([w], np.uint32) for w in operands))[0]))


def prove_step(position: Position, index: int, claimed: bytes, move: ProveStep) -> DisputeEnded:
    """Resolve the operands from the openings and execute; the mover wins iff something else comes out.

    Raises:
        IllegalMove: more is disputed than a proof executes, or openings are missing or left over.
        WrongInclusionProof: an opening does not lead to what is agreed.
        Upheld: the claimed value is right.
    """
    found = executed(position, index, claimed, move)
    name = "the chunk" if found.op is None else found.op.name
    return _decided(
        position, found.claimed, found.computed, f"{name} gives 0x{found.computed:08x}, claimed 0x{found.claimed:08x}"
    )


def executed(position: Position, index: int, claimed: bytes, move: ProveStep) -> ExecutedOperation:
    """The operation that a proof executes, on the words that it shows.

    Raises:
        IllegalMove: more is disputed than a proof executes, or openings are missing or left over.
        WrongInclusionProof: an opening does not lead to what is agreed.
    """
    openings = iter(move.openings)
    found = execute_last_operation(position, index, claimed, _reader(position, openings))
    if next(openings, None) is not None:
        raise IllegalMove("more openings than are read")
    return found


def _reader(position: Position, openings: Iterator[Opening]) -> LeafReader:
    at_step, at_node = step_of(position.facts), node_of(position.facts)
    picks: tuple[Pick, ...] = picked_roots(at_node.before)

    def read_leaves(operand: Operand, leaves: range) -> bytes:
        what = f"{operand.source.name.lower()} {operand.index}"
        opening = next(openings, None)
        if opening is None:
            raise IllegalMove(f"an opening of {what} is missing")
        match operand.source:
            case Source.NODE:
                require_node_opening(opening, picks, at_node.number, operand.index, operand.type, leaves)
            case Source.STATE:
                require_opening(opening, ListTag.STATE, at_step.pre, operand.index, operand.type, leaves, what)
            case Source.CONSTANT:
                root = at_step.before.constants
                require_opening(opening, ListTag.CONSTANTS, root, operand.index, operand.type, leaves, what)
        return opening.leaf

    return read_leaves


def prove_slot(position: Position, index: int, claimed: bytes, move: ProveSlot) -> DisputeEnded:
    """The mover wins if the node that produces the slot yielded another tensor."""
    facts, q = position.facts, position.lo + index
    assert isinstance(facts, AtState)
    header = ProgramHeader.decode(move.header, facts.before.before.program)
    leaf = keccak256(SLOT_TAG + move.descriptor)
    require_branch(leaf, q, move.branch, header.slots, header.slots_tree, f"slot {q}")
    producer = Slot.decode(move.descriptor).producer
    if producer >= header.nodes or len(move.trace_branch) != depth(header.nodes):
        raise IllegalMove("the producer doesn't exist, or its branch in the trace has the wrong length")
    if climb(move.produced, producer, list(move.trace_branch)) != facts.trace:
        raise IllegalMove(f"node {producer} of the trace did not produce this")
    return _decided(position, claimed, move.produced, f"slot {q} does not hold what node {producer} produced")


def prove_sum(position: Position, index: int, claimed: bytes, move: ProveSum) -> DisputeEnded:
    """The mover wins if the exact distance of the two leaves is another one."""
    facts = position.facts
    assert isinstance(facts, AtSlot)
    slot, ends = Slot.decode(facts.descriptor), position.boundaries
    if ends[index + 1] - ends[index] > 1:
        raise IllegalMove("more than one leaf is disputed: answer")
    leaves = range(ends[index], ends[index + 1])
    for opening, root, what in ((move.x, facts.before.x, "state X"), (move.y, facts.before.y, "state Y")):
        require_opening(opening, ListTag.STATE, root, facts.slot, slot.type, leaves, what)
    real = min(LEAF_WORDS, slot.type.numel - LEAF_WORDS * ends[index])
    x, y = (np.frombuffer(opening.leaf, "<u4")[:real].astype(np.uint32) for opening in (move.x, move.y))
    total = tensor_distance(slot.type.dtype, x, y, slot.scale)
    return _decided(position, int.from_bytes(claimed, "big"), total, f"the distance of the two leaves is {total}")


def _decided(position: Position, claimed: object, right: object, detail: str) -> DisputeEnded:
    if claimed == right:
        raise Upheld(f"{detail}: this is what the other side had said, so the proof refutes nothing")
    return DisputeEnded(position.turn, detail)
