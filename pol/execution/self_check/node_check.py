"""Compares every ATen operation of a captured step with torch's own, both on the canonical operands.

As the operands are equal, rounding errors do not accumulate: ties, comparisons and whole numbers have to agree exactly,
and floats within the error of one operation. So the first operation that differs is the wrong one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.self_check.kept_executors import KeptExecutors
from pol.execution.self_check.operation_classes import EXACT, JUMPING
from pol.execution.self_check.rounding_bound import BFLOAT16_UNIT, BINARY32_UNIT, RoundingBound
from pol.execution.stock_torch.torch_executor import DTYPES, NativeExecutor
from pol.graph.aten_graph import AtenGraph, AtenNode, AtenType, Ref, references
from pol.graph.lowering import Lowering
from pol.graph.step_program import StepProgram

BUDGET = 2**28
"""Words of intermediate values that one run of the step keeps; a larger step takes several runs."""
LARGE, REPEATED = 1 << 16, 2
"""Of equal operations whose results have LARGE words or more, the first REPEATED are compared."""
_ULPS = 4
_VANISHING = 2.0**-112
"""Below 2**-126 words lose their digits one by one, and torch's vectorized functions give zero; `silu` and the like
multiply such a word."""


@dataclass(frozen=True)
class NodeMismatch:
    """An element of a result that differs from torch's."""

    node: AtenNode
    place: tuple[int, ...]
    canonical: float
    native: float


class NodeCheck:
    """Runs the canonical step with its intermediate values, and torch's operations on the same operands.

    Memory: BUDGET words of values besides those of a step; the step is run as often as that takes.
    """

    def __init__(self, lowering: Lowering, terms: Mapping[str, int], executors: KeptExecutors) -> None:
        self._lowering = lowering
        self._graph = lowering.graph
        self._terms = terms
        self._executors = executors
        self._native = NativeExecutor(lowering.graph)
        self._lowered: dict[int, tuple[StepProgram, list[int]]] = {}

    def first(
        self, state: Sequence[Words], constants: Sequence[Words], step: int, is_drawn: bool
    ) -> NodeMismatch | None:
        """The first operation that differs at this step, or None.

        `is_drawn` says that the operands come from rows of the data set: then torch must accept them, and nothing may
        overflow on one side only. Of other operands, those that torch refuses and what is computed from them are left
        out: no operation takes what its forward would not.
        """
        refused: set[int] = set()
        for nodes, refs in self._passes():
            values = self._values(nodes[0], refs, state, constants, step)
            for position in (place for place in nodes if place not in refused):
                try:
                    mismatch = self._compared(position, values, is_drawn)
                except ProtocolError as error:
                    if is_drawn:
                        line = self._graph.nodes[position].source
                        raise UnsupportedError(f"{line} -- torch refuses the operands: {error}") from error
                    refused |= self._behind(position)
                else:
                    if mismatch is not None:
                        return mismatch
        return None

    def _behind(self, position: int) -> set[int]:
        """The position of an operation and of all that its results lead to."""
        first, found = len(self._graph.inputs), {position}
        for later, node in enumerate(self._graph.nodes):
            if any(ref.value - first in found for ref in references(node.all_arguments)):
                found.add(later)
        return found

    @cached_property
    def _compared_at(self) -> list[int]:
        """Positions of the operations to compare: all but repetitions of large ones with equal arguments and types."""
        graph, met, found = self._graph, Counter[str](), list[int]()
        for position, node in enumerate(graph.nodes):
            kind = repr((node.operation, _typed_as(node.all_arguments, graph), node.outputs))
            met[kind] += 1
            if met[kind] <= REPEATED or sum(type_.words.numel for type_ in node.outputs) < LARGE:
                found.append(position)
        return found

    def _passes(self) -> Iterator[tuple[list[int], set[Ref]]]:
        graph, first = self._graph, len(self._graph.inputs)
        nodes: list[int] = []
        refs: set[Ref] = set()
        size = 0
        for position in self._compared_at:
            node = graph.nodes[position]
            needed = {ref for ref in references(node.all_arguments) if ref.value >= first}
            needed |= {Ref(first + position, output) for output in range(len(node.outputs))}
            more = sum(graph.type_of(ref).words.numel for ref in needed - refs)
            if nodes and size + more > BUDGET:
                yield nodes, refs
                nodes, refs, size = [], set(), 0
                more = sum(graph.type_of(ref).words.numel for ref in needed)
            nodes.append(position)
            refs |= needed
            size += more
        if nodes:
            yield nodes, refs

    def _values(
        self, begin: int, refs: set[Ref], state: Sequence[Words], constants: Sequence[Words], step: int
    ) -> dict[Ref, Words]:
        graph = self._graph
        words: dict[Ref, Words] = {Ref(i): item for i, item in enumerate([*state, *constants])}
        words[Ref(len(graph.inputs) - 1)] = np.array(step, np.uint32)
        order = sorted(refs, key=lambda ref: (ref.value, ref.output))
        program, places = self._watched(begin, order)
        _, observed = self._executors.advance(program, places, state, constants, step)
        words.update(zip(order, observed, strict=True))
        return words

    def _watched(self, begin: int, refs: Sequence[Ref]) -> tuple[StepProgram, list[int]]:
        """The program that observes these values, and their nodes; cached by the first operation of its run."""
        if begin not in self._lowered:
            shown = [(f"{ref.value}.{ref.output}", ref) for ref in refs]
            # The state is kept, so that only these values are computed.
            kept = [Ref(slot) for slot in range(len(self._graph.slots))]
            program, names = self._lowering.program(kept, shown)
            self._lowered[begin] = program, [names.observed[name] for name, _ in shown]
        return self._lowered[begin]

    def _compared(self, position: int, words: Mapping[Ref, Words], is_drawn: bool) -> NodeMismatch | None:
        node, own = self._graph.nodes[position], len(self._graph.inputs) + position
        # Converted for this operation alone: in torch, integers take twice the memory.
        refs = {*references(node.all_arguments), *(Ref(own, output) for output in range(len(node.outputs)))}
        values = {ref: typed(words[ref], self._graph.type_of(ref)) for ref in refs}
        native = self._native.call(node, _operands(node, values))
        bound: RoundingBound | None = None
        for output, result in enumerate(native):
            canonical = values[Ref(own, output)]
            if torch.equal(canonical, result):
                continue
            suspects = _suspects(node, canonical, result)
            if bool(suspects.any()) and result.is_floating_point() and node.operation not in EXACT | JUMPING:
                bound = bound or RoundingBound(node, values, self._terms.get(node.name, 1))
                suspects &= bound.is_beyond(output, canonical, result, is_drawn)
            if not is_drawn or not result.is_floating_point():
                suspects &= _is_number(node, values, result)
            if bool(suspects.any()):
                place = tuple(int(i) for i in suspects.nonzero()[0])
                return NodeMismatch(node, place, canonical[place].item(), result[place].item())
        return None


