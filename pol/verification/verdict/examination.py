"""A learning proof from its documents to one verdict: what is drawn, what an engine replays, what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pol.claims import sampling
from pol.claims.segment_claim import Three
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.training.task.published_task import load as load_task
from pol.training.task.task_document import LoadedTask
from pol.verification.replay.engines.engine import Engine, Examined, Job
from pol.verification.verdict.second_look import LOOKS
from pol.verification.verdict.verdict import Outcome, Reason, Reasons, judge

Advance = Callable[[int, int], None]
"""``advance(done, total)``"""


@dataclass(frozen=True)
class Subject:
    """A learning proof with its task, checked against each other, and the store that holds them."""

    store: Store
    task: LoadedTask
    proof: LearningProof


@dataclass(frozen=True)
class Draw:
    """Which segments are replayed, and why.

    ``drawn`` are those that ``seed`` selects (all of them, if it is None), in the order drawn; ``suspected`` those that
    a screen added, which the probability doesn't count. ``cheated`` is the number of bad segments that are assumed.
    """

    segments: int
    seed: bytes | None
    drawn: tuple[int, ...]
    cheated: int
    suspected: tuple[int, ...] = ()

    @property
    def probability(self) -> Fraction:
        """That at least one of ``cheated`` bad segments is drawn, if nobody could foresee the seed."""
        return sampling.detection_probability(self.segments, self.cheated, len(self.drawn))

    @property
    def replayed(self) -> list[int]:
        """All segments to replay, in order."""
        return sorted({*self.drawn, *self.suspected})


@dataclass(frozen=True)
class ProofVerdict:
    """The outcome for a learning proof as a whole, and for each segment that was looked at, in order."""

    outcome: Outcome
    reasons: Reasons
    detail: str
    examined: tuple[Examined, ...] = ()


UNSEEN = ProofVerdict(Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), "nothing was looked at")


def open_subject(store: Store, digest: str, log_root: bytes | None = None) -> Subject:
    """The learning proof with this digest; ``log_root`` is what its solver committed to, if that is known.

    Raises:
        ProtocolError: the proof or its task is bad, or it isn't over the committed log.
        UnsupportedError: the task can't be lowered by this version.
        OperationalError: the store failed.
    """
    proof = learning_proof.decode(store, digest)
    return subject_of(store, load_task(store, proof.task), proof, log_root)


def subject_of(store: Store, task: LoadedTask, proof: LearningProof, log_root: bytes | None = None) -> Subject:
    """As `open_subject`, for documents that have been read."""
    if log_root is not None:
        learning_proof.require_committed(proof, log_root)
    learning_proof.require_proof_of(proof, task)
    return Subject(store, task, proof)


def examine(
    subject: Subject,
    segments: Sequence[int],
    thresholds: Three,
    engine: Engine,
    advance: Advance = lambda done, total: None,
    looks: int = LOOKS,
) -> ProofVerdict:
    """Replay ``segments`` by an engine and decide; ``looks`` are the reruns of a second look, 0 for none.

    Raises:
        ProtocolError: no segment, or one that the task doesn't have.
        OperationalError: the engine can't work at all.
    """
    checkpoints, count = subject.proof.checkpoints, subject.task.document.segments
    if not segments or not all(0 <= segment < count for segment in segments):
        raise ProtocolError(f"can't replay segments {list(segments)}: the task has {count}, from 0")
    url, task = subject.store.url, subject.task.digest
    jobs = [Job(url, task, checkpoints[s], checkpoints[s + 1], thresholds, looks) for s in segments]
    examined: list[Examined] = []
    advance(0, len(jobs))
    for result in engine.run(jobs):
        examined.append(result)
        advance(len(examined), len(jobs))
    examined.sort(key=lambda result: result.verdict.segment)
    if [result.verdict.segment for result in examined] != sorted(segments):
        raise OperationalError("the engine has lost segments: that is a mistake in it, report it")
    return conclude(examined)


def conclude(examined: Sequence[Examined]) -> ProofVerdict:
    """One verdict over several segments: one rejected is enough, and what wasn't seen isn't accepted."""
    verdicts = [result.verdict for result in examined]
    outcome = next(
        (o for o in (Outcome.REJECTED, Outcome.INCONCLUSIVE) if any(v.outcome is o for v in verdicts)),
        Outcome.ACCEPTED if verdicts else Outcome.INCONCLUSIVE,
    )
    deciding = [verdict for verdict in verdicts if verdict.outcome is outcome]
    reasons = tuple(dict.fromkeys(reason for verdict in deciding for reason in verdict.reasons))
    detail = f"{len(deciding)} of {len(verdicts)} replayed segments {outcome.name.lower()}"
    return ProofVerdict(outcome, reasons, detail, tuple(examined))


def failed(error: Exception) -> ProofVerdict:
    """The verdict that follows if the proof or its task is bad, or couldn't be looked at.

    Raises:
        Exception: the error itself, if it says nothing about evidence.
    """
    outcome, reason = judge(error)
    return ProofVerdict(outcome, (reason,), str(error))
