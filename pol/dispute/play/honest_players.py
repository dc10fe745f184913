"""The honest players: the move at a position, given one's own execution. Both sides play alike.

A player compares the open parts with its own execution, picks the first difference and opens its own version of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from pol.arithmetic.primitives import Words
from pol.claims.distance import leaf_distances, saturating_sum
from pol.commitments.merkle import branch, depth, tree
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import root_over_tree, tensor_roots
from pol.dispute.agreed_facts import AtElement, AtSlot, AtState, AtStep, AtTerm, Summed, node_of, step_of
from pol.dispute.moves import (
    Answer,
    Describe,
    DescribeSlot,
    IllegalMove,
    Move,
    OpenBody,
    OpenState,
    ProveSlot,
    ProveStep,
    ProveSum,
    Show,
    Unfold,
)
from pol.dispute.one_step import disputed, execute_last_operation
from pol.dispute.openings import Opening, ShownLeaf
from pol.dispute.play.execution_evidence import SegmentTrace, leaf_bytes, open_leaves, subtree
from pol.dispute.position import Level, Position
from pol.dispute.rules import answered, described, opened_body, picked, shown, unfolded
from pol.errors import ProtocolError
from pol.graph.node import Operand
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import TensorType

HASH = 32


class PublishedTraces(Protocol):
    """The rows that others have published. Nothing is given that doesn't hash to the root that was asked for."""

    def row(self, trace: bytes, nodes: int) -> Sequence[bytes] | None:
        """The roots of all nodes of the trace with this root; None if they are unknown."""
        ...

    def leaves(self, trace: bytes, program: StepProgram, number: int, row: Sequence[bytes]) -> bytes | None:
        """The joined leaf hashes of the output of node ``number`` in that trace; None if they are unknown."""
        ...


def row_of(joined: bytes, trace: bytes, nodes: int) -> Sequence[bytes] | None:
    """The roots of all nodes, if these joined hashes are those of the trace."""
    if len(joined) != HASH * nodes:
        return None
    row = [joined[at : at + HASH] for at in range(0, len(joined), HASH)]
    return row if tree(row) == trace else None


def leaves_of(joined: bytes, type_: TensorType, root: bytes) -> bytes | None:
    """The joined leaf hashes, if they are those of the output with this root.

    A dispute with other ones would be lost by the side that is right.
    """
    return joined if len(joined) == HASH * type_.leaves and root_over_tree(type_, tree(joined)) == root else None


def leaves_place(program: StepProgram, number: int) -> range:
    """Where the leaf hashes of a node's output stand in those of all nodes; empty for an output of one leaf."""
    sizes = [HASH * node.type.leaves if node.type.leaves > 1 else 0 for node in program.nodes[: number + 1]]
    return range(sum(sizes[:-1]), sum(sizes))


def published_leaves(trace: SegmentTrace, step: int) -> Iterator[bytes]:
    """The joined leaf hashes of each output of a step that has several leaves, in program order."""
    for node, leaves in zip(trace.program.nodes, trace.all_leaves(step), strict=True):
        if node.type.leaves > 1:
            yield leaves


def first_difference(own: bytes, opened: bytes, size: int) -> int | None:
    """Index of the first of the ``size``-byte items that differ, or None."""
    for i in range(0, max(len(own), len(opened)), size):
        if own[i : i + size] != opened[i : i + size]:
            return i // size
    return None


class SumEvidence:
    """The distance of one component between the states ``x`` and ``y``."""

    def __init__(self, program: StepProgram, component: int, x: Sequence[Words], y: Sequence[Words]) -> None:
        self.program = program
        self.component = Component(component)
        self.states = (list(x), list(y))

    def leaf_sums(self, slot: int) -> list[int]:
        """The distance in each leaf of a slot; zero for a slot of another component."""
        descriptor = self.program.slots[slot]
        if descriptor.component != self.component:
            return [0] * descriptor.type.leaves
        return leaf_distances(descriptor.type.dtype, self.states[0][slot], self.states[1][slot], descriptor.scale)

    def slot_sum(self, slot: int) -> int:
        """The distance in a slot."""
        return saturating_sum(self.leaf_sums(slot))

    def total(self) -> int:
        """The distance of the component."""
        return saturating_sum(self.slot_sum(slot) for slot in range(len(self.program.slots)))

    def open_leaves(self, slot: int, leaf: int) -> tuple[Opening, Opening]:
        """The openings of one leaf in both states."""
        types = [s.type for s in self.program.slots]
        x, y = (open_leaves(state, tensor_roots(types, state), slot, range(leaf, leaf + 1)) for state in self.states)
        return x, y


