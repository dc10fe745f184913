"""Examination of a learning proof: draw segments, replay them by an engine, conclude with one verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pol.claims.sample_size import detection_probability
from pol.claims.segment_claim import Three
from pol.errors import OperationalError, ProtocolError
from pol.graph.work_estimate import replay_bytes
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.training.task.published_task import load as load_task
from pol.training.task.task_document import LoadedTask
from pol.verification.engines.engine import Engine, ExaminedSegment, ReplayJob
from pol.verification.verdict.drift import Drift, drifts
from pol.verification.verdict.rerun_span import are_too_many
from pol.verification.verdict.second_look import LOOKS
from pol.verification.verdict.verdict import Outcome, Reason, Reasons, Verdict, outcome_of_failure

Advance = Callable[[int, int], None]
"""``advance(done, total)``"""


@dataclass(frozen=True)
class ExaminedProof:
    """A learning proof with its task, checked against each other, and the store that holds them."""

    store: Store
    task: LoadedTask
    proof: LearningProof


@dataclass(frozen=True)
class SegmentDraw:
    """The segments to replay.

    ``drawn`` are those that ``seed`` selects (all, if it is None), in the order drawn. ``suspected`` were added by a
    screen; the probability doesn't count them. ``cheated`` is the assumed number of bad segments.
    """

    segments: int
    seed: bytes | None
    drawn: tuple[int, ...]
    cheated: int
    suspected: tuple[int, ...] = ()

    @property
    def probability(self) -> Fraction:
        """The probability that at least one of ``cheated`` bad segments is drawn, if the seed was unpredictable."""
        return detection_probability(self.segments, self.cheated, len(self.drawn))

    @property
    def replayed(self) -> list[int]:
        """All segments to replay, in order."""
        return sorted({*self.drawn, *self.suspected})


@dataclass(frozen=True)
class ProofVerdict:
    """The outcome for a learning proof as a whole, for each examined segment and for each pair of them, in order.

    In ``pairs`` the verdicts' segments are those of twice the length.
    """

    outcome: Outcome
    reasons: Reasons
    detail: str
    examined: tuple[ExaminedSegment, ...] = ()
    drifts: tuple[Drift, ...] = ()
    pairs: tuple[Verdict, ...] = ()


UNSEEN = ProofVerdict(Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), "nothing was looked at")


def open_proof(store: Store, digest: str, log_root: bytes | None = None) -> ExaminedProof:
    """The learning proof with this digest; ``log_root`` is the root that its solver committed to, if it is known.

    Raises:
        UnsupportedError: the task can't be lowered by this version.
    """
    proof = learning_proof.decode(store, digest)
    return checked_proof(store, load_task(store, proof.task), proof, log_root)


def checked_proof(store: Store, task: LoadedTask, proof: LearningProof, log_root: bytes | None = None) -> ExaminedProof:
    """As `open_proof`, for documents that have been read."""
    if log_root is not None:
        learning_proof.require_committed(proof, log_root)
    learning_proof.require_proof_of(proof, task)
    return ExaminedProof(store, task, proof)


def examine_proof(
    subject: ExaminedProof,
    segments: Sequence[int],
    thresholds: Three,
    engine: Engine,
    advance: Advance = lambda done, total: None,
    looks: int = LOOKS,
    sketched: bytes = b"",
    pairs: Sequence[int] = (),
) -> ProofVerdict:
    """Replay ``segments`` by an engine and decide; ``looks`` are the reruns of a second look, 0 for none.

    ``sketched`` is a seed that the solver couldn't know, by which drift is looked for; empty: it isn't. ``pairs`` are
    replayed as one segment each.

    Raises:
        OperationalError: the engine can't work at all.
    """
    checkpoints, count = subject.proof.checkpoints, subject.task.document.segments
    if not segments or not all(0 <= segment < count for segment in segments):
        raise ProtocolError(f"can't replay segments {list(segments)}: the task has {count}, from 0")
    url, task = subject.store.url, subject.task.digest
    # Start, replay and end; second looks hold a rerun, and sums of reruns.
    memory = replay_bytes(subject.task.program, states=6 if any(thresholds) else 3)

    def job(begin: int, end: int, is_pair: bool) -> ReplayJob:
        return ReplayJob(url, task, checkpoints[begin], checkpoints[end], thresholds, looks, sketched, is_pair, memory)

    jobs = [job(s, s + 1, is_pair=False) for s in segments]
    double = [job(2 * p, 2 * p + 2, is_pair=True) for p in pairs]
    whole = len(jobs) + len(double)
    advance(0, whole)

    def run(wanted: Sequence[ReplayJob], numbers: Sequence[int], before: int) -> list[ExaminedSegment]:
        found: list[ExaminedSegment] = []
        for result in engine.run(wanted):
            found.append(result)
            advance(before + len(found), whole)
        found.sort(key=lambda result: result.verdict.segment)
        if [result.verdict.segment for result in found] != sorted(numbers):
            raise OperationalError("the engine has lost segments: this is a bug in the engine, report it")
        return found

    examined = run(jobs, segments, 0)
    return conclude(examined, [result.verdict for result in run(double, pairs, len(jobs))] if double else [])


def conclude(examined: Sequence[ExaminedSegment], pairs: Sequence[Verdict] = ()) -> ProofVerdict:
    """One verdict over several segments: one rejected is enough, or what all have in common; unseen is not accepted.

    A pair that ends elsewhere is a mark; one that can't be read, or whose evidence is bad, counts as a segment.
    """
    verdicts = [result.verdict for result in examined]
    elsewhere = [pair for pair in pairs if pair.reasons == (Reason.DISTANCE_ABOVE_THRESHOLD,)]
    verdicts += [pair for pair in pairs if pair.outcome is not Outcome.ACCEPTED and pair not in elsewhere]
    outcome = next(
        (o for o in (Outcome.REJECTED, Outcome.INCONCLUSIVE) if any(v.outcome is o for v in verdicts)),
        Outcome.ACCEPTED if verdicts else Outcome.INCONCLUSIVE,
    )
    deciding = [verdict for verdict in verdicts if verdict.outcome is outcome]
    reasons = tuple(dict.fromkeys(reason for verdict in deciding for reason in verdict.reasons))
    detail = f"{len(deciding)} of {len(verdicts)} replayed segments {outcome.name.lower()}"
    found = drifts([result.direction for result in examined if result.direction is not None])
    against = dict[Reason, str]()
    if drifting := [drift for drift in found if drift.is_found]:
        told = ", ".join(
            f"{drift.component.name.lower()} {drift.score:.3g} in {drift.segments} segments (limit {drift.limit:.3g})"
            for drift in drifting
        )
        against[Reason.DRIFT] = f"what the solver's states add points in one direction: {told}"
    outside = sum(Reason.OUTSIDE_SPAN in verdict.reasons for verdict in verdicts)
    if are_too_many(outside, len(examined)):
        against[Reason.OUTSIDE_SPAN] = f"{outside} segments diverge elsewhere than reruns of them"
    by_slot = sum(Reason.SLOT in verdict.reasons for verdict in verdicts)
    if are_too_many(by_slot, len(examined)):
        against[Reason.SLOT] = f"in {by_slot} segments a tensor diverges as no rerun of them does"
    if are_too_many(len(elsewhere), len(pairs)):
        named = ", ".join(f"{2 * pair.segment} and {2 * pair.segment + 1}" for pair in elsewhere)
        against[Reason.PAIR] = f"checkpoints within their limits lead elsewhere than replayed ones: segments {named}"
    if against:
        reasons = (*(reasons if outcome is Outcome.REJECTED else ()), *against)
        outcome, detail = Outcome.REJECTED, "; ".join([detail, *against.values()])
    return ProofVerdict(outcome, reasons, detail, tuple(examined), found, tuple(pairs))


def verdict_on_failure(error: Exception) -> ProofVerdict:
    """The verdict if the proof or its task is bad, or couldn't be read.

    Raises:
        Exception: the error itself, if it says nothing about evidence.
    """
    outcome, reason = outcome_of_failure(error)
    return ProofVerdict(outcome, (reason,), str(error))
