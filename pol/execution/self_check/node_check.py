"""Compares every ATen operation of a captured step with torch's own, both on the canonical operands.

Equal operands leave no room for a course of rounding errors: ties, comparisons and whole numbers have to agree exactly,
and floats within the error that one operation makes. So the first operation that parts is the one that is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.native.torch_executor import ALLOWED, DTYPES, NativeExecutor, wanted
from pol.execution.self_check.drawn_errors import DrawnErrors
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode, AtenType, Ref, TorchDType, references
from pol.graph.lowering import lower
from pol.graph.step_program import StepProgram

BUDGET = 2**28
"""Words of intermediate values that one run of the step keeps; more take more runs."""
MOVES = frozenset(
    f"aten.{name}"
    for name in (
        "alias.default", "clone.default", "detach.default", "lift_fresh_copy.default", "transpose.int",
        "permute.default", "expand.default", "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims",
        "view.default", "_unsafe_view.default", "select.int", "slice.Tensor", "split_with_sizes.default",
        "split.Tensor", "unsafe_split.Tensor", "flip.default", "cat.default", "repeat.default", "roll.default",
        "constant_pad_nd.default", "slice_backward.default", "select_backward.default", "slice_scatter.default",
        "select_scatter.default", "tril.default", "triu.default", "full.default", "full_like.default",
        "scalar_tensor.default", "ones.default", "zeros.default", "copy.default", "where.self", "where.Scalar",
        "where.ScalarOther", "where.ScalarSelf", "maximum.default", "minimum.default", "abs.default", "neg.default",
        "relu.default", "clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor", "clamp_max.default",
        "clamp_max.Tensor", "threshold_backward.default", "softshrink_backward.default", "hardshrink_backward.default",
        "amax.default", "amin.default", "max.default", "min.default", "max.dim", "min.dim", "argmax.default",
        "argmin.default", "index_select.default", "embedding.default", "gather.default", "index.Tensor",
        "scatter.src", "scatter.value", "index_copy.default", "sort.default", "sort.stable", "topk.default",
        "max_pool2d_with_indices.default", "max_pool3d_with_indices.default", "pixel_shuffle.default",
        "pixel_unshuffle.default", "reflection_pad1d.default", "reflection_pad2d.default",
        "sign.default", "sgn.default", "floor.default", "ceil.default", "trunc.default", "round.default",
    )
)  # fmt: skip
"""Operations without rounding: words move, or the result is a whole number."""
STEPS = frozenset(
    f"aten.{name}"
    for name in (
        "floor_divide.default", "remainder.Scalar", "remainder.Tensor", "fmod.Scalar", "fmod.Tensor",
        "div.Tensor_mode", "div.Scalar_mode",
    )
)  # fmt: skip
"""Rests and whole quotients: they jump, so only their last rounding is free."""
UNSTABLE = frozenset(
    ("aten.gelu.default", "aten.gelu_backward.default", "aten.silu_backward.default", "aten._log_softmax.default")
)
"""Sums that cancel inside of the operation: the error is one of the operands and of 1, not of the result."""
LOG_SOFTMAX_BACKWARD = "aten._log_softmax_backward_data.default"
"""g - exp(y) sum(g): where a probability is next to 1, the terms cancel, and their roundings stay."""
SUMS = frozenset(
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "addmm.default", "convolution.default", "convolution_backward.default",
        "sum.default", "sum.dim_IntList", "cumsum.default", "embedding_dense_backward.default", "scatter_add.default",
    )
)  # fmt: skip
"""Sums of operands, or of products of two of them: on squares they give the sum of the squares of their terms."""
_SINGLE, _BFLOAT = 2.0**-23, 2.0**-7
LARGE, REPEATED = 1 << 16, 2
"""Operations with a result of so many words are compared at so many places: the blocks of a deep network are alike."""
_ULPS = 4
_SAFETY = 16
_DRAWS = 4
_NUDGE = 2.0**-20


@dataclass(frozen=True)
class Parting:
    """Where an operation gives another number than torch's."""

    node: AtenNode
    place: tuple[int, ...]
    canonical: float
    native: float


