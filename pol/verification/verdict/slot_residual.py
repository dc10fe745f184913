"""Slots whose residual is no rounding, though their component's is within its limit (docs/spec/verdict.md#slots).

A limit is over a component. Where one tensor goes far, the others could stay where they are. So a residual that is long
beside the way of its own slot is compared with that of reruns of the segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pol.arithmetic.primitives import Words
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType
from pol.training.task.task_document import LoadedTask
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.second_look import look_programs
from pol.verification.verdict.verdict import Outcome, Reason, Verdict

SHARE = 2.0**-6
"""Of a slot's way: what no threshold exceeds, for a component."""
ROUNDING = 2.0**-20
"""Of a slot's length: what the format of its numbers explains."""
RERUNS = 2
"""Of a segment with such a slot."""
NAMED = 3
"""Slots that a verdict names at most."""
MARGIN = 64
"""Times the furthest rerun of a slot: what the margin of a profile is for its thresholds."""


@dataclass(frozen=True)
class SlotExaminer:
    """Compares the residual of each slot with its way, and with reruns where it is long."""

    task: LoadedTask
    executor: ExecutorFactory

    @cached_property
    def programs(self) -> list[StepProgram]:
        """The programs of the reruns, made when the first segment needs them."""
        return look_programs(self.task.program, RERUNS)

    def unexplained(
        self, segment: int, start: Sequence[Words], replayed: Sequence[Words], end: Sequence[Words]
    ) -> list[str]:
        """The slots of f32 numbers whose residual neither their way nor reruns explain, by name."""
        task, interval = self.task, self.task.document.interval
        residuals = slot_lengths(task.program, replayed, end)
        ways = slot_lengths(task.program, replayed, start)
        sizes = [_norm(words) for words in replayed]
        long = [
            place
            for place, residual in enumerate(residuals)
            if residual > max(SHARE * ways[place], ROUNDING * sizes[place])
        ]
        if not long:
            return []
        furthest = [0.0] * len(residuals)
        for program in self.programs:
            rerun = replay_end(program, self.executor(program, task.constants), start, segment * interval, interval)
            furthest = [max(pair) for pair in zip(furthest, slot_lengths(task.program, replayed, rerun), strict=True)]
        return [task.names.slots[place] for place in long if residuals[place] > MARGIN * furthest[place]]


def marked(verdict: Verdict, unexplained: Sequence[str]) -> Verdict:
    """An accepted verdict with a mark, if there are slots that nothing explains; any other as it is."""
    if not unexplained or verdict.outcome is not Outcome.ACCEPTED:
        return verdict
    named = ", ".join(unexplained[:NAMED])
    detail = f"{verdict.detail}; beside their own ways, and reruns of them, these are far off: {named}"
    return replace(verdict, reasons=(*verdict.reasons, Reason.SLOT), detail=detail)


def slot_lengths(program: StepProgram, x: Sequence[Words], y: Sequence[Words]) -> list[float]:
    """By slot the length of x - y; 0 for integers, which have to be equal."""
    return [
        _distance(a, b) if slot.type.dtype is DType.F32 else 0.0 for slot, a, b in zip(program.slots, x, y, strict=True)
    ]


def _distance(x: Words, y: Words) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        apart = x.view(np.float32) - y.view(np.float32)
    # Numbers without a distance are judged by the sum over the component.
    return float(np.sqrt(np.square(apart[np.isfinite(apart)], dtype=np.float64).sum()))


def _norm(words: Words) -> float:
    numbers = words.view(np.float32)
    return float(np.sqrt(np.square(numbers[np.isfinite(numbers)], dtype=np.float64).sum()))
