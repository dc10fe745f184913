"""Evidence from a party's own execution: every level of the tree of commitments, computed on demand.

It keeps few states of the disputed segment, and of one step the output of one node with what that reads. All others are
computed again where a move needs them.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar
from weakref import ref

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.array import LEAF_SIZE
from pol.commitments.merkle import Hashes, branch, branch_of_two, levels
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import tensor_leaves, tensor_root, tensor_roots
from pol.dispute.agreed_facts import AtTrace, node_of, picked_roots, step_of
from pol.dispute.dispute_needs import KEPT_BYTES, node_bytes, read_with
from pol.dispute.openings import Opening, agreed_root
from pol.dispute.play.segment_states import Journal, Load, SegmentStates
from pol.dispute.position import Position
from pol.execution.cpu import CpuElement
from pol.execution.executor import Executor, Seen, look_at_nothing
from pol.execution.operand_sources import Sources
from pol.graph.node import Node, Operand, Source
from pol.graph.step_program import StepProgram

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The last ``most`` values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value with this key, from ``make`` if it isn't kept."""
        if key not in self._values:
            self._values[key] = make()
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


class KnownElement:
    """The accumulators of one element's fold that were asked for, and the results of its terms.

    The first boundaries take one pass over the fold, later ones only the part behind the nearest that is known. So all
    moves about a fold take little longer than its replay. A few words are kept, whatever the fold's length.
    """

    def __init__(self, node: Node, step: int, number: int) -> None:
        self._element = CpuElement(node, number)
        self._step = step
        self._known = {0: node.init}

    def accumulators(self, terms: Sequence[int], sources: Sources) -> list[int]:
        """The accumulator before each of ``terms``; that before K terms is the element."""
        passes: dict[int, list[int]] = {}
        for term in sorted(set(terms) - self._known.keys()):
            nearest = max((known for known in self._known if known < term), default=0)
            passes.setdefault(nearest, []).append(term)
        for begin, ends in passes.items():
            words = self._element.accumulators(self._step, sources, ends, begin, self._known[begin])
            self._known.update(zip(ends, words, strict=True))
        return [self._known[term] for term in terms]

    def results(self, term: int, accumulator: int, sources: Sources) -> list[int]:
        """The results of all instructions at one term, given the accumulator before it."""
        return self._element.results(self._step, sources, term, accumulator)


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
        start: the state before ``first_step``; None if ``load`` gives it where it is needed.
        first_step: index of the segment's first step.
        steps: steps in the segment.
        kept_bytes: of states besides the few that are needed.
        load: gives ``start`` again, which then doesn't stay in memory.
        journal: outlives the process.
    """

    def __init__(
        self,
        program: StepProgram,
        constants: Sequence[Words],
        executor: Executor,
        start: Sequence[Words] | None,
        first_step: int,
        steps: int,
        kept_bytes: int = KEPT_BYTES,
        load: Load | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.program = program
        self.constants = list(constants)
        self.first_step = first_step
        self.steps = steps
        self.executor = executor
        self._journal = journal
        own = ref(self)  # a circle would keep a dropped execution in memory until somebody looks for circles

        def advance(state: Sequence[Words], step: int) -> list[Words]:
            trace = own()
            assert trace is not None, "its states are asked for through an execution"
            return trace._advance(state, step)

        self._states = SegmentStates(program, advance, start, first_step, steps, kept_bytes, load, journal)
        self._outputs: tuple[int, dict[int, Words]] = (first_step, {})
        self._commitment: ProgramCommitment | None = None
        self._roots_of_slots = Recent[int, list[bytes]](4)
        self._roots_of_nodes = Recent[int, list[bytes]](2)
        self._roots_of_constants = Recent[int, list[bytes]](1)
        self._elements = Recent[tuple[int, int, int], KnownElement](8)

    @property
    def commitment(self) -> ProgramCommitment:
        """The trees of the program; they are hashed once."""
        if self._commitment is None:
            self._commitment = ProgramCommitment.of(self.program)
        return self._commitment

    @property
    def most_bytes(self) -> int:
        """Bytes of states in memory, and of the largest node's operands and output."""
        return self._states.most_bytes + max(node_bytes(self.program, n) for n in range(len(self.program.nodes)))

    @property
    def is_journaled(self) -> bool:
        """Whether a journal remembers what this execution knows, and the state that a dispute has come down to."""
        return self._states.are_journaled

    def state(self, step: int) -> list[Words]:
        """The state before ``step``."""
        return self._states.state(step)

    def hold(self, step: int) -> list[Words]:
        """As `state`, of one that a dispute has come down to: the journal holds it."""
        return self._states.hold(step)

    def output(self, step: int, node: int) -> Words:
        """The output of a node at ``step``."""
        at, held = self._outputs
        return held[node] if at == step and node in held else self._around(step, node)[node]

    def sources(self, step: int, node: int) -> Sources:
        """The sources that a node of ``step`` reads."""
        held, blank = self._around(step, node), np.empty(0, np.uint32)
        outputs = [held.get(number, blank) for number in range(len(self.program.nodes))]
        return Sources(self.state(step), self.constants, outputs)

    def _around(self, step: int, node: int) -> Mapping[int, Words]:
        """The output of a node and those that it reads. They stay in memory until another node is asked for."""
        wanted = read_with(self.program, node)
        if self._outputs[0] != step or not wanted <= self._outputs[1].keys():
            found = dict[int, Words]()

            def see(number: int, output: Words) -> None:
                if number in wanted:
                    found[number] = output.copy()

            self._outputs = (step, {})
            self._watch(self._states.hold(step), step, see)
            self._outputs = (step, found)
        return self._outputs[1]

    def _watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """Execute a step, and look at all outputs. Liars override it."""
        return self.executor.watch(state, step, seen)

    def _advance(self, state: Sequence[Words], step: int) -> list[Words]:
        return self._watch(state, step, look_at_nothing)

    def accumulators(self, step: int, node: int, element: int, terms: Sequence[int]) -> list[int]:
        """The accumulator before each of ``terms``, ascending, of an element's fold; after all K it is the result."""
        return self.element(step, node, element).accumulators(terms, self.sources(step, node))

    def body(self, step: int, node: int, element: int, term: int, accumulator: int) -> list[int]:
        """The results of all instructions of one application of a node's scalar program."""
        return self.element(step, node, element).results(term, accumulator, self.sources(step, node))

    def output_leaves(self, step: int, node: int) -> bytes:
        """The joined leaf hashes of a node's output."""
        return tensor_leaves(self.output(step, node))

    def all_leaves(self, step: int) -> list[bytes]:
        """The joined leaf hashes of each output of a step: an eighth of its bytes."""
        found: list[bytes] = []
        self._watch(self._states.hold(step), step, lambda number, output: found.append(tensor_leaves(output)))
        return found

    def open_operand(self, position: Position, operand: Operand, leaves: range) -> Opening:
        """The opening of the leaves, one or two, that an operand of the disputed node reads."""
        step, at_node = step_of(position.facts).step, node_of(position.facts)
        match operand.source:
            case Source.STATE:
                return open_leaves(self.state(step), self.slot_roots(step), operand.index, leaves)
            case Source.CONSTANT:
                return open_leaves(self.constants, self.constant_roots(), operand.index, leaves)
            case Source.NODE:
                number = operand.index
                tensor = self._around(step, at_node.number)[number]
                pick = agreed_root(picked_roots(at_node.before), at_node.number, number)
                # Below the row everything is agreed; the row itself may be wrong after the picked child.
                siblings = branch(self.node_roots(step), number)
                if isinstance(pick, AtTrace):
                    return Opening(0, *_shown(tensor, leaves), tuple(pick.branch_of(number, siblings)))
                siblings = siblings[: pick.child_height]
                siblings += branch(pick.row, (number >> pick.child_height) % len(pick.row))
                return Opening(0, *_shown(tensor, leaves), tuple(siblings))

    def state_root(self, step: int) -> bytes:
        """The root of the state before ``step``."""
        return self._states.root(step)

    def slot_roots(self, step: int) -> list[bytes]:
        """The roots of the slots of the state before ``step``."""
        types = [slot.type for slot in self.program.slots]
        return self._roots_of_slots.get(step, lambda: tensor_roots(types, self.state(step)))

    def node_roots(self, step: int) -> list[bytes]:
        """The roots of the outputs of a step."""
        return self._roots_of_nodes.get(step, lambda: self._row(step))

    def constant_roots(self) -> list[bytes]:
        """The roots of the constants."""
        return self._roots_of_constants.get(0, lambda: tensor_roots(self.program.constants, self.constants))

    def element(self, step: int, node: int, element: int) -> KnownElement:
        """One element of a node's output, with what is known of its fold."""
        key = (step, node, element)
        return self._elements.get(key, lambda: KnownElement(self.program.nodes[node], step, element))

    def _row(self, step: int) -> list[bytes]:
        """The roots of the outputs of a step, which the journal remembers."""
        found = None if self._journal is None else self._journal.row(step)
        if found is None:
            found = self._hashed_outputs(step)
            if self._journal is not None:
                self._journal.note_row(step, found)
        return found

    def _hashed_outputs(self, step: int) -> list[bytes]:
        """The roots of the outputs of a step, each hashed as it is computed."""
        types, found = [node.type for node in self.program.nodes], list[bytes]()
        self._watch(
            self._states.hold(step), step, lambda number, output: found.append(tensor_root(types[number], output))
        )
        return found
