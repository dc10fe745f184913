"""The trace of a disputed step as its author publishes it: rows of hashes that lead to its root on the chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pol.commitments.merkle import tree
from pol.commitments.tensor import root_over_tree
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.graph.step_program import StepProgram
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