class NothingToDispute(ProtocolError):
    """All open parts agree with one's own execution: the other side is right, so resign."""


class Player(Protocol):
    """One side of a dispute."""

    def open(self, position: Position) -> bytes:
        """One's own version of the disputed part, at a position where nothing lies open yet."""
        ...

    def move(self, position: Position) -> Move:
        """The move to make at a position where this side is on turn.

        Raises:
            NothingToDispute: the other side is right as far as one can see.
        """
        ...


@dataclass(frozen=True)
class ReplayPlayer:
    """A player with one execution of a segment."""

    trace: SegmentTrace
    published: PublishedTraces | None = None
    """The traces of others, as far as they have published them."""

    def open(self, position: Position) -> bytes:
        """States, hashes, words or results, as the level asks for."""
        return opened_by(self.trace, position)

    def move(self, position: Position) -> Move:
        """Pick the first difference; open one's own version of it, or prove that it is wrong."""
        p = position
        index = first_difference(self.open(p), p.opened, p.item_bytes)
        if index is None:
            if p.level is Level.NODES and isinstance(p.facts, AtStep):
                return self._open_state(p)
            raise NothingToDispute(f"at {p.level.name} all that lies open is right; the other side is right")
        if p.level is Level.NODES and isinstance(p.facts, AtStep) and (row := self._row_of(p.opening)):
            return self._show(p, row)
        match p.level:
            case Level.NODES if p.opened_height == p.height:
                return self._describe(p, index)
            case Level.STATE if p.opened_height == p.height:
                return self._prove_slot(p, index)
            case Level.LEAF | Level.TERMS | Level.BODY:
                return self._go_down(p, index)
            case _:
                return Answer(index, self.open(answered(p, index)))

    def _open_state(self, p: Position) -> OpenState:
        facts = step_of(p.facts)
        if self.trace.state_root(facts.step + 1) != facts.end:
            raise NothingToDispute(
                "the trace that lies open is right, and it does not lead to the state claimed before"
            )
        roots = self.trace.slot_roots(facts.step + 1)
        count = len(roots)
        after = replace(p, level=Level.STATE, facts=AtState(facts, p.opening), count=count, height=depth(count))
        return OpenState(self.trace.commitment.header, self.open(after))

    def _describe(self, p: Position, index: int) -> Describe:
        commitment, number = self.trace.commitment, p.lo + index
        descriptor = self.trace.program.nodes[number].encode()
        payload = self.open(described(p, index, descriptor))
        return Describe(index, commitment.header, tuple(commitment.node_branch(number)), descriptor, payload)

    def _show(self, p: Position, row: Sequence[bytes]) -> Show:
        commitment, step = self.trace.commitment, step_of(p.facts).step
        number = first_difference(b"".join(self.trace.node_roots(step)), b"".join(row), 32)
        assert number is not None, "rows of different traces differ"
        node = self.trace.program.nodes[number]
        leaf: tuple[ShownLeaf, ...] = ()
        if self.published is not None and (hashes := self.published.leaves(p.opening, self.trace.program, number, row)):
            place = first_difference(self.trace.output_leaves(step, number), hashes, 32)
            assert place is not None, "leaf hashes of different roots differ"
            leaf = (ShownLeaf(place, hashes[32 * place : 32 * place + 32], tuple(branch(hashes, place))),)
        place_in_trace, descriptor = tuple(branch(row, number)), node.encode()
        leaf_number = leaf[0].number if leaf else None
        payload = self.open(shown(p, number, row[number], place_in_trace, descriptor, leaf_number))
        place_in_program = tuple(commitment.node_branch(number))
        return Show(number, commitment.header, row[number], place_in_trace, place_in_program, descriptor, leaf, payload)

    def _row_of(self, trace: bytes) -> Sequence[bytes] | None:
        return None if self.published is None else self.published.row(trace, len(self.trace.program.nodes))

    def _go_down(self, p: Position, index: int) -> Move:
        try:
            disputed(p, index)
        except IllegalMove:
            if p.level is Level.LEAF:
                return Unfold(index, self.open(unfolded(p, index)))
            if p.boundaries[index + 1] - p.boundaries[index] > 1:
                return Answer(index, self.open(answered(p, index)))
            return OpenBody(index, self.open(opened_body(p, index)))
        openings: list[Opening] = []

        def read_leaves(operand: Operand, leaves: range) -> bytes:
            openings.append(self.trace.open_operand(p, operand, leaves))
            return openings[-1].leaf

        execute_last_operation(p, index, picked(p, index), read_leaves)
        return ProveStep(index, tuple(openings))

    def _prove_slot(self, p: Position, index: int) -> ProveSlot:
        commitment, q = self.trace.commitment, p.lo + index
        slot, roots = self.trace.program.slots[q], self.trace.node_roots(step_of(p.facts).step)
        return ProveSlot(
            index,
            header=commitment.header,
            branch=tuple(commitment.slot_branch(q)),
            descriptor=slot.encode(),
            produced=roots[slot.producer],
            trace_branch=tuple(branch(roots, slot.producer)),
        )


