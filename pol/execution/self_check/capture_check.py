"""The self-check of a capture: is the program the training that the user wrote? docs/spec/program.md, "Self-check".

It runs two steps on drawn rows of the order, from the first state. Every operation of the program is compared with
torch's on the same operands (`node_check`). Loss, gradients and next state are compared with those of the user's own
eager step, up to rounding (`rounding_noise`). At last every operation is compared on edge cases: zeros, ties, the
greatest numbers of the data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.self_check.eager_step import EagerStep
from pol.execution.self_check.hard_operands import hard_operands
from pol.execution.self_check.kept_executors import KeptExecutors
from pol.execution.self_check.node_check import NodeCheck, fold_lengths, typed
from pol.execution.self_check.rounding_bound import NoisyExecutor
from pol.graph.aten_graph import AtenGraph, AtenType, Ref
from pol.graph.capture.tracing.aten_recorder import loss_label
from pol.graph.capture.tracing.step_inputs import ORDER
from pol.graph.capture.tracing.trace import without_collection
from pol.graph.lowering import Lowering
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType
from pol.graph.work_estimate import step_work

_T = TypeVar("_T")
BLOCK = 1 << 16
"""Elements that are compared at a time: they fit the cache, and large tensors take no copies in binary64."""
ATTEMPTS = 4
"""Pairs of steps that all have to differ: a number next to a discontinuity makes one pair differ, an error all."""
NOISY_RUNS = 4
SMALL_WORK = 1 << 27
"""Work units below which a step runs on one thread: handing its small products to others takes longer than they do."""
ADVICE = (
    "The captured program isn't the training that your loop runs: write this part with other operations, and please "
    "report it with this line; check=False captures it nevertheless"
)
SAFETY = 8.0
"""The difference that two executions may have, in units of the drawn noise."""


@dataclass(frozen=True)
class SelfCheck:
    """A captured step and the user's own; `gradients` are the values of the graph before clipping."""

    own: EagerStep
    lowering: Lowering
    gradients: Mapping[str, Ref]
    program: StepProgram
    names: ProgramNames
    state: Sequence[Words]
    constants: Sequence[Words]

    def require_same(self) -> None:
        """Raises UnsupportedError, with the first line that differs, unless both are the same training."""
        _require_usual_modes()
        with ExitStack() as small:
            if step_work(self.program) < SMALL_WORK:
                small.enter_context(_one_thread())
                small.enter_context(without_collection())
            self._require_same()

    def _require_same(self) -> None:
        difference = ""
        for attempt in range(ATTEMPTS):
            difference = self._own_step_differs(attempt)
            if not difference:
                break
        else:
            raise UnsupportedError(f"{difference}. {ADVICE}")
        for state, constants in hard_operands(self.graph, self.state, self.constants):
            self._require_operations(state, constants, 0, is_drawn=False)

    def _own_step_differs(self, attempt: int) -> str:
        constants = self._with_rows(attempt)
        order = self._order(constants)
        with self.own.run_on_objects() as own:
            first = self.own.inputs.first
            for step in range(first, min(first + 2, self.own.steps)):
                state = [_words(now, slot.type) for now, slot in zip(own.state(), self.graph.slots, strict=True)]
                losses, gradients = own.run(
                    torch.from_numpy(order[0 if self.own.inputs.same_rows else step].astype(np.int64)), step
                )
                if attempt == 0:
                    self._require_operations(state, constants, step, is_drawn=True)
                values = {loss_label(turn, len(losses)): loss for turn, loss in enumerate(losses)}
                values |= _marked(gradients)
                difference = self._difference(state, constants, step, values, own.state())
                if difference:
                    return difference
        return ""

    def _difference(
        self,
        state: Sequence[Words],
        constants: Sequence[Words],
        step: int,
        values: Mapping[str, Tensor],
        after: Sequence[Tensor],
    ) -> str:
        """The first difference from the user's step that rounding does not explain, or an empty string."""
        watched = self._watched
        program, names = self._watched_program
        places = [names.observed[name] for name, _ in watched.observed]
        words, observed = self._executors.advance(program, places, state, constants, step)
        self._require_unwatched(words, state, constants, step)
        refs = [*(ref for _, ref in watched.observed), *watched.next_state]
        canonical = [typed(item, watched.type_of(ref)) for item, ref in zip([*observed, *words], refs, strict=True)]
        labels = [*(name for name, _ in watched.observed), *(f"the next {slot.name}" for slot in watched.slots)]
        own = [*(values.get(name) for name, _ in watched.observed), *after]
        for name, value in values.items():
            if name not in dict(watched.observed) and bool(value.any()):
                return f"{name}, which your own step computes, is no part of the program"
        return self._beyond_noise(state, constants, step, list(zip(labels, refs, canonical, own, strict=True)))

    def _beyond_noise(
        self,
        state: Sequence[Words],
        constants: Sequence[Words],
        step: int,
        compared: Sequence[tuple[str, Ref, Tensor, Tensor | None]],
    ) -> str:
        """The first value that differs by more than drawn roundings move it, or an empty string.

        Roundings are drawn until they explain every difference, at most NOISY_RUNS times.
        """
        graph = self._watched
        given = [typed(item, slot.type) for item, slot in zip(state, graph.slots, strict=True)]
        data = list(self.own.inputs.dataset.values())  # The first constants; torch has them already.
        rest = zip(constants[len(data) :], graph.constants[len(data) :], strict=True)
        fixed = [*data, *(typed(item, entry.type) for item, entry in rest)]
        apart = [0.0 if own is None else _distance(canonical, own) for _, _, canonical, own in compared]
        last = [_rounding(canonical) for _, _, canonical, _ in compared]
        moved = [0.0] * len(compared)
        for seed in range(NOISY_RUNS):
            # Next to a boundary an error leads to an index that doesn't exist: such a run explains nothing.
            with suppress(ProtocolError):
                after, observed = NoisyExecutor(graph, self._terms, seed).run(given, fixed, step)
                found = [*(observed[name] for name, _ in graph.observed), *after]
                moved = [max(m, _distance(c, f)) for m, (_, _, c, _), f in zip(moved, compared, found, strict=True)]
            allowed = [SAFETY * noise + rounding for noise, rounding in zip(moved, last, strict=True)]
            beyond = [place for place, most in enumerate(allowed) if apart[place] > most]
            if not beyond:
                return ""
        label, ref, _, _ = compared[beyond[0]]
        return (
            f"{self._line(ref)} -- {label} differs from your own step's by {apart[beyond[0]]:.3g}, rounding explains "
            f"{allowed[beyond[0]]:.3g}"
        )

    def _require_unwatched(
        self, watched: Sequence[Words], state: Sequence[Words], constants: Sequence[Words], step: int
    ) -> None:
        words, _ = self._executors.advance(self.program, (), state, constants, step)
        if any(not np.array_equal(one, other) for one, other in zip(watched, words, strict=True)):
            raise AssertionError("observing values must not change a program's bits")

    def _require_operations(
        self, state: Sequence[Words], constants: Sequence[Words], step: int, is_drawn: bool
    ) -> None:
        found = self._operations.first(state, constants, step, is_drawn)
        if found is not None:
            raise UnsupportedError(
                f"{found.node.source} -- {found.node.operation} gives {found.canonical:.9g} in the program and "
                f"{found.native:.9g} in torch, at {found.place} of {found.node.name}. {ADVICE}"
            )

    @cached_property
    def _operations(self) -> NodeCheck:
        return NodeCheck(self.lowering, self._terms, self._executors)

    @cached_property
    def _executors(self) -> KeptExecutors:
        return KeptExecutors(torch.get_num_threads())

    @property
    def graph(self) -> AtenGraph:
        """The captured step."""
        return self.lowering.graph

    @cached_property
    def _watched(self) -> AtenGraph:
        """The graph with its gradients among the observed values."""
        return replace(self.graph, observed=(*self.graph.observed, *_marked(self.gradients).items()))

    @cached_property
    def _watched_program(self) -> tuple[StepProgram, ProgramNames]:
        return self.lowering.program(self._watched.next_state, self._watched.observed)

    @cached_property
    def _terms(self) -> Mapping[str, int]:
        operations = {node.name for node in self.graph.nodes}
        return fold_lengths(self.program, [node.name for node in self.names.nodes], operations)

    def _order(self, constants: Sequence[Words]) -> Words:
        return constants[self._place_of_order].view(np.int32)

    @cached_property
    def _place_of_order(self) -> int:
        return next(place for place, entry in enumerate(self.graph.constants) if entry.name == ORDER)

    def _with_rows(self, attempt: int) -> list[Words]:
        """The constants with drawn rows at the beginning of the order, for the first steps."""
        order = self.constants[self._place_of_order]
        drawn = np.random.Generator(np.random.Philox(attempt)).integers(0, len(order), min(len(order), 2))
        changed = order.copy()
        changed[: len(drawn)] = order[drawn]
        return [changed if place == self._place_of_order else item for place, item in enumerate(self.constants)]

    def _line(self, ref: Ref) -> str:
        """The line of the user's code that a value comes from."""
        first = len(self.graph.inputs)
        if ref.value < first:
            return f"{self.graph.inputs[ref.value].name}, which the program leaves as it is"
        node = self.graph.nodes[ref.value - first]
        return f"{node.source} ({node.operation})"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch's operations run on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _marked(gradients: Mapping[str, _T]) -> dict[str, _T]:
    return {f"the gradient of {name}": value for name, value in gradients.items()}


