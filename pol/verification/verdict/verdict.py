"""What a verifier says about a segment: claims, the acceptance rule and the three outcomes (docs/spec/verdict.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pol.arithmetic.primitives import Words
from pol.claims.distance import SATURATION, UNEQUAL, component_distances
from pol.claims.segment_claim import Claim, Three
from pol.commitments.tensor import state_root
from pol.errors import EvidenceError, Fault, OperationalError, ProtocolError, UnsupportedError
from pol.execution.executor import Executor
from pol.graph.step_program import Component, StepProgram
from pol.training.storage.store import CorruptObjectError, Store
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.replay.replay import Observe, replay_end

if TYPE_CHECKING:
    from pol.verification.verdict.second_look import SecondLook

THRESHOLD_BITS = 64
EXACT: Three = (0, 0, 0)
"""Thresholds of exact mode: the solver ran canonically, so roots are equal and nothing is without a distance."""


class Outcome(IntEnum):
    """The outcome of a verification; zero means nothing."""

    ACCEPTED = 1
    REJECTED = 2
    INCONCLUSIVE = 3


class Reason(StrEnum):
    """Why; for programs. ``Verdict.detail`` says it to people.

    What is wrong with evidence is told by its `pol.errors.Fault`, which is a reason as well; ``BAD_EVIDENCE`` is all
    other.
    """

    WITHIN_THRESHOLD = "within-threshold"
    EQUAL_ROOTS = "equal-roots"
    WITHIN_SECOND_LOOK = "within-second-look"

    DISTANCE_ABOVE_THRESHOLD = "distance-above-threshold"
    ROOTS_DIFFER = "roots-differ"
    INTEGERS_DIFFER = "integers-differ"
    DISTANCE_INFINITE = "distance-infinite"
    REFERENCE_INFINITE = "reference-infinite"
    ZERO_ROOT = "zero-root"
    NOT_A_NUMBER = "not-a-number"
    INFINITE = "infinite"
    OUT_OF_RANGE = "out-of-range"

    BAD_EVIDENCE = "bad-evidence"

    CORRUPT_OBJECT = "corrupt-object"
    NOT_AVAILABLE = "not-available"
    UNSUPPORTED = "unsupported"
    WORKER_LOST = "worker-lost"


Reasons = tuple[Reason | Fault, ...]


@dataclass(frozen=True)
class Verdict:
    """The outcome for one segment. ``claim`` is None if the evidence didn't allow a replay.

    ``look`` is what it was judged by in place of the thresholds, if they reject the claim.
    """

    segment: int
    outcome: Outcome
    reasons: Reasons
    detail: str
    claim: Claim | None = None
    look: SecondLook | None = None


Again: TypeAlias = "Callable[[Verdict, Sequence[Words]], Verdict]"
"""``again(verdict, start)``: the last word on a segment (`pol.verification.verdict.second_look.SecondLooker`)."""


def is_accepted(distance: int, reference: int, threshold: int) -> bool:
    """The acceptance rule for one component.

    No integer differs, and ``distance * 2^64 <= threshold * travelled(reference)``. If no number moved (or the program
    has no such slots) only a distance of zero is accepted.

    Raises:
        ProtocolError: the threshold isn't a uint64.
    """
    if not 0 <= threshold < 1 << THRESHOLD_BITS:
        raise ProtocolError(f"threshold {threshold} isn't an unsigned 64-bit integer")
    if not 0 <= distance < UNEQUAL or not 0 <= reference < SATURATION:
        return False
    return distance << THRESHOLD_BITS <= threshold * travelled(reference)


def travelled(reference: int) -> int:
    """The part of a finite reference that comes from f32 words: integers have to be equal, whatever way they went."""
    return reference % UNEQUAL


def measure(
    program: StepProgram,
    executor: Executor,
    start: Sequence[Words],
    end: Sequence[Words],
    segment: int,
    interval: int,
    observe: Observe | None = None,
) -> Claim:
    """Replay a segment from the solver's ``start`` and measure how far the solver's ``end`` is from the result.

    ``observe`` is told what each step shows on the way.

    Raises:
        ProtocolError: ``start`` or ``end`` isn't a state of the program.
    """
    types = [slot.type for slot in program.slots]
    replayed = replay_end(program, executor, start, segment * interval, interval, observe)
    return Claim(
        segment=segment,
        start=state_root(types, start),
        end=state_root(types, end),
        replay=state_root(types, replayed),
        distances=component_distances(program, replayed, end),
        references=component_distances(program, replayed, start),
    )


def decide(claim: Claim, thresholds: Three) -> Verdict:
    """The verdict that follows from a claim; the contract decides the same.

    In exact mode the roots have to be equal, beside the rule for each component: equal states may hold what isn't
    finite, and states that differ may have no distance.
    """
    if not any(claim.start) or not any(claim.end):
        detail = f"segment {claim.segment} begins or ends in a zero root, which is no state"
        return Verdict(claim.segment, Outcome.REJECTED, (Reason.ZERO_ROOT,), detail, claim)
    exact = thresholds == EXACT
    if exact and claim.replay != claim.end:
        detail = f"the replay ends in root {claim.replay.hex()}, the solver's segment in {claim.end.hex()}"
        return Verdict(claim.segment, Outcome.REJECTED, (Reason.ROOTS_DIFFER,), detail, claim)
    reasons: list[Reason] = []
    details: list[str] = []
    rows = zip(Component, claim.distances, claim.references, thresholds, strict=True)
    for component, distance, reference, threshold in rows:
        if is_accepted(distance, reference, threshold):
            continue
        reason = _reason(distance, reference)
        if reason not in reasons:
            reasons.append(reason)
        relative = relative_distance(distance, reference)
        details.append(
            f"{component.name.lower()}: {relative:.3g} of the distance travelled, limit {limit(threshold):.3g}"
        )
    if reasons:
        return Verdict(claim.segment, Outcome.REJECTED, tuple(reasons), "; ".join(details), claim)
    if exact:
        detail = f"segment {claim.segment} ends in the replayed state, bit for bit"
        return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.EQUAL_ROOTS,), detail, claim)
    detail = f"segment {claim.segment} is within the threshold"
    return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,), detail, claim)


def _reason(distance: int, reference: int) -> Reason:
    if distance >= SATURATION:
        return Reason.DISTANCE_INFINITE
    if distance >= UNEQUAL:
        return Reason.INTEGERS_DIFFER
    return Reason.REFERENCE_INFINITE if reference >= SATURATION else Reason.DISTANCE_ABOVE_THRESHOLD


def verify_segment(
    store: Store,
    task: LoadedTask,
    proof: LearningProof,
    executor: Executor,
    segment: int,
    thresholds: Three,
    again: Again | None = None,
) -> Verdict:
    """Fetch, replay and decide one segment of a learning proof, as `verify_entries`.

    Raises:
        ProtocolError: there is no such segment.
    """
    if not 0 <= segment < task.document.segments:
        raise ProtocolError(f"no segment {segment}: the task has {task.document.segments}")
    start, end = proof.checkpoints[segment : segment + 2]
    return verify_entries(store, task, start, end, executor, thresholds, again=again)


def verify_entries(
    store: Store,
    task: LoadedTask,
    start: TaskCheckpoint,
    end: TaskCheckpoint,
    executor: Executor,
    thresholds: Three,
    observe: Observe | None = None,
    again: Again | None = None,
) -> Verdict:
    """Fetch, replay and decide the segment between two entries of a checkpoint log that follow on each other.

    Bad evidence is REJECTED. Whatever keeps us from looking, including a store that hands out other bytes than those
    asked for, is INCONCLUSIVE: it proves nothing about the solver. What the thresholds reject may have a second look.
    """
    segment = start.index
    states = gather(segment, lambda: (load_checkpoint(store, task, start), load_checkpoint(store, task, end)))
    if isinstance(states, Verdict):
        return states
    try:
        claim = measure(task.program, executor, *states, segment, task.document.interval, observe)
        verdict = decide(claim, thresholds)
        if again is not None and verdict.outcome is Outcome.REJECTED:
            verdict = again(verdict, states[0])
    except (OperationalError, MemoryError) as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), f"couldn't replay: {error}")
    if not {Reason.DISTANCE_INFINITE, Reason.REFERENCE_INFINITE} & set(verdict.reasons):
        return verdict
    found = {name: reason for state in states for name, reason in _without_distance(task, state).items()}
    told = [f"{name} is {reason.value}" for name, reason in found.items()] or ["the replay isn't finite"]
    reasons = tuple(dict.fromkeys((*verdict.reasons, *found.values())))
    return Verdict(segment, Outcome.REJECTED, reasons, "; ".join([verdict.detail, *told]), claim)


def _without_distance(task: LoadedTask, state: Sequence[Words]) -> dict[str, Reason]:
    """Slots of a state that hold a number without a distance, and what is the matter with the first of its kind."""
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


def gather(
    segment: int, load: Callable[[], tuple[list[Words], list[Words]]]
) -> tuple[list[Words], list[Words]] | Verdict:
    """The evidence that ``load`` fetches, or the verdict that follows from the way it failed."""
    try:
        return load()
    except (ProtocolError, OperationalError, MemoryError) as error:
        outcome, reason = judge(error)
        return Verdict(segment, outcome, (reason,), str(error))


def judge(error: Exception) -> tuple[Outcome, Reason | Fault]:
    """What a failed look at evidence says about the evidence.

    Raises:
        Exception: the error itself, if it is neither one of evidence nor one of looking: a bug is no verdict.
    """
    match error:
        case CorruptObjectError():
            return Outcome.INCONCLUSIVE, Reason.CORRUPT_OBJECT
        case EvidenceError():
            return Outcome.REJECTED, error.fault
        case ProtocolError():
            return Outcome.REJECTED, Reason.BAD_EVIDENCE
        case UnsupportedError():
            return Outcome.INCONCLUSIVE, Reason.UNSUPPORTED
        case OperationalError() | MemoryError():
            return Outcome.INCONCLUSIVE, Reason.NOT_AVAILABLE
    raise error


def relative_distance(distance: int, reference: int) -> float:
    """``|replay - end| / |replay - start|`` over f32 words, for people.

    Infinite if either is, if integers differ, or if only the reference is zero.
    """
    if distance >= UNEQUAL or reference >= SATURATION:
        return float("inf")
    if distance == 0:
        return 0.0
    return float((distance / travelled(reference)) ** 0.5) if travelled(reference) else float("inf")


def limit(threshold: int) -> float:
    """The relative distance that a threshold allows, for people."""
    return float((threshold / 2**THRESHOLD_BITS) ** 0.5)
