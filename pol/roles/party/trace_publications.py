"""Traces of disputed steps in the store: a party publishes its own, and reads those of others (docs/spec/dispute.md).

A dispute ends in fewer transactions where a trace is published, and without it all the same. A clock runs meanwhile: so
the store gets some seconds, and a slow or failing one stops no move.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from pol.commitments.merkle import tree
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import HASH, leaves_of, leaves_place, published_leaves, row_of
from pol.errors import OperationalError
from pol.graph.step_program import StepProgram
from pol.training.storage.store import Store

MOST_BYTES = 64 << 20
"""Of the leaf hashes that are published of one step: they are hashes of 512 MiB of outputs."""
PATIENCE = 20.0
"""Seconds for what a move reads, or publishes; the shortest clock of a dispute is ten minutes."""
LOG = logging.getLogger(__name__)
T = TypeVar("T")


class TracePublications:
    """The published traces in a store."""

    def __init__(self, store: Store, patience: float = PATIENCE) -> None:
        self._store, self._patience = store, patience
        self._unknown: set[bytes] = set()
        """Traces that the store didn't give: each is asked for once."""
        self._waiting: threading.Thread | None = None
        """On a store that hasn't answered in time."""

    def publish(self, trace: SegmentTrace, step: int) -> None:
        """Publish the node roots of a step, and the leaf hashes of its outputs unless they are too many."""
        row = trace.node_roots(step)
        name = tree(row).hex()
        hashes = leaves_place(trace.program, len(trace.program.nodes) - 1).stop
        leaves = list(published_leaves(trace, step)) if hashes <= MOST_BYTES else []

        def write() -> None:
            # A reader of the row finds the leaves.
            if leaves:
                self._store.put_file(f"{name}.leaves", leaves)
            self._store.put_file(f"{name}.trace", [b"".join(row)])

        self._in_time(write, f"the trace of step {step} isn't published")

    def row(self, trace: bytes, nodes: int) -> Sequence[bytes] | None:
        """As `PublishedTraces.row`."""
        if trace in self._unknown:
            return None
        joined = self._read(f"{trace.hex()}.trace", range(HASH * nodes), HASH * nodes)
        row = row_of(joined, trace, nodes)
        if row is None:
            self._unknown.add(trace)
        return row

    def leaves(self, trace: bytes, program: StepProgram, number: int, row: Sequence[bytes]) -> bytes | None:
        """As `PublishedTraces.leaves`."""
        place, whole = leaves_place(program, number), leaves_place(program, len(program.nodes) - 1).stop
        if not place or whole > MOST_BYTES:
            return None
        return leaves_of(self._read(f"{trace.hex()}.leaves", place, whole), program.nodes[number].type, row[number])

    def _read(self, name: str, place: range, size: int) -> bytes:
        """A part of a file of this size; nothing if there is none."""

        def read() -> bytes:
            with self._store.open_file(name) as file:
                if file.size != size:
                    raise OperationalError(f"{name} has {file.size} bytes, not {size}")
                file.seek(place.start)
                return file.read(len(place))

        return self._in_time(read, f"{name} isn't read") or b""

    def _in_time(self, work: Callable[[], T], problem: str) -> T | None:
        """The result of what talks to the store; None if it fails or takes too long. One thread waits at most."""
        if self._waiting is not None and self._waiting.is_alive():
            LOG.warning("%s, so the dispute takes more moves: the store hasn't answered yet", problem)
            return None
        done: list[T] = []
        failed: list[Exception] = []

        def run() -> None:
            try:
                done.append(work())
            except (OperationalError, OSError) as error:
                failed.append(error)

        self._waiting = threading.Thread(target=run, name="pol-traces", daemon=True)
        self._waiting.start()
        self._waiting.join(self._patience)
        if not done:
            why = failed[0] if failed else f"the store took more than {self._patience:.0f} s"
            # Nobody has to publish a trace: that there is none is no trouble.
            absent = failed and isinstance(failed[0].__cause__, FileNotFoundError)
            LOG.log(
                logging.DEBUG if absent else logging.WARNING, "%s, so the dispute takes more moves: %s", problem, why
            )
            return None
        return done[0]