def typed(words: Words, type_: AtenType) -> Tensor:
    """The tensor that words encode."""
    if type_.dtype in {"float32", "bfloat16"}:
        return torch.from_numpy(words.view(np.float32)).to(DTYPES[type_.dtype])
    return torch.from_numpy(words.view(np.int32)).to(DTYPES[type_.dtype])


def fold_lengths(program: StepProgram, names: Sequence[str], operations: Collection[str]) -> dict[str, int]:
    """By operation: the most terms that it adds up; lanes and pieces of a long sum count together."""
    terms: dict[str, int] = {}
    for node, name in zip(program.nodes, names, strict=True):
        stem, _, part = name.rpartition(".")
        if part == "lanes":
            terms[stem] = node.terms * node.type.shape[0]
        elif part == "pieces":
            terms[stem] = terms.get(stem, 1) * node.terms
        else:
            terms[name] = max(terms.get(name, 1), node.terms)
    found: dict[str, int] = {}
    for name, count in terms.items():
        owner = name
        while owner and owner not in operations:
            owner = owner.rpartition(".")[0]
        found[owner] = max(found.get(owner, 1), count)
    return found


def _typed_as(argument: object, graph: AtenGraph) -> object:
    """An argument with types in place of values."""
    if isinstance(argument, Ref):
        return graph.type_of(argument)
    if isinstance(argument, tuple | list):
        return [_typed_as(item, graph) for item in argument]
    return argument


def _operands(node: AtenNode, values: Mapping[Ref, Tensor]) -> dict[int, tuple[Tensor, ...]]:
    """The operands as NativeExecutor keeps them: all outputs of a value in one tuple."""
    found: dict[int, dict[int, Tensor]] = {}
    for ref in references(node.all_arguments):
        found.setdefault(ref.value, {})[ref.output] = values[ref]
    empty = torch.empty(0)
    return {
        value: tuple(outputs.get(output, empty) for output in range(max(outputs) + 1))
        for value, outputs in found.items()
    }


def _suspects(node: AtenNode, canonical: Tensor, native: Tensor) -> Tensor:
    """A mask of elements that differ by more than a few units in the last place, or at all where nothing rounds."""
    if not native.is_floating_point():
        return canonical != native
    equal = (canonical == native) | (torch.isnan(canonical) & torch.isnan(native))
    if node.operation in EXACT:
        return ~equal
    one, other = canonical.double(), native.double()
    unit = BFLOAT16_UNIT if native.dtype == torch.bfloat16 else BINARY32_UNIT
    near = (one - other).abs() <= _ULPS * unit * torch.maximum(one.abs(), other.abs()) + _VANISHING
    if node.operation in JUMPING:
        # Torch's vectorized fmod gives NaN for quotients beyond about 2^100.
        near = near | (torch.isnan(native) & torch.isfinite(canonical))
    return ~(equal | near)


def _is_number(node: AtenNode, values: Mapping[Ref, Tensor], result: Tensor) -> Tensor:
    """A mask of elements that are defined: torch's conversion of NaN to an integer differs between machines."""
    if result.is_floating_point():
        return torch.isfinite(result)
    first = node.arguments[0] if node.arguments else None
    if node.operation == "aten._to_copy.default" and isinstance(first, Ref):
        return torch.isfinite(values[first])
    return torch.ones_like(result, dtype=torch.bool)
