"""What a verifier says about a segment: claims, the acceptance rule and the three outcomes (docs/spec/verdict.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import state_root
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component, StepProgram
from pol.training.learning_proof import LearningProof, load_checkpoint
from pol.training.storage.store import CorruptObjectError, Store
from pol.training.task import LoadedTask
from pol.verification.distance import SATURATION, UNEQUAL, component_distances
from pol.verification.replay import Executor, replay_end

THRESHOLD_BITS = 64
Three = tuple[int, int, int]


class Outcome(IntEnum):
    """The outcome of a verification; zero means nothing."""

    ACCEPTED = 1
    REJECTED = 2
    INCONCLUSIVE = 3


class Reason(StrEnum):
    """Why; for programs. ``Verdict.detail`` says it to people."""

    WITHIN_THRESHOLD = "within-threshold"
    DISTANCE_ABOVE_THRESHOLD = "distance-above-threshold"
    INTEGERS_DIFFER = "integers-differ"
    DISTANCE_INFINITE = "distance-infinite"
    REFERENCE_INFINITE = "reference-infinite"
    BAD_EVIDENCE = "bad-evidence"
    CORRUPT_OBJECT = "corrupt-object"
    NOT_AVAILABLE = "not-available"


@dataclass(frozen=True)
class Claim:
    """What a verifier posts about a drawn segment; the contract's struct ``Claim``."""

    segment: int
    start: bytes
    end: bytes
    replay: bytes
    distances: Three
    references: Three


@dataclass(frozen=True)
class Verdict:
    """The outcome for one segment. ``claim`` is None if the evidence didn't allow a replay."""

    segment: int
    outcome: Outcome
    reasons: tuple[Reason, ...]
    detail: str
    claim: Claim | None = None


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
) -> Claim:
    """Replay a segment from the solver's ``start`` and measure how far the solver's ``end`` is from the result.

    Raises:
        ProtocolError: ``start`` or ``end`` isn't a state of the program.
    """
    types = [slot.type for slot in program.slots]
    replayed = replay_end(program, executor, start, segment * interval, interval)
    return Claim(
        segment=segment,
        start=state_root(types, start),
        end=state_root(types, end),
        replay=state_root(types, replayed),
        distances=component_distances(program, replayed, end),
        references=component_distances(program, replayed, start),
    )


def decide(claim: Claim, thresholds: Three) -> Verdict:
    """The verdict that follows from a claim; the contract decides the same."""
    reasons: list[Reason] = []
    details: list[str] = []
    rows = zip(Component, claim.distances, claim.references, thresholds, strict=True)
    for component, distance, reference, threshold in rows:
        if is_accepted(distance, reference, threshold):
            continue
        if distance >= SATURATION:
            reason = Reason.DISTANCE_INFINITE
        elif distance >= UNEQUAL:
            reason = Reason.INTEGERS_DIFFER
        elif reference >= SATURATION:
            reason = Reason.REFERENCE_INFINITE
        else:
            reason = Reason.DISTANCE_ABOVE_THRESHOLD
        if reason not in reasons:
            reasons.append(reason)
        relative = relative_distance(distance, reference)
        details.append(
            f"{component.name.lower()}: {relative:.3g} of the distance travelled, limit {limit(threshold):.3g}"
        )
    if reasons:
        return Verdict(claim.segment, Outcome.REJECTED, tuple(reasons), "; ".join(details), claim)
    detail = f"segment {claim.segment} is within the threshold"
    return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,), detail, claim)


def verify_segment(
    store: Store, task: LoadedTask, proof: LearningProof, executor: Executor, segment: int, thresholds: Three
) -> Verdict:
    """Fetch, replay and decide one segment of a learning proof.

    Bad evidence is REJECTED. Whatever keeps us from looking, including a store that hands out other bytes than those
    asked for, is INCONCLUSIVE: it proves nothing about the solver.

    Raises:
        ProtocolError: there is no such segment.
    """
    document = task.document
    if not 0 <= segment < document.segments:
        raise ProtocolError(f"no segment {segment}: the task has {document.segments}")

    def load(index: int) -> list[Words]:
        return load_checkpoint(store, task, proof.checkpoints[index])

    evidence = gather(segment, lambda: (load(segment), load(segment + 1)))
    if isinstance(evidence, Verdict):
        return evidence
    try:
        claim = measure(task.program, executor, *evidence, segment, document.interval)
    except (OperationalError, MemoryError) as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), f"couldn't replay: {error}")
    return decide(claim, thresholds)


def gather(
    segment: int, load: Callable[[], tuple[list[Words], list[Words]]]
) -> tuple[list[Words], list[Words]] | Verdict:
    """The evidence that ``load`` fetches, or the verdict that follows from the way it failed."""
    try:
        return load()
    except CorruptObjectError as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.CORRUPT_OBJECT,), str(error))
    except ProtocolError as error:
        return Verdict(segment, Outcome.REJECTED, (Reason.BAD_EVIDENCE,), str(error))
    except (OperationalError, MemoryError) as error:
        return Verdict(segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), str(error))


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
