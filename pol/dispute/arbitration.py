"""The last move of a dispute: one primitive, one slot or one leaf, decided on what was committed to before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pol.arithmetic.primitives import ARITY, Op
from pol.arithmetic.primitives import apply as execute
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth
from pol.commitments.program import SLOT_TAG
from pol.commitments.tensor import ListTag, list_root_over_tree
from pol.dispute.header import Header
from pol.dispute.moves import Claim, Ended, IllegalMove, ProveSlot, ProveStep, ProveSum
from pol.dispute.openings import require_branch, require_opening, word_in_leaf
from pol.dispute.position import LEAF_WORDS, Position
from pol.graph.node import InputKind, Node, Operand, Source
from pol.graph.step_program import Slot
from pol.verification.distance import tensor_distance

LIST_TAG = {Source.STATE: ListTag.STATE, Source.CONSTANT: ListTag.CONSTANTS, Source.NODE: ListTag.TRACE}


@dataclass(frozen=True)
class Instance:
    """One instruction at one place: which primitive on which words, and what was claimed and what is right."""

    op: Op
    operands: tuple[int, ...]
    claimed: int
    computed: int


def coordinates(node: Node, step: int, element: int, term: int) -> tuple[int, ...]:
    """The coordinates of an element at a term of its fold (docs/spec/program.md#coordinates)."""
    out = np.unravel_index(element, node.type.shape) if node.type.shape else ()
    fold = np.unravel_index(term, node.fold) if node.fold else ()
    return (step, *(int(c) for c in out), *(int(c) for c in fold))


def address(operand: Operand, coords: tuple[int, ...], gathered: int | None) -> int | None:
    """Which word an operand reads, or None where it yields its fill."""
    a = operand.address.at(coords)
    if operand.gather is not None:
        assert gathered is not None, "a gathering operand is resolved after its index operand"
        index = gathered - (1 << 32) if gathered >> 31 else gathered
        if not 0 <= index < operand.gather.limit:
            return None
        a += operand.gather.stride * index
    if any(not 0 <= bound.affine.at(coords) < bound.limit for bound in operand.bounds):
        return None
    return a if 0 <= a < operand.type.numel else None


Reader: TypeAlias = Callable[[Operand, int], int]
"""Yields the word at an address of an operand's tensor; called in the order in which openings are listed."""


def operand_words(node: Node, position: Position, values: Sequence[int], read_word: Reader) -> tuple[int, ...]:
    """The words that the disputed instruction takes, in the order of its registers.

    Args:
        node: the disputed node.
        position: at ONE_STEP.
        values: the results of the body's instructions, of which earlier ones may be operands.
        read_word: supplies what operands read; not asked where an operand yields its fill.
    """
    program = node.body
    coords = coordinates(node, position.step, position.element, position.term)

    def read(index: int) -> int:
        operand = node.operands[index]
        gathered = read(operand.gather.operand) if operand.gather is not None else None
        a = address(operand, coords, gathered)
        return operand.fill if a is None else read_word(operand, a)

    def register(number: int) -> int:
        if number >= program.inputs + len(program.constants):
            return values[number - program.inputs - len(program.constants)]
        if number >= program.inputs:
            return program.constants[number - program.inputs]
        source = node.inputs[number]
        if source.kind is InputKind.ACCUMULATOR:
            return int.from_bytes(position.agreed, "big")
        return read(source.index) if source.kind is InputKind.OPERAND else coords[source.index] & 0xFFFFFFFF

    instruction = program.instructions[position.instruction]
    words: dict[int, int] = {}
    numbers = (instruction.a, instruction.b, instruction.c)[: ARITY[instruction.op]]
    for number in numbers:
        if number not in words:
            words[number] = register(number)
    return tuple(words[number] for number in numbers)


def execute_instruction(position: Position, move: ProveStep, claim: Claim) -> Instance:
    """Resolve the operands of the disputed instruction from the openings and execute it.

    Raises:
        IllegalMove: descriptor or values are not those of the dispute.
        WrongInclusionProof: an opening does not lead to its commitment.
    """
    if keccak256(move.descriptor) != position.descriptor:
        raise IllegalMove("this is not the descriptor of the disputed node")
    node, values, openings = Node.decode(move.descriptor), _values(position, move), iter(move.openings)

    def opened_word(operand: Operand, a: int) -> int:
        what = f"{operand.source.name.lower()} {operand.index}"
        if operand.source is Source.NODE and operand.index >= position.node:
            raise IllegalMove(f"node {position.node} reads {what}, which isn't before it: the program is invalid")
        opening = next(openings, None)
        if opening is None:
            raise IllegalMove(f"an opening of {what} is missing")
        root = {Source.STATE: position.pre, Source.CONSTANT: claim.constants, Source.NODE: position.trace}
        tag = LIST_TAG[operand.source]
        require_opening(opening, tag, root[operand.source], operand.index, operand.type, a // LEAF_WORDS, what)
        return word_in_leaf(opening.leaf, a % LEAF_WORDS)

    operands = operand_words(node, position, values, opened_word)
    if next(openings, None) is not None:
        raise IllegalMove("more openings than the instruction reads")
    op = node.body.instructions[position.instruction].op
    computed = int(execute(op, *(np.array([w], np.uint32) for w in operands))[0])
    return Instance(op, operands, values[position.instruction], computed)


def prove_step(position: Position, move: ProveStep, claim: Claim) -> Ended:
    """Execute the disputed instruction; the asserter wins iff it yields what it had claimed."""
    instance = execute_instruction(position, move, claim)
    right = instance.claimed == instance.computed
    detail = f"{instance.op.name} gives 0x{instance.computed:08x}, claimed 0x{instance.claimed:08x}"
    return Ended(right, detail)


def _values(position: Position, move: ProveStep) -> list[int]:
    if position.instructions == 1:
        if move.values:
            raise IllegalMove("a body of one instruction has no values to repeat")
        return [int.from_bytes(position.claimed[28:], "big")]
    if keccak256(move.values) != position.opening:
        raise IllegalMove("repeat exactly the values that were opened")
    return [int.from_bytes(move.values[i : i + 4], "big") for i in range(0, len(move.values), 4)]


def prove_slot(position: Position, move: ProveSlot, claim: Claim) -> Ended:
    """The asserter wins if the slot's claimed root stands in the trace, at the node that produces the slot."""
    header, q = Header.decode(move.header, claim.program), position.element
    leaf = keccak256(SLOT_TAG + move.descriptor)
    require_branch(leaf, q, move.descriptor_branch, header.slots, header.slots_tree, f"slot {q}")
    producer = Slot.decode(move.descriptor).producer
    if producer >= header.nodes or len(move.trace_branch) != depth(header.nodes):
        raise IllegalMove("the producer doesn't exist, or its branch in the trace has the wrong length")
    tree = climb(position.claimed, producer, list(move.trace_branch))
    if list_root_over_tree(ListTag.TRACE, header.nodes, tree) != position.trace:
        raise IllegalMove(f"node {producer} of the trace did not produce what slot {q} is claimed to hold")
    return Ended(True, f"slot {q} holds what node {producer} produced")


def prove_sum(position: Position, move: ProveSum) -> Ended:
    """The asserter wins iff the exact distance of the two leaves is what it had claimed."""
    if keccak256(move.descriptor) != position.descriptor:
        raise IllegalMove("this is not the slot of the disputed sum")
    slot = Slot.decode(move.descriptor)
    for opening, root, what in ((move.x, position.pre, "state X"), (move.y, position.trace, "state Y")):
        require_opening(opening, ListTag.STATE, root, position.element, slot.type, position.lo, what)
    real = min(LEAF_WORDS, slot.type.numel - LEAF_WORDS * position.lo)
    x, y = (np.frombuffer(opening.leaf, "<u4")[:real].astype(np.uint32) for opening in (move.x, move.y))
    total = tensor_distance(slot.type.dtype, x, y, slot.scale)
    won = position.claimed == total.to_bytes(32, "big")
    return Ended(won, f"the distance of the two leaves is {total}")
