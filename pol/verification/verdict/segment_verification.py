"""Verify one segment of a learning proof: fetch its checkpoints, replay, measure, decide (docs/spec/verdict.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from pol.arithmetic.primitives import Words
from pol.claims.distance import component_distances
from pol.claims.segment_claim import SegmentClaim, Three
from pol.commitments.receipt import receipt_nodes, receipt_of
from pol.commitments.tensor import state_root, tensor_root
from pol.errors import OperationalError, ProtocolError
from pol.execution.executor import Executor
from pol.graph.step_program import StepProgram
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.replay.canonical_replay import Observe, replay_end
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide, outcome_of_failure

T = TypeVar("T")
Compare: TypeAlias = Callable[[Sequence[Words], Sequence[Words], Sequence[Words]], None]
"""``compare(start, replayed, end)``: the solver's start, the end of the replay from it, and the solver's."""
SecondLookCallback: TypeAlias = Callable[[Verdict, Sequence[Words], Sequence[Words]], Verdict]
"""``second_look(verdict, start, end)``: optional second look at a rejected segment (`second_look.SecondLooker`)."""


@dataclass(frozen=True)
class ReplayedSegment:
    """The replay of a segment: its last state, that in the middle if references are those of halves, and a receipt."""

    state: Sequence[Words]
    middle: Sequence[Words] | None = None
    before: bytes = bytes(32)
    receipt: bytes = bytes(32)


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
    """
    replayed = replay_from(program, executor, start, segment, interval, None, receipt_seed, halves)
    return measure(program, start, replayed, end, segment)


def replay_from(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    segment: int,
    interval: int,
    observe: Observe | None = None,
    receipt_seed: bytes | None = None,
    halves: bool = False,
) -> ReplayedSegment:
    """Replay a segment from ``start``.

    ``observe`` receives the observed values of each step. With ``receipt_seed`` the claim has a receipt of the last
    step, of which nothing is observed.
    With ``halves`` references are the longest of the ways of both halves and of the whole: a training that comes back
    has gone a way.
    """
    first = segment * interval
    if halves:
        half = interval // 2
        middle = replay_end(program, executor, start, first, half, observe)
        return ReplayedSegment(replay_end(program, executor, middle, first + half, interval - half, observe), middle)
    if receipt_seed is None:
        return ReplayedSegment(replay_end(program, executor, start, first, interval, observe))
    drawing = executor.observing(receipt_nodes(receipt_seed, len(program.nodes)))
    own = drawing if observe is None else executor
    state = replay_end(program, own, start, first, interval - 1, observe)
    before, receipt, end = execute_with_receipt(program, drawing, state, first + interval - 1, receipt_seed)
    return ReplayedSegment(end, None, before, receipt)


def measure(
    program: StepProgram, start: Sequence[Words], replayed: ReplayedSegment, end: Sequence[Words], segment: int
) -> SegmentClaim:
    """The claim that follows from a replay and the solver's states."""
    types = [slot.type for slot in program.slots]
    return SegmentClaim(
        segment=segment,
        start=state_root(types, start),
        end=state_root(types, end),
        replay=state_root(types, replayed.state),
        distances=component_distances(program, replayed.state, end),
        references=_ways(program, start, replayed.middle, replayed.state),
        before=replayed.before,
        receipt=replayed.receipt,
    )


def _ways(program: StepProgram, start: Sequence[Words], middle: Sequence[Words] | None, end: Sequence[Words]) -> Three:
    whole = component_distances(program, end, start)
    if middle is None:
        return whole
    rows = zip(
        whole, component_distances(program, middle, start), component_distances(program, end, middle), strict=True
    )
    parameter, buffer, optimizer = (max(row) for row in rows)
    return parameter, buffer, optimizer


def execute_with_receipt(
    program: StepProgram, executor: Executor, state: Sequence[Words], step: int, seed: bytes
) -> tuple[bytes, bytes, list[Words]]:
    """The last step of a segment: the state root before it, its receipt, and the state after it.

    ``executor`` observes the nodes that the seed draws: only their outputs are kept in memory.
    """
    after, observed = executor.advance(state, step)
    types = [program.nodes[number].type for number in receipt_nodes(seed, len(program.nodes))]
    before = state_root([slot.type for slot in program.slots], state)
    return before, receipt_of([tensor_root(*each) for each in zip(types, observed, strict=True)]), after


