"""Evidence from a party's own execution: every level of the tree of commitments, computed on demand.

It keeps the states of the disputed segment and the outputs of one step, and hashes only what a move needs.
"""

from collections.abc import Sequence
from functools import lru_cache

from pol.arithmetic.primitives import Words
from pol.commitments.array import LEAF_SIZE
from pol.commitments.merkle import Hashes, branch, branch_of_two, levels
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import ListTag, list_root, tensor_leaves, tensor_roots
from pol.dispute.agreed_facts import AtTrace, node_of, picked_roots, step_of
from pol.dispute.openings import Opening, agreed_root
from pol.dispute.play.known_element import KnownElement
from pol.dispute.position import Position
from pol.execution.executor import Executor
from pol.execution.operand_sources import Sources
from pol.execution.reference import next_state
from pol.graph.node import Operand, Source
from pol.graph.step_program import StepProgram

HASH = 32


def subtree(leaves: Hashes, p: Position) -> bytes:
    """The roots that lie open under the disputed subtree of a tree over ``leaves``; no padding."""
    child = p.height - p.opened_height
    count = len(leaves) // HASH if isinstance(leaves, bytes) else len(leaves)
    end = min(p.lo + (1 << p.height), count)
    return levels(leaves)[child][HASH * (p.lo >> child) : HASH * -(-end >> child)]


def leaf_bytes(words: Words, index: int) -> bytes:
    """The 256 bytes of one leaf, zeros past the end of the tensor."""
    flat = words.reshape(-1)[index * 64 : index * 64 + 64]
    return flat.astype("<u4").tobytes().ljust(LEAF_SIZE, b"\0")


def open_leaves(tensors: Sequence[Words], roots: Sequence[bytes], index: int, leaves: range) -> Opening:
    """The opening of one leaf, or of two adjacent ones, of one tensor of a committed list."""
    return Opening(len(roots), *_shown(tensors[index], leaves), tuple(branch(roots, index)))


def _shown(words: Words, leaves: range) -> tuple[bytes, tuple[bytes, ...]]:
    siblings = (branch if len(leaves) == 1 else branch_of_two)(tensor_leaves(words), leaves.start)
    return b"".join(leaf_bytes(words, leaf) for leaf in leaves), tuple(siblings)


class SegmentTrace:
    """One party's execution of a segment.

    Args:
        program: the step program.
        constants: its constant tensors, as words.
        executor: runs it; the same bits on any executor.
        start: the state before ``first_step``.
        first_step: index of the segment's first step.
        steps: steps in the segment.
    """

    def __init__(
        self,
        program: StepProgram,
        constants: Sequence[Words],
        executor: Executor,
        start: Sequence[Words],
        first_step: int,
        steps: int,
    ) -> None:
        self.program = program
        self.constants = list(constants)
        self.first_step = first_step
        self.steps = steps
        self.executor = executor
        self._states = {first_step: list(start)}
        self._outputs: tuple[int, list[Words]] | None = None
        self._commitment: ProgramCommitment | None = None
        self.state_root = lru_cache(maxsize=None)(self._state_root)
        self.node_roots = lru_cache(maxsize=2)(self._node_roots)
        self.element = lru_cache(maxsize=8)(self._element)
        self.constant_roots = lru_cache(maxsize=1)(self._constant_roots)

    @property
    def commitment(self) -> ProgramCommitment:
        """The trees of the program; they are hashed once."""
        if self._commitment is None:
            self._commitment = ProgramCommitment.of(self.program)
        return self._commitment

    @property
    def most_bytes(self) -> int:
        """Bytes of all states of the segment and of all outputs of a step."""
        state = sum(slot.type.numel for slot in self.program.slots)
        return 4 * ((self.steps + 1) * state + sum(node.type.numel for node in self.program.nodes))

    def state(self, step: int) -> list[Words]:
        """The state before ``step``."""
        last = max(s for s in self._states if s <= step)
        while last < step:
            self._states[last + 1] = next_state(self.program, self.outputs(last))
            last += 1
        return self._states[step]

    def outputs(self, step: int) -> list[Words]:
        """The outputs of all nodes at ``step``."""
        if self._outputs is None or self._outputs[0] != step:
            self._outputs = (step, self._run(step))
        return self._outputs[1]

    def _run(self, step: int) -> list[Words]:
        return self.executor.run(self.state(step), step)

    def sources(self, step: int) -> Sources:
        """The sources that the nodes of ``step`` read."""
        return Sources(self.state(step), self.constants, self.outputs(step))

    def accumulators(self, step: int, node: int, element: int, terms: Sequence[int]) -> list[int]:
        """The accumulator before each of ``terms``, ascending, of an element's fold; after all K it is the result."""
        return self.element(step, node, element).accumulators(terms, self.sources(step))

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        """The results of all instructions of one application of a node's scalar program."""
        return self.element(step, node, element).results(term, accumulator, self.sources(step))

    def slot_roots(self, step: int) -> list[bytes]:
        """The roots of the slots of the state before ``step``."""
        return tensor_roots([slot.type for slot in self.program.slots], self.state(step))

    def output_leaves(self, step: int, node: int) -> bytes:
        """The joined leaf hashes of a node's output."""
        return tensor_leaves(self.outputs(step)[node])

    def open_operand(self, position: Position, operand: Operand, leaves: range) -> Opening:
        """The opening of the leaves, one or two, that an operand of the disputed node reads."""
        step, at_node = step_of(position.facts).step, node_of(position.facts)
        match operand.source:
            case Source.STATE:
                return open_leaves(self.state(step), self.slot_roots(step), operand.index, leaves)
            case Source.CONSTANT:
                return open_leaves(self.constants, self.constant_roots(), operand.index, leaves)
            case Source.NODE:
                tensor, number = self.outputs(step)[operand.index], operand.index
                pick = agreed_root(picked_roots(at_node.before), at_node.number, number)
                # Below the row everything is agreed; the row itself may be wrong after the picked child.
                siblings = branch(self.node_roots(step), number)
                if isinstance(pick, AtTrace):
                    return Opening(0, *_shown(tensor, leaves), tuple(pick.branch_of(number, siblings)))
                siblings = siblings[: pick.child_height]
                siblings += branch(pick.row, (number >> pick.child_height) % len(pick.row))
                return Opening(0, *_shown(tensor, leaves), tuple(siblings))

    def _state_root(self, step: int) -> bytes:
        return list_root(ListTag.STATE, self.slot_roots(step))

    def _node_roots(self, step: int) -> list[bytes]:
        return tensor_roots([node.type for node in self.program.nodes], self.outputs(step))

    def _element(self, step: int, node: int, element: int) -> KnownElement:
        return KnownElement(self.program.nodes[node], step, element)

    def _constant_roots(self) -> list[bytes]:
        return tensor_roots(self.program.constants, self.constants)