def _words(tensor: Tensor, type_: AtenType) -> Words:
    """The words of a tensor; for binary32 they share its memory."""
    own = tensor.detach().contiguous()
    return own.to(torch.float32 if type_.words.dtype is DType.F32 else torch.int32).numpy().view(np.uint32)


def _distance(one: Tensor, other: Tensor) -> float:
    """The greatest difference of two tensors' elements; infinite where only one is NaN."""
    if torch.equal(one, other):
        return 0.0
    pairs = zip(_blocks(one), _blocks(other), strict=True)
    return max(_distance_of_block(first, second) for first, second in pairs)


def _blocks(tensor: Tensor) -> Iterator[Tensor]:
    flat = tensor.reshape(-1)
    return (flat[begin : begin + BLOCK] for begin in range(0, len(flat), BLOCK))


def _distance_of_block(one: Tensor, other: Tensor) -> float:
    if one.dtype == torch.float32 == other.dtype:
        greatest = float((one - other).abs_().max())
        if math.isfinite(greatest):
            return greatest
    first, second = one.double(), other.double()
    same = (first == second) | (torch.isnan(first) & torch.isnan(second))
    apart = torch.where(same, 0.0, (first - second).abs_())
    return float(torch.where(torch.isnan(apart), torch.inf, apart).max())