def verify_segment(
    store: Store,
    task: LoadedTask,
    proof: LearningProof,
    executor: Executor,
    segment: int,
    thresholds: Three,
    second_look: SecondLookCallback | None = None,
    receipt_seed: bytes | None = None,
) -> Verdict:
    """Fetch, replay and decide one segment of a learning proof, as `verify_entries`."""
    if not 0 <= segment < task.document.segments:
        raise ProtocolError(f"no segment {segment}: the task has {task.document.segments}")
    start, end = proof.checkpoints[segment : segment + 2]
    return verify_entries(
        store, task, start, end, executor, thresholds, second_look=second_look, receipt_seed=receipt_seed
    )


def verify_entries(
    store: Store,
    task: LoadedTask,
    start: TaskCheckpoint,
    end: TaskCheckpoint,
    executor: Executor,
    thresholds: Three,
    observe: Observe | None = None,
    second_look: SecondLookCallback | None = None,
    receipt_seed: bytes | None = None,
    compare: Compare | None = None,
    halves: bool = False,
) -> Verdict:
    """Fetch, replay and decide the segment between two entries of a checkpoint log that follow on each other.

    Bad evidence is REJECTED. If the evidence can't be read, or the store returns other bytes than those that were asked
    for, the segment is INCONCLUSIVE: that proves nothing about the solver. A segment that the thresholds reject may get
    a second look.
    """
    segment = start.index
    first = load_evidence(segment, lambda: load_checkpoint(store, task, start))
    if isinstance(first, Verdict):
        return first
    is_there = True
    with suppress(OperationalError):
        is_there = store.exists(end.object)
    if not is_there:
        # Before a replay in vain.
        missing = load_evidence(segment, lambda: load_checkpoint(store, task, end))
        if isinstance(missing, Verdict):
            return missing
    try:
        replayed = replay_from(
            task.program, executor, first, segment, task.document.interval, observe, receipt_seed, halves
        )
    except (OperationalError, MemoryError) as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), f"couldn't replay: {error}")
    # Read only now: during a replay a state less is in memory.
    last = load_evidence(segment, lambda: load_checkpoint(store, task, end))
    if isinstance(last, Verdict):
        return last
    states = first, last
    try:
        if compare is not None:
            compare(first, replayed.state, last)
        claim = measure(task.program, first, replayed, last, segment)
        del replayed
        verdict = decide(claim, thresholds)
        if second_look is not None and verdict.outcome is Outcome.REJECTED:
            verdict = second_look(verdict, *states)
    except (OperationalError, MemoryError) as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), f"couldn't replay: {error}")
    if not {Reason.DISTANCE_INFINITE, Reason.REFERENCE_INFINITE} & set(verdict.reasons):
        return verdict
    found = {name: reason for state in states for name, reason in _without_distance(task, state).items()}
    told = [f"{name} is {reason.value}" for name, reason in found.items()] or ["the replay isn't finite"]
    reasons = tuple(dict.fromkeys((*verdict.reasons, *found.values())))
    return Verdict(segment, Outcome.REJECTED, reasons, "; ".join([verdict.detail, *told]), claim)


def _without_distance(task: LoadedTask, state: Sequence[Words]) -> dict[str, Reason]:
    """Slots of a state that hold a number without a distance, each with the reason."""
    found = dict[str, Reason]()
    for position, (name, words) in enumerate(zip(task.names.slots, state, strict=True)):
        if not task.program.has_distances(position, words):
            found[name] = _worst(words)
    return found


def _worst(words: Words) -> Reason:
    numbers = words.view(np.float32)
    if np.isnan(numbers).any():
        return Reason.NOT_A_NUMBER
    return Reason.INFINITE if np.isinf(numbers).any() else Reason.OUT_OF_RANGE


def load_evidence(segment: int, load: Callable[[], T]) -> T | Verdict:
    """The evidence that ``load`` fetches, or the verdict that follows from the way it failed."""
    try:
        return load()
    except (ProtocolError, OperationalError, MemoryError) as error:
        outcome, reason = outcome_of_failure(error)
        return Verdict(segment, outcome, (reason,), str(error))