class NodeCheck:
    """Runs the canonical step with its intermediate values, and torch's operations on the same operands.

    Memory: BUDGET words of values besides those of a step; the step is run as often as that takes.
    """

    def __init__(self, graph: AtenGraph, terms: Mapping[str, int], threads: int) -> None:
        self._graph = graph
        self._terms = terms
        self._threads = threads
        self._native = NativeExecutor(graph)
        self._lowered: dict[int, tuple[StepProgram, list[int]]] = {}

    def first(self, state: Sequence[Words], constants: Sequence[Words], step: int, is_drawn: bool) -> Parting | None:
        """The first operation that parts at this step, or None; numbers that aren't drawn may overflow."""
        for nodes, refs in self._passes():
            values = self._values(nodes[0], refs, state, constants, step)
            for node in nodes:
                parting = self._compared(node, values, is_drawn)
                if parting is not None:
                    return parting
        return None

    @cached_property
    def _compared_at(self) -> list[int]:
        """All operations but those of a large result that were met before with the same arguments and types."""
        graph, met, found = self._graph, Counter[str](), list[int]()
        for position, node in enumerate(graph.nodes):
            kind = repr((node.operation, _typed_as(_arguments(node), graph), node.outputs))
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
            needed = {ref for ref in references(_arguments(node)) if ref.value >= first}
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
        _, observed = CpuExecutor(program, constants, self._threads, places).advance(state, step)
        words.update(zip(order, observed, strict=True))
        return words

    def _watched(self, begin: int, refs: Sequence[Ref]) -> tuple[StepProgram, list[int]]:
        """The program that shows these values, and its nodes that do; by the first operation of its run."""
        if begin not in self._lowered:
            shown = tuple((f"{ref.value}.{ref.output}", ref) for ref in refs)
            # The state stays as it is, so that only these values are computed.
            kept = tuple(Ref(slot) for slot in range(len(self._graph.slots)))
            watched = replace(self._graph, observed=shown, next_state=kept)
            program, names = lower(watched)
            self._lowered[begin] = program, [names.observed[name] for name, _ in watched.observed]
        return self._lowered[begin]

    def _compared(self, position: int, words: Mapping[Ref, Words], is_drawn: bool) -> Parting | None:
        node, own = self._graph.nodes[position], len(self._graph.inputs) + position
        # Typed for this operation alone: whole numbers take twice the memory in torch, a data set of them too.
        refs = {*references(_arguments(node)), *(Ref(own, output) for output in range(len(node.outputs)))}
        values = {ref: typed(words[ref], self._graph.type_of(ref)) for ref in refs}
        operands = _operands(node, values)
        try:
            native = self._native.call(node, operands)
        except ProtocolError as error:
            if is_drawn:
                raise UnsupportedError(f"{node.source} -- torch refuses the operands: {error}") from error
            return None  # Torch refuses numbers that no data of the user's led to.
        bound: RoundingBound | None = None
        for output, result in enumerate(native):
            canonical = values[Ref(own, output)]
            if torch.equal(canonical, result):
                continue
            suspects = _suspects(node, canonical, result)
            if bool(suspects.any()) and result.is_floating_point() and node.operation not in MOVES | STEPS:
                bound = bound or RoundingBound(node, values, self._terms.get(node.name, 1))
                suspects &= bound.is_beyond(output, canonical, result, is_drawn)
            if not is_drawn:
                suspects &= _is_number(node, values, result)
            if bool(suspects.any()):
                place = tuple(int(i) for i in suspects.nonzero()[0])
                return Parting(node, place, canonical[place].item(), result[place].item())
        return None


class RoundingBound:
    """How far a relative change of the operands moves what an operation gives in binary64."""

    def __init__(self, node: AtenNode, values: Mapping[Ref, Tensor], terms: int) -> None:
        self._terms = math.sqrt(terms)
        refs = list(references(_arguments(node)))
        wide = {ref: values[ref].double() if values[ref].is_floating_point() else values[ref] for ref in refs}
        self._reach = _reach(node, [wide[ref] for ref in refs])
        self._slope = _slope_of_sums(node, wide) if node.operation in SUMS and not node.keywords else None
        self._slope = self._slope or _drawn_slope(node, wide)

    def is_beyond(self, output: int, canonical: Tensor, native: Tensor, is_drawn: bool) -> Tensor:
        """Where two results are further apart than rounding explains."""
        one, other = canonical.double(), native.double()
        unit = _BFLOAT if native.dtype == torch.bfloat16 else _SINGLE
        size = torch.maximum(one.abs(), other.abs())
        if self._slope is None:
            finite = other[torch.isfinite(other)]
            scale = finite.abs().max() if finite.numel() else torch.zeros((), dtype=torch.float64)
            return torch.isfinite(other) & ~((one - other).abs() <= _SAFETY * self._terms * unit * scale)
        slope = self._slope[output]
        allowed = _SAFETY * (unit * size + _SINGLE * self._terms * (slope + torch.minimum(one.abs(), other.abs())))
        if self._reach is not None:
            allowed = allowed + _SAFETY * unit * self._reach
        far = ~((one - other).abs() <= allowed)
        # Where the exact result is no number, torch contradicts itself between machines; one finite result is wrong.
        mixed = torch.isfinite(one) != torch.isfinite(other)
        small = torch.where(torch.isfinite(one), one.abs(), other.abs()) < 1e37
        return torch.where(torch.isfinite(slope), far, mixed & small & is_drawn)


def _reach(node: AtenNode, operands: Sequence[Tensor]) -> Tensor | None:
    """The size of the terms that cancel inside of an operation; None if nothing does."""
    if node.operation == LOG_SOFTMAX_BACKWARD:
        gradient, result = operands
        dim = node.arguments[2]
        assert isinstance(dim, int)
        return gradient.abs() + result.exp() * gradient.sum(dim, keepdim=True).abs()
    return sum((operand.abs() for operand in operands), torch.ones(())) if node.operation in UNSTABLE else None