def opened_by(trace: SegmentTrace, p: Position) -> bytes:
    """The bytes that a party with this execution opens at a position."""
    facts = p.facts
    match p.level:
        case Level.STEPS:
            return b"".join(trace.state_root(s) for s in p.boundaries[1:])
        case Level.NODES:
            return subtree(trace.node_roots(step_of(facts).step), p)
        case Level.STATE:
            return subtree(trace.slot_roots(step_of(facts).step + 1), p)
        case Level.LEAVES:
            return subtree(trace.output_leaves(step_of(facts).step, node_of(facts).number), p)
        case Level.LEAF:
            return leaf_bytes(trace.output(step_of(facts).step, node_of(facts).number), p.lo)
        case Level.TERMS:
            assert isinstance(facts, AtElement)
            values = trace.accumulators(step_of(facts).step, facts.before.number, facts.element, p.boundaries[1:])
            return b"".join(value.to_bytes(4, "big") for value in values)
        case Level.BODY:
            assert isinstance(facts, AtTerm)
            at = facts.before
            results = trace.body(step_of(facts).step, at.before.number, at.element, facts.term, facts.agreed)
            return b"".join(value.to_bytes(4, "big") for value in results)
        case _:
            raise ProtocolError(f"{p.level.name} is no part of a replay")


@dataclass(frozen=True)
class SumPlayer:
    """A player with the parts of a distance."""

    sums: SumEvidence

    def open(self, position: Position) -> bytes:
        """The sums of the parts."""
        p = position
        if p.level is Level.SUM_SLOTS:
            single = [self.sums.slot_sum(slot) for slot in range(p.lo, p.hi)]
        else:
            assert isinstance(p.facts, AtSlot)
            single = self.sums.leaf_sums(p.facts.slot)[p.lo : p.hi]
        ends = [b - p.lo for b in p.boundaries]
        return b"".join(saturating_sum(single[a:b]).to_bytes(32, "big") for a, b in pairwise(ends))

    def move(self, position: Position) -> Move:
        """Pick the first part that is wrong; open its parts, or prove that it is wrong."""
        p, program = position, self.sums.program
        index = first_difference(self.open(p), p.opened, 32)
        if index is None:
            raise NothingToDispute("all parts of the sum are right; the other side is right")
        begin, end = p.boundaries[index : index + 2]
        if end - begin > 1:
            return Answer(index, self.open(answered(p, index)))
        if isinstance(p.facts, AtSlot):
            return ProveSum(index, *self.sums.open_leaves(p.facts.slot, begin))
        assert isinstance(p.facts, Summed)
        slot, payload = program.slots[begin], b""
        if slot.component == p.facts.component:
            facts = AtSlot(p.facts, begin, slot.encode())
            payload = self.open(replace(p, level=Level.SUM_LEAVES, facts=facts, lo=0, hi=slot.type.leaves))
        commitment = ProgramCommitment.of(program)
        branch_ = tuple(commitment.slot_branch(begin))
        return DescribeSlot(index, commitment.header, branch_, slot.encode(), payload)
