"""Calldata of the moves that a dispute about a program can take, from the program alone (docs/spec/dispute.md#moves).

A size bounds that of every move of its kind from its level: subtrees are whole, parts are the longest, and a proof's
branches are those after a trace has been shown, which are the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pol.arithmetic.primitives import ARITY, Op
from pol.commitments.array import LEAF_SIZE
from pol.commitments.merkle import depth
from pol.dispute.encoding.move_encoding import reads_constants
from pol.dispute.position import CHUNK_TERMS, VALUE_BITS, Level, share
from pol.graph.node import InputKind, Node, Operand, Source
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import LEAF_WORDS

HASH, WORD = 32, 4
HEAD = 4 + 4 + HASH + 4 + 8 + 8 + 1
"""Selector, number, position and index."""
HEADER = 112
STEP = 4 * HASH + 8
"""Of a step: id, constants, end, pre, and its number."""
OUTLINE = HASH + HASH + 4 + 8 + 4 + 1
"""Of a node: the frame before it, the hash of its descriptor, number, terms, init and instructions."""


@dataclass(frozen=True)
class MoveSize:
    """A kind of move from a level, and its largest calldata."""

    level: Level
    move: str
    """As the class in `pol.dispute.moves`."""
    calldata: int
    terms: int = 1
    """Of a fold, or words of a distance, that a proof executes."""


def subtrees(count: int, bits: int) -> list[tuple[int, int]]:
    """The height of each disputed subtree of a tree over ``count`` leaves, and how much of it one move opens."""
    height, found = depth(count), list[tuple[int, int]]()
    while not found or height:
        found.append((height, share(height, bits)))
        height -= found[-1][1]
    return found


def ranges(length: int, bits: int) -> list[int]:
    """The most parts that are opened at each position of a dispute about a range, down to a part of one."""
    return [max(cut) for cut in _cuts(length, bits)]


def last_parts(length: int, bits: int) -> int:
    """The most parts that lie open where one of a single item is picked."""
    return max(parts for cut in _cuts(length, bits) for parts, n in cut.items() if n // parts <= 1)


def _cuts(length: int, bits: int) -> list[dict[int, int]]:
    """At each position the numbers of parts that ranges are cut into, with the range: parts have two lengths."""
    lengths, found = {length}, list[dict[int, int]]()
    while not found or max(lengths) > 1:
        cut = [(min(n, 1 << share(depth(n), bits)), n) for n in sorted(lengths, reverse=True)]
        found.append(dict(cut))
        lengths = {part for parts, n in cut for part in (n // parts, -(-n // parts))}
    return found


def moves_to_node(program: StepProgram, steps: int, bits: int) -> list[MoveSize]:
    """The moves from the challenge to the description of a node."""
    nodes = subtrees(len(program.nodes), bits)
    found = list[MoveSize]()
    steps_cut = ranges(steps, bits)
    for parts, after in pairwise([*steps_cut, 0]):
        # Parts of two lengths may end the dispute about steps one position apart.
        payload = HASH * max(after, _children(len(program.nodes), *nodes[0]))
        found.append(MoveSize(Level.STEPS, "Answer", HEAD + 2 * HASH + HASH * depth(parts) + payload))
    for (_, opened), below in pairwise(nodes):
        payload = HASH * _children(len(program.nodes), *below)
        found.append(MoveSize(Level.NODES, "Answer", HEAD + HASH * (1 + opened) + payload))
    return found


def moves_to_state(program: StepProgram, bits: int) -> list[MoveSize]:
    """The moves of a side that agrees with the trace and maintains the state."""
    slots = subtrees(len(program.slots), bits)
    payload = HASH * _children(len(program.slots), *slots[0])
    found = [MoveSize(Level.NODES, "OpenState", HEAD + HASH + HEADER + STEP + payload)]
    for (_, opened), below in pairwise(slots):
        payload = HASH * _children(len(program.slots), *below)
        found.append(MoveSize(Level.STATE, "Answer", HEAD + HASH * (1 + opened) + payload))
    descriptor = max(len(slot.encode()) for slot in program.slots)
    siblings = depth(len(program.slots)) + depth(len(program.nodes)) + slots[-1][1]
    facts = HEADER + STEP + HASH + 2 + descriptor + 2 * HASH
    return [*found, MoveSize(Level.STATE, "ProveSlot", HEAD + facts + HASH * siblings)]


def moves_of_sum(program: StepProgram, bits: int) -> list[MoveSize]:
    """The moves of a dispute about a distance."""
    slots, found = len(program.slots), list[MoveSize]()
    largest = max(program.slots, key=lambda slot: slot.type.leaves)
    slots_cut = ranges(slots, bits)
    leaves_cut = ranges(largest.type.leaves, bits)
    for parts, after in pairwise(slots_cut):
        found.append(MoveSize(Level.SUM_SLOTS, "Answer", HEAD + HASH * (1 + depth(parts) + after)))
    descriptor = 2 + max(len(slot.encode()) for slot in program.slots)
    picked = HEAD + HASH * (1 + depth(last_parts(slots, bits)))
    shown = HEADER + 3 * HASH + 1 + HASH * depth(slots) + descriptor + HASH * leaves_cut[0]
    found.append(MoveSize(Level.SUM_SLOTS, "DescribeSlot", picked + shown))
    for parts, after in pairwise(leaves_cut):
        found.append(MoveSize(Level.SUM_LEAVES, "Answer", HEAD + HASH * (1 + depth(parts) + after)))
    opening = 4 + LEAF_SIZE + HASH * (depth(largest.type.leaves) + depth(slots))
    picked = HEAD + HASH * (1 + depth(last_parts(largest.type.leaves, bits)))
    proof = picked + 3 * HASH + 1 + 4 + descriptor + 2 * opening
    return [*found, MoveSize(Level.SUM_LEAVES, "ProveSum", proof, min(LEAF_WORDS, largest.type.numel))]


def moves_in_node(program: StepProgram, number: int, bits: int) -> list[MoveSize]:
    """The moves from the description of a node to the proof, along the longest way."""
    node, nodes = program.nodes[number], subtrees(len(program.nodes), bits)
    leaves, instructions = node.type.leaves, len(node.body.instructions)
    trees, descriptor = subtrees(leaves, bits), len(node.encode())
    opened = LEAF_SIZE if leaves == 1 else HASH * _children(leaves, *trees[0])
    shown = HEADER + STEP + HASH * (len(nodes) - 1 + depth(len(program.nodes))) + 2 + descriptor
    found = [MoveSize(Level.NODES, "Describe", HEAD + HASH * (1 + nodes[-1][1]) + shown + opened)]
    if leaves > 1:
        for (_, height), below in pairwise([*trees, (0, 0)]):
            payload = LEAF_SIZE if below == (0, 0) else HASH * _children(leaves, *below)
            found.append(MoveSize(Level.LEAVES, "Answer", HEAD + HASH * (1 + height) + payload))
    body = WORD * instructions
    if node.terms > 1:
        # A chunk is a proof of its own; the side that can't prove it may go on down to one term.
        cut = ranges(node.terms, VALUE_BITS)
        found.append(MoveSize(Level.LEAF, "Unfold", HEAD + HASH * 4 + OUTLINE + WORD * cut[0]))
        for parts, after in pairwise(cut):
            found.append(MoveSize(Level.TERMS, "Answer", HEAD + _witness_of_terms(parts) + WORD * after))
        if instructions > 1:
            facts = _witness_of_terms(last_parts(node.terms, VALUE_BITS)) + OUTLINE + 8
            found.append(MoveSize(Level.TERMS, "OpenBody", HEAD + facts + body))
    elif instructions > 1:
        found.append(MoveSize(Level.LEAF, "Unfold", HEAD + HASH * 4 + OUTLINE + body))
    return [*found, dearest_proof(program, number, bits)]


def dearest_proof(program: StepProgram, number: int, bits: int) -> MoveSize:
    """The proof about a node that shows most: of one instruction, or of a chunk."""
    return max(_proofs(program, number, bits), key=lambda proof: (proof.calldata, proof.terms))


def show_size(program: StepProgram, number: int, bits: int) -> MoveSize:
    """The move that shows a node of a published trace, or one of its leaves."""
    node, nodes = program.nodes[number], depth(len(program.nodes))
    leaves = node.type.leaves
    facts = HASH + HEADER + STEP + HASH * nodes + 2 + len(node.encode()) + 4 + HASH * (1 + nodes)
    leaf = 8 + HASH * (1 + depth(leaves)) + LEAF_SIZE
    children = HASH * _children(leaves, *subtrees(leaves, bits)[0])
    return MoveSize(Level.NODES, "Show", HEAD + facts + max(leaf, children))


def chunks(node: Node) -> bool:
    """Whether several terms of a node's fold can be one chunk: a chain of fma over adjacent words."""
    if node.terms == 1 or node.fold[-1] == 1 or len(node.body.instructions) != 1:
        return False
    instruction = node.body.instructions[0]
    if instruction.op is not Op.FFMA or any(register >= node.body.inputs for register in instruction.operands):
        return False
    kinds = [node.inputs[register].kind for register in instruction.operands]
    if kinds != [InputKind.OPERAND, InputKind.OPERAND, InputKind.ACCUMULATOR]:
        return False
    return all(operand.gather is None and operand.address.strides[-1] == 1 for operand in _chained(node))