def _slope_of_sums(node: AtenNode, operands: Mapping[Ref, Tensor]) -> list[Tensor] | None:
    """How far errors of the products move their sum: the root of the sum of their squares, as errors are drawn."""
    squares = {ref: value.square() if value.is_floating_point() else value for ref, value in operands.items()}
    sums = _in_binary64(node, squares)
    return sums and [total.sqrt_() for total in sums]


def _drawn_slope(node: AtenNode, operands: Mapping[Ref, Tensor]) -> list[Tensor] | None:
    """How far drawn errors of the operands move the results; None if torch has no binary64 here."""
    exact = _in_binary64(node, operands)
    if exact is None:
        return None
    slopes = [torch.zeros_like(value) for value in exact]
    errors = DrawnErrors(0, torch.float64)
    for _ in range(_DRAWS):
        drawn = {ref: errors.applied(v, _NUDGE) if v.is_floating_point() else v for ref, v in operands.items()}
        moved = _in_binary64(node, drawn)
        if moved is None:
            raise AssertionError("an operation that took binary64 takes it again")
        for slope, there, here in zip(slopes, moved, exact, strict=True):
            torch.maximum(slope, (there - here).abs_().div_(_NUDGE), out=slope)
    return slopes


def typed(words: Words, type_: AtenType) -> Tensor:
    """The tensor that words stand for."""
    if type_.dtype in {"float32", "bfloat16"}:
        return torch.from_numpy(words.view(np.float32)).to(DTYPES[type_.dtype])
    return torch.from_numpy(words.view(np.int32)).to(DTYPES[type_.dtype])


def fold_lengths(program: StepProgram, names: Sequence[str], operations: Collection[str]) -> dict[str, int]:
    """The most terms that an operation adds up, by its name; the lanes and pieces of a long sum count together."""
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
    """An argument with the types of values in place of them."""
    if isinstance(argument, Ref):
        return graph.type_of(argument)
    if isinstance(argument, tuple | list):
        return [_typed_as(item, graph) for item in argument]
    return argument


def _arguments(node: AtenNode) -> tuple[Argument, ...]:
    return (*node.arguments, *(value for _, value in node.keywords))


def _operands(node: AtenNode, values: Mapping[Ref, Tensor]) -> dict[int, tuple[Tensor, ...]]:
    """The operands as NativeExecutor keeps them: all outputs of a value in one tuple."""
    found: dict[int, dict[int, Tensor]] = {}
    for ref in references(_arguments(node)):
        found.setdefault(ref.value, {})[ref.output] = values[ref]
    empty = torch.empty(0)
    return {
        value: tuple(outputs.get(output, empty) for output in range(max(outputs) + 1))
        for value, outputs in found.items()
    }


def _suspects(node: AtenNode, canonical: Tensor, native: Tensor) -> Tensor:
    """Where results differ by more than a few units in the last place, or at all where nothing rounds."""
    if not native.is_floating_point():
        return canonical != native
    equal = (canonical == native) | (torch.isnan(canonical) & torch.isnan(native))
    if node.operation in MOVES:
        return ~equal
    one, other = canonical.double(), native.double()
    unit = _BFLOAT if native.dtype == torch.bfloat16 else _SINGLE
    near = (one - other).abs() <= _ULPS * unit * torch.maximum(one.abs(), other.abs())
    if node.operation in STEPS:
        # Torch's vectorized fmod gives NaN for quotients beyond about 2^100.
        near = near | (torch.isnan(native) & torch.isfinite(canonical))
    return ~(equal | near)


def _in_binary64(node: AtenNode, operands: Mapping[Ref, Tensor]) -> list[Tensor] | None:
    """The results of the operation on these operands, or None if torch has none in binary64."""

    def argument(given: Argument) -> object:
        if isinstance(given, Ref):
            return operands[given]
        if isinstance(given, TorchDType):
            return torch.float64 if DTYPES[given.name].is_floating_point else DTYPES[given.name]
        return [argument(item) for item in given] if isinstance(given, tuple) else given

    arguments = [argument(item) for item in node.arguments]
    keywords = {name: argument(item) for name, item in node.keywords}
    try:
        result = ALLOWED[node.operation](*arguments, **keywords)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    results = tuple(result) if isinstance(result, tuple | list) else (result,)
    return [tensor.double() for tensor in wanted(results, arguments)]


def _is_number(node: AtenNode, values: Mapping[Ref, Tensor], result: Tensor) -> Tensor:
    """Where the result is a number; what torch makes of NaN as a whole number differs between machines."""
    if result.is_floating_point():
        return torch.isfinite(result)
    first = node.arguments[0] if node.arguments else None
    if node.operation == "aten._to_copy.default" and isinstance(first, Ref):
        return torch.isfinite(values[first])
    return torch.ones_like(result, dtype=torch.bool)
