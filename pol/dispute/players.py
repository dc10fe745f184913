"""The honest players: which move to make at a position, given one's own execution.

An asserter opens what it executed. A challenger compares what is opened with its own execution and picks the first
difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from pol.commitments.merkle import branch
from pol.commitments.program import HEADER_SIZE, node_branch, program_header, slot_branch
from pol.dispute.arbitration import operand_words
from pol.dispute.evidence import SegmentTrace, leaf_bytes, subtree
from pol.dispute.moves import (
    Describe,
    DescribeSlot,
    Move,
    Open,
    Pick,
    PickState,
    ProveSlot,
    ProveStep,
    ProveSum,
)
from pol.dispute.openings import Opening, word_in_leaf
from pol.dispute.position import HASH_ARITY, LEAF_WORDS, VALUE_ARITY, Level, Position, parts, word
from pol.dispute.sums import SumEvidence
from pol.errors import ProtocolError
from pol.graph.node import Operand
from pol.verification.distance import saturating_sum


class NothingToDispute(ProtocolError):
    """Everything that was opened agrees with one's own execution: the claim is right, don't challenge it."""


@runtime_checkable
class Asserter(Protocol):
    """Defends a claim."""

    def answer(self, position: Position) -> Move:
        """The move to make at a position where the asserter is on turn."""
        ...


class Challenger(Protocol):
    """Attacks a claim."""

    def choose(self, position: Position, opened: bytes) -> Move:
        """The move to make after the asserter opened ``opened``."""
        ...


@dataclass(frozen=True)
class ReplayAsserter:
    """Defends the claim that a segment leads from its start to its end."""

    trace: SegmentTrace

    def answer(self, position: Position) -> Move:
        """Open, describe or prove what the position asks for."""
        match position.level:
            case Level.NODE:
                return self._describe(position)
            case Level.ONE_STEP:
                return self._prove_step(position)
            case Level.SLOT:
                return self._prove_slot(position)
            case _:
                return Open(opened_by(self.trace, position))

    def _describe(self, p: Position) -> Describe:
        program = self.trace.program
        return Describe(
            branch=tuple(node_branch(program, p.node)),
            descriptor=program.nodes[p.node].encode(),
            tree=self.trace.output_tree(p.step, p.node),
        )

    def _prove_step(self, p: Position) -> ProveStep:
        node = self.trace.program.nodes[p.node]
        values = b"" if p.instructions == 1 else _body(self.trace, p)
        openings: list[Opening] = []

        def open_word(operand: Operand, address: int) -> int:
            openings.append(self.trace.open_operand(p.step, operand, address))
            return word_in_leaf(openings[-1].leaf, address % LEAF_WORDS)

        operand_words(node, p, [int.from_bytes(values[i : i + 4], "big") for i in range(0, len(values), 4)], open_word)
        return ProveStep(node.encode(), values, tuple(openings))

    def _prove_slot(self, p: Position) -> ProveSlot:
        program = self.trace.program
        slot = program.slots[p.element]
        return ProveSlot(
            header=program_header(program),
            descriptor=slot.encode(),
            descriptor_branch=tuple(slot_branch(program, p.element)),
            trace_branch=tuple(branch(self.trace.node_roots(p.step), slot.producer)),
        )


@dataclass(frozen=True)
class ReplayChallenger:
    """Attacks the claim that a segment leads from its start to its end."""

    trace: SegmentTrace

    def choose(self, position: Position, opened: bytes) -> Move:
        """The first part that one's own execution contradicts.

        Raises:
            NothingToDispute: there is none.
        """
        own = opened_by(self.trace, position)
        size = 4 if position.level in (Level.LEAF, Level.TERMS, Level.BODY) else 32
        if position.level is Level.STATE:
            own, opened = own[HEADER_SIZE:], opened[HEADER_SIZE:]
        index = first_difference(own, opened, size)
        match position.level:
            case Level.BODY if index is not None:
                return Pick(index, b"")
            case Level.STEPS | Level.TERMS:
                # What isn't opened is the end of the last part: the disputed claim itself.
                return Pick(len(own) // size if index is None else index, opened)
            case Level.TRACE if index is None:
                return PickState()
        if index is None:
            raise NothingToDispute(f"at {position.level.name} everything opened is right; the claim stands")
        return Pick(index, opened)


def opened_by(trace: SegmentTrace, p: Position) -> bytes:
    """What a party with this execution opens at a position."""
    program = trace.program
    match p.level:
        case Level.STEPS:
            return b"".join(trace.state_root(s) for s in parts(p.lo, p.hi, HASH_ARITY)[1:-1])
        case Level.TRACE:
            roots = trace.node_roots(p.step)
            return subtree(roots, 0, _height(roots))
        case Level.STATE:
            roots = trace.slot_roots(p.step + 1)
            return program_header(program) + subtree(roots, 0, _height(roots))
        case Level.NODES:
            return subtree(trace.node_roots(p.step), p.lo, p.height)
        case Level.SLOTS:
            return subtree(trace.slot_roots(p.step + 1), p.lo, p.height)
        case Level.LEAVES:
            return subtree(trace.output_leaves(p.step, p.node), p.lo, p.height)
        case Level.LEAF:
            return leaf_bytes(trace.outputs(p.step)[p.node], p.lo)
        case Level.TERMS:
            values = trace.accumulators(p.step, p.node, p.element)
            return b"".join(int(values[k]).to_bytes(4, "big") for k in parts(p.lo, p.hi, VALUE_ARITY)[1:-1])
        case Level.BODY:
            return _body(trace, p)
        case _:
            raise ProtocolError(f"nothing is opened at {p.level.name}")


def _body(trace: SegmentTrace, p: Position) -> bytes:
    accumulator = int.from_bytes(p.agreed, "big")
    return b"".join(v.to_bytes(4, "big") for v in trace.body(p.step, p.node, p.element, p.term, accumulator))


def _height(leaves: Sequence[bytes]) -> int:
    return (len(leaves) - 1).bit_length()


def first_difference(own: bytes, opened: bytes, size: int) -> int | None:
    """Index of the first of the ``size``-byte items that differ, or None."""
    for i in range(0, len(own), size):
        if own[i : i + size] != opened[i : i + size]:
            return i // size
    return None


@dataclass(frozen=True)
class SumAsserter:
    """Defends a claimed distance."""

    sums: SumEvidence

    def answer(self, position: Position) -> Move:
        """Open the parts of the sum, or prove its last one."""
        program, p = self.sums.program, position
        match p.level:
            case Level.SUM_SLOT:
                branch_ = tuple(slot_branch(program, p.lo))
                return DescribeSlot(program_header(program), branch_, program.slots[p.lo].encode())
            case Level.SUM_LEAF:
                return ProveSum(program.slots[p.element].encode(), *self.sums.open_leaves(p.element, p.lo))
            case _:
                return Open(sums_opened_by(self.sums, p))


@dataclass(frozen=True)
class SumChallenger:
    """Attacks a claimed distance."""

    sums: SumEvidence

    def choose(self, position: Position, opened: bytes) -> Move:
        """The first part of the sum that is wrong.

        Raises:
            NothingToDispute: there is none.
        """
        index = first_difference(sums_opened_by(self.sums, position), opened, 32)
        if index is None:
            raise NothingToDispute("all parts of the sum are right; the claim stands")
        return Pick(index, opened)


def sums_opened_by(sums: SumEvidence, p: Position) -> bytes:
    """The parts of a sum that a party with this evidence opens at a position."""
    if p.level is Level.SUM_SLOTS:
        single = [sums.slot_sum(slot) for slot in range(p.lo, p.hi)]
    else:
        single = sums.leaf_sums(p.element)[p.lo : p.hi]
    bounds = [b - p.lo for b in parts(p.lo, p.hi, HASH_ARITY)]
    return b"".join(word(saturating_sum(single[a:b])) for a, b in pairwise(bounds))
