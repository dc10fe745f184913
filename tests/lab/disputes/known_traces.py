"""Published traces without a store: what the authors of some executions have made known."""

from __future__ import annotations

from collections.abc import Sequence

from pol.commitments.merkle import tree
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.published_trace import leaves_of, leaves_place, published_leaves
from pol.graph.step_program import StepProgram


class KnownTraces:
    """The traces of all steps of these executions; with the leaf hashes of their outputs if ``with_leaves``."""

    def __init__(self, *published: SegmentTrace, with_leaves: bool) -> None:
        self._rows: dict[bytes, Sequence[bytes]] = {}
        self._leaves: dict[bytes, bytes] = {}
        for trace in published:
            for step in range(trace.first_step, trace.first_step + trace.steps):
                row = list(trace.node_roots(step))
                self._rows[tree(row)] = row
                if with_leaves:
                    self._leaves[tree(row)] = b"".join(published_leaves(trace, step))

    def row(self, trace: bytes, nodes: int) -> Sequence[bytes] | None:
        """As `PublishedTraces.row`."""
        return self._rows.get(trace)

    def leaves(self, trace: bytes, program: StepProgram, number: int, row: Sequence[bytes]) -> bytes | None:
        """As `PublishedTraces.leaves`."""
        place = leaves_place(program, number)
        joined = self._leaves.get(trace, b"")[place.start : place.stop]
        return leaves_of(joined, program.nodes[number].type, row[number]) if place else None
