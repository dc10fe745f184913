"""Replays and metrics in one call, as verification makes them in several."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import SegmentClaim
from pol.execution.executor import Executor
from pol.graph.step_program import Component, StepProgram
from pol.verification.profile.state_metrics import ComponentMetrics, derive, gaps
from pol.verification.verdict.segment_verification import measure, replay_from


def measure_segment(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    end: Sequence[Words],
    segment: int,
    interval: int,
    receipt_seed: bytes | None = None,
    halves: bool = False,
) -> SegmentClaim:
    """Replay a segment from the solver's ``start`` and measure how far the solver's ``end`` is from the result.

    ``receipt_seed`` and ``halves`` as in `replay_from`.

    Raises:
        ProtocolError: ``start`` or ``end`` isn't a state of the program.
    """
    replayed = replay_from(program, executor, start, segment, interval, None, receipt_seed, halves)
    return measure(program, start, replayed, end, segment)


def component_metrics(
    program: StepProgram, start: Sequence[Words], x: Sequence[Words], y: Sequence[Words], component: Component
) -> ComponentMetrics | None:
    """The metrics of one component's f32 slots; None if the program has none.

    Raises:
        ProtocolError: a state doesn't fit the program.
    """
    place = component - 1
    update = gaps(program, x, start)[place]
    if not update.elements:
        return None
    return derive(update, gaps(program, x, y)[place], gaps(program, y, start)[place])