def _chained(node: Node) -> list[Operand]:
    """The operands of a chain of fma: two, or the one that is squared."""
    registers = dict.fromkeys(node.body.instructions[0].operands[:2])
    return [node.operands[node.inputs[register].index] for register in registers]


def _proofs(program: StepProgram, number: int, bits: int) -> Iterator[MoveSize]:
    """The proofs about a node: of each instruction, and of a chunk."""
    node = program.nodes[number]
    picks = len(subtrees(len(program.nodes), bits))
    facts = 1 + (3 * HASH if reads_constants(node) else HASH) + HASH + 8 + 1 + (HASH + 1) * picks
    facts += 4 + 2 + len(node.encode())
    instructions = node.body.instructions
    if chunks(node):
        at_once = min(node.terms, CHUNK_TERMS)
        shown = sum(_opening(program, operand, 2) for operand in _chained(node))
        if node.terms <= CHUNK_TERMS:
            yield MoveSize(Level.LEAF, "ProveStep", HEAD + 4 * HASH + facts + shown, at_once)
        yield MoveSize(Level.TERMS, "ProveStep", HEAD + _most_witness(node) + facts + 8 + shown, at_once)
    level = Level.BODY if len(instructions) > 1 else Level.TERMS if node.terms > 1 else Level.LEAF
    witness = {
        Level.BODY: WORD * len(instructions) + 8 + 12,
        Level.TERMS: _most_witness(node) + 8,
        Level.LEAF: 4 * HASH,
    }[level]
    for instruction in instructions:
        registers = set(instruction.operands[: ARITY[instruction.op]])
        shown = sum(_read(program, node, register) for register in registers)
        yield MoveSize(level, "ProveStep", HEAD + witness + facts + shown)


