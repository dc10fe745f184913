"""The states of a segment: few are kept, the others are computed again from the nearest one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import state_root
from pol.graph.step_program import StepProgram

KEPT_BYTES = 256 << 20
"""Of the states between the first and the last that was asked for. Large states are computed again."""

Advance: TypeAlias = Callable[[Sequence[Words], int], list[Words]]
"""``advance(state, step)``: the state after a step."""


class SegmentStates:
    """The states before and after each step of a segment, and their roots.

    Four states are in memory at most: the first, the one that is held, the last that was asked for, and the next while
    a step is executed; and as many evenly spaced ones as fit into ``kept_bytes``. Each root is computed once.
    """

    def __init__(
        self,
        program: StepProgram,
        advance: Advance,
        start: Sequence[Words],
        first_step: int,
        steps: int,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._types = [slot.type for slot in program.slots]
        self._advance = advance
        self._first = first_step
        size = 4 * sum(type_.numel for type_ in self._types)
        places = kept_bytes // size if size else steps
        # Every so many steps one is kept; a segment of so few steps keeps all.
        self._stride = max(1, -(-steps // places)) if places else steps + 1
        self._kept = {first_step: list(start)}
        self._last = self._held = (first_step, self._kept[first_step])
        self._roots: dict[int, bytes] = {}
        self.most_bytes = size * (4 + min(places, steps))

    def state(self, step: int) -> list[Words]:
        """The state before ``step``."""
        return self._at(step, hashed=False)

    def root(self, step: int) -> bytes:
        """The root of the state before ``step``; those of all states on the way to it are computed with it."""
        if step not in self._roots:
            # From the first state without a root: later questions about the segment take no execution.
            begin = max((known for known in self._roots if known < step), default=self._first - 1) + 1
            self._at(begin, hashed=True)
            self._at(step, hashed=True)
        return self._roots[step]

    def hold(self, step: int) -> list[Words]:
        """The state before ``step``, which stays in memory until another one is to: a dispute has come down to it."""
        self._held = (step, self.state(step))
        return self._held[1]

    def replace(self, step: int, state: Sequence[Words]) -> None:
        """Say that the state before ``step`` is another one; what is known of later states is forgotten."""
        self._kept = {known: own for known, own in self._kept.items() if known < step} | {step: list(state)}
        self._roots = {known: own for known, own in self._roots.items() if known < step}
        self._last = self._held = (step, self._kept[step])

    def _at(self, step: int, hashed: bool) -> list[Words]:
        known = (*self._kept.items(), self._last, self._held)
        last, state = max((each for each in known if each[0] <= step), key=lambda each: each[0])
        while True:
            if hashed and last not in self._roots:
                self._roots[last] = state_root(self._types, state)
            if (last - self._first) % self._stride == 0:
                self._kept.setdefault(last, state)
            self._last = (last, state)
            if last == step:
                return state
            state = self._advance(state, last)
            last += 1