def _rounding(tensor: Tensor) -> float:
    """One rounding error of the greatest element."""
    if not tensor.is_floating_point():
        return 0.0
    unit = 2.0**-7 if tensor.dtype == torch.bfloat16 else 2.0**-22
    return unit * max(_greatest_of_block(block) for block in _blocks(tensor))


def _greatest_of_block(numbers: Tensor) -> float:
    greatest = float(numbers.abs().max())
    if math.isfinite(greatest):
        return greatest
    finite = numbers[torch.isfinite(numbers)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _require_usual_modes() -> None:
    """torch, which is compared with, has to round to nearest and keep subnormal numbers, in all of its threads."""
    # One operation for all threads: each one more makes them wait for each other.
    terms = np.array([[1.0, 2.0**-24], [1.0, 3 * 2.0**-24], [1.5 * 2.0**-126, -(2.0**-126)]], np.float32)
    first, second = (torch.from_numpy(np.tile(column, torch.get_num_threads() << 14)) for column in terms.T)
    sums = (first + second).numpy().reshape(-1, 3)
    is_nearest = (sums[:, 0] == 1).all() and (sums[:, 1] == 1 + 2.0**-22).all()
    if not is_nearest or not sums[:, 2].view(np.uint32).all():
        found = "flushes subnormal numbers to zero" if is_nearest else "doesn't round to nearest"
        raise UnsupportedError(
            f"torch {found} in this process, so a program can't be compared with it: leave out "
            "torch.set_flush_denormal(True), or what else sets the processor's modes, as an extension with -ffast-math"
        )