def _read(program: StepProgram, node: Node, register: int) -> int:
    """The openings that a register takes: none, one, or two where it gathers."""
    if register >= node.body.inputs or node.inputs[register].kind is not InputKind.OPERAND:
        return 0
    operand = node.operands[node.inputs[register].index]
    gathered = 0 if operand.gather is None else _opening(program, node.operands[operand.gather.operand], 1)
    return gathered + _opening(program, operand, 1)


def _opening(program: StepProgram, operand: Operand, leaves: int) -> int:
    """One opening of so many adjacent leaves of an operand, if it has them."""
    lists = {Source.STATE: len(program.slots), Source.CONSTANT: len(program.constants)}
    count = lists.get(operand.source)
    listed = HASH * depth(len(program.nodes)) if count is None else 4 + HASH * depth(count)
    height = depth(operand.type.leaves)
    if leaves == 1 or height == 0:
        return LEAF_SIZE + HASH * height + listed
    return 2 * LEAF_SIZE + HASH * 2 * (height - 1) + listed


def _most_witness(node: Node) -> int:
    cut = ranges(node.terms, VALUE_BITS)
    return max(_witness_of_terms(parts) for parts in cut)


def _witness_of_terms(parts: int) -> int:
    return 36 + HASH * depth(-(-parts // 8))


def _children(count: int, height: int, opened: int) -> int:
    """The children that are opened of a subtree at the left edge: the most."""
    return min(1 << opened, -(-count // (1 << (height - opened))))


TRANSACTION = 21_000
CALLDATA = 16
"""A byte that isn't zero."""
FLOOR = 40
"""Least for a byte of calldata that isn't zero (EIP-7623)."""
BYTE = 12
"""To copy, hash and log a byte of calldata, and to hash the padding of a tree."""
TERM = 820
"""To execute a fused multiply-add of a chunk, or to add a squared difference."""
EXECUTION: Mapping[str, int] = {
    "Answer": 20_000,
    "Describe": 22_000,
    "OpenState": 20_000,
    "Show": 24_000,
    "Unfold": 19_000,
    "OpenBody": 20_000,
    "DescribeSlot": 24_000,
    "ProveStep": 45_000,
    "ProveSlot": 45_000,
    "ProveSum": 26_000,
}
"""Whatever a move's calldata: two words of storage, the rules, one instruction, the market's call at the end."""
BLOCK_GAS = 1 << 24
"""The most gas of a transaction (EIP-7825)."""


def gas_of(move: MoveSize) -> int:
    """The most gas of a transaction with this move."""
    executed = EXECUTION[move.move] + BYTE * move.calldata + (TERM * move.terms if move.terms > 1 else 0)
    return TRANSACTION + max(CALLDATA * move.calldata + executed, FLOOR * move.calldata)
