"""One element of a node as a party knows it: accumulators of its fold at boundaries that were opened or compared."""

from __future__ import annotations

from collections.abc import Sequence

from pol.execution.cpu import CpuElement
from pol.execution.operand_sources import Sources
from pol.graph.node import Node


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
        """The accumulator before each of ``terms``; that before K terms is the element.

        Raises:
            ProtocolError: a term doesn't exist, or a source is missing or of another type.
        """
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
