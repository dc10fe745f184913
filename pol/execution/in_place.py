"""Executes training steps on the arrays of one state: the next state is written over the present one, in its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.execution import _kernels
from pol.execution.cpu import check_machine, native_step, release_at_exit
from pol.execution.operand_sources import check_step
from pol.graph.step_program import StepProgram


class InPlaceExecutor:
    """The bits of `CpuExecutor.advance` in two calls, `begin` and `finish`; only the second one changes the state.

    Nothing is copied of what a training changes most, weights and the optimizer's numbers. Nodes up to the first one
    that writes over the state are computed by `begin`, which are forward and backward pass, the others by `finish`.

    Args:
        program: the step.
        threads: as for `CpuExecutor`.
        changing: the slots whose next tensors `finish` gives; the others stay as they are.
        observed: the nodes whose outputs `begin` gives.

    Raises as `CpuExecutor`.
    """

    def __init__(self, program: StepProgram, threads: int, changing: Sequence[int], observed: Sequence[int]) -> None:
        check_machine(_kernels.isa())
        program.validate()
        producers = [program.slots[slot].producer for slot in changing]
        kept = list(dict.fromkeys([*producers, *observed]))
        slots = [-1 if node in observed else changing[producers.index(node)] for node in kept]
        self._kernel = native_step(program, kept)
        release_at_exit(self)
        self._threads = threads
        written = self._kernel.write_over(slots)
        self._over = [slot if is_over else -1 for slot, is_over in zip(slots, written, strict=True)]
        """By result: the slot that it is written over, or -1; such a result has an array of its own."""
        self._results: list[Words] = [
            np.empty(0 if slot >= 0 else program.nodes[node].type.shape, np.uint32)
            for node, slot in zip(kept, self._over, strict=True)
        ]
        self._state_places = [kept.index(node) for node in producers]
        self._observed_places = [kept.index(node) for node in observed]
        self._begun: tuple[int, Sequence[Words], Sequence[Words], list[Words]] | None = None

    def begin(self, state: Sequence[Words], step: int, constants: Sequence[Words]) -> list[Words]:
        """The observed nodes' outputs, valid until the next step; the state is as it was.

        Args:
            state: dense arrays of the slots' types; if some share memory, copies are written in their place.
            step: the number of the step.
            constants: dense arrays of the constants' types.
        """
        check_step(step)
        self._begun = None
        try:
            results = self._placed(state)
            self._kernel.begin(step, state, constants, results, self._threads)
        except _kernels.MalformedError:
            state = [words.copy() for words in state]
            results = self._placed(state)
            self._kernel.begin(step, state, constants, results, self._threads)
        self._begun = step, state, constants, results
        return [results[place] for place in self._observed_places]

    def finish(self) -> list[Words]:
        """The changing slots after the step that was begun: the state's own arrays, where they were written over.

        Other arrays are valid until the next step.
        """
        assert self._begun is not None, "begin() comes before"
        step, state, constants, results = self._begun
        self._begun = None
        self._kernel.finish(step, state, constants, results, self._threads)
        return [results[place] for place in self._state_places]

    def _placed(self, state: Sequence[Words]) -> list[Words]:
        return [own if slot < 0 else state[slot] for own, slot in zip(self._results, self._over, strict=True)]
