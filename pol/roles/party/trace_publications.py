"""Traces of disputed steps in the store: a party publishes its own, and reads those of others (docs/spec/dispute.md).

A dispute ends in fewer transactions where a trace is published, and without it all the same. So a failing store stops
no move.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from pol.commitments.merkle import tree
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.published_trace import HASH, leaves_of, published_leaves, row_of
from pol.errors import OperationalError
from pol.graph.tensor_type import TensorType
from pol.training.storage.kept_store import KeptStore
from pol.training.storage.store import Store

MOST_BYTES = 64 << 20
"""Of the leaf hashes that are published of one step: they are hashes of 512 MiB of outputs."""
LOG = logging.getLogger(__name__)


class TracePublications:
    """The published traces in a store. A row that is given stays on this party's disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[bytes, Sequence[bytes]] = {}

    def publish(self, trace: SegmentTrace, step: int) -> None:
        """Publish the node roots of a step, and the leaf hashes of its outputs unless they are too many."""
        row = trace.node_roots(step)
        hashes = sum(node.type.leaves for node in trace.program.nodes if node.type.leaves > 1)
        try:
            # A reader of the row finds the leaves.
            if HASH * hashes <= MOST_BYTES:
                for root, leaves in published_leaves(trace, step):
                    self._store.put_file(f"{root.hex()}.leaves", [leaves])
            self._store.put_file(_row_name(tree(row)), [b"".join(row)])
        except OperationalError as error:
            LOG.warning("the trace of step %d isn't published, so the dispute takes more moves: %s", step, error)

    def row(self, trace: bytes, nodes: int) -> Sequence[bytes] | None:
        """As `PublishedTraces.row`."""
        if trace not in self._rows:
            joined = self._read(_row_name(trace), HASH * nodes)
            row = row_of(joined, trace, nodes)
            if row is None or not self._keep(_row_name(trace), joined):
                return None
            self._rows[trace] = row
        return self._rows[trace]

    def leaves(self, type_: TensorType, root: bytes) -> bytes | None:
        """As `PublishedTraces.leaves`."""
        if type_.leaves == 1 or HASH * type_.leaves > MOST_BYTES:
            return None
        return leaves_of(self._read(f"{root.hex()}.leaves", HASH * type_.leaves), type_, root)

    def _read(self, name: str, size: int) -> bytes:
        """The file; nothing if there is none of this size."""
        with suppress(OperationalError), self._store.open_file(name) as file:
            if file.size == size:
                return file.read(size)
        return b""

    def _keep(self, name: str, data: bytes) -> bool:
        """Whether the file lies on this party's disk: the store may lose it, and a proof needs it."""
        if not isinstance(self._store, KeptStore):
            return True
        try:
            self._store.keep_file(name, data)
        except OperationalError as error:
            LOG.warning("a published trace isn't used, so the dispute takes more moves: %s", error)
            return False
        return True


def _row_name(trace: bytes) -> str:
    return f"{trace.hex()}.trace"
