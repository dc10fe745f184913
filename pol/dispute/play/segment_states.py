"""The states of a segment: few are kept, the others are computed again from the nearest one before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import state_root
from pol.dispute.dispute_needs import KEPT_BYTES, held_state_bytes
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import TensorType

Advance: TypeAlias = Callable[[Sequence[Words], int], list[Words]]
"""``advance(state, step)``: the state after a step."""
Load: TypeAlias = Callable[[], Sequence[Words]]
"""Gives the state before the first step again."""


class Journal(Protocol):
    """Knowledge about a segment that outlives the process: after a restart nothing of it is computed again."""

    def roots(self) -> Mapping[int, bytes]:
        """The noted roots, by step."""
        ...

    def note(self, step: int, root: bytes) -> None:
        """Note the root of the state before ``step``."""
        ...

    def row(self, step: int) -> list[bytes] | None:
        """The noted roots of the outputs of ``step``; None if there are none."""
        ...

    def note_row(self, step: int, roots: Sequence[bytes]) -> None:
        """Note the roots of the outputs of ``step``."""
        ...

    def held(self) -> Collection[int]:
        """The steps whose states are held."""
        ...

    def state(self, step: int, types: Sequence[TensorType]) -> list[Words] | None:
        """The held state before ``step``; None if it can't be read. Its root is still to be checked."""
        ...

    def hold(self, step: int, state: Sequence[Words]) -> None:
        """Hold this state; older ones may go."""
        ...


class SegmentStates:
    """The states before and after each step of a segment, and their roots.

    In memory are the state that a dispute has come down to, the last that was asked for, the next while a step is
    executed, the first unless it can be loaded again, and as many evenly spaced ones as fit into ``kept_bytes``. Each
    root is computed once.
    """

    def __init__(
        self,
        program: StepProgram,
        advance: Advance,
        start: Sequence[Words] | None,
        first_step: int,
        steps: int,
        kept_bytes: int = KEPT_BYTES,
        load: Load | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._types = [slot.type for slot in program.slots]
        self._advance, self._load, self._journal = advance, load, journal
        self._first = first_step
        size = 4 * sum(type_.numel for type_ in self._types)
        places = kept_bytes // size if size else steps
        # Every so many steps one is kept; a segment of so few steps keeps all.
        self._stride = max(1, -(-steps // places)) if places else steps + 1
        self._is_first_kept = load is None or places > 0
        self._kept: dict[int, list[Words]] = {}
        self._last: tuple[int, list[Words]] | None = None if start is None else (first_step, list(start))
        self._held: tuple[int, list[Words]] | None = None
        if self._last is not None and self._is_first_kept:
            self._kept[first_step] = self._last[1]
        self._roots = {} if journal is None else dict(journal.roots())
        self.most_bytes = held_state_bytes(size, steps, kept_bytes) + (size if load is None else 0)

    @property
    def are_journaled(self) -> bool:
        """Whether the journal has all known roots, and the state that stays until another one is held."""
        if self._journal is None or not self._roots.items() <= self._journal.roots().items():
            return False
        return self._held is None or self._held[0] in self._journal.held()

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
        """The state before ``step``, which stays until another one is held: a dispute has come down to it.

        The last that was asked for is let go.
        """
        if self._held is None or self._held[0] != step:
            self._held = None  # let go before the other one is computed
            self._held = (step, self.state(step))
            if self._journal is not None and step not in self._journal.held():
                self.root(step)
                self._journal.hold(step, self._held[1])
        self._last = self._held
        return self._held[1]

    def replace(self, step: int, state: Sequence[Words]) -> None:
        """Say that the state before ``step`` is another one; what is known of later states is forgotten."""
        self._kept = {known: own for known, own in self._kept.items() if known < step} | {step: list(state)}
        self._roots = {known: own for known, own in self._roots.items() if known < step}
        self._last = self._held = (step, self._kept[step])

    def _at(self, step: int, hashed: bool) -> list[Words]:
        last, state = self._nearest(step)
        while True:
            if hashed and last not in self._roots:
                self._roots[last] = state_root(self._types, state)
                if self._journal is not None:
                    self._journal.note(last, self._roots[last])
            if (last - self._first) % self._stride == 0 and (last > self._first or self._is_first_kept):
                self._kept.setdefault(last, state)
            self._last = (last, state)
            if last == step:
                return state
            state = self._advance(state, last)
            last += 1

    def _nearest(self, step: int) -> tuple[int, list[Words]]:
        """The last state at ``step`` or before it that needn't be computed."""
        own = (*self._kept.items(), *(each for each in (self._last, self._held) if each is not None))
        known = [each for each in own if each[0] <= step]
        last, state = max(known, key=lambda each: each[0], default=(self._first - 1, list[Words]()))
        if self._journal is not None:
            for held in sorted((held for held in self._journal.held() if last < held <= step), reverse=True):
                found = self._journal.state(held, self._types)
                if found is not None and state_root(self._types, found) == self._roots.get(held):
                    return held, found
        if last >= self._first:
            return last, state
        assert self._load is not None, "without it the first state is kept"
        return self._first, list(self._load())
