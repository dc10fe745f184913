"""The report of a verification, and its JSON form: the draw, the verdicts, and advice."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pol.claims.acceptance_rule import EXACT, relative_distance, relative_limit
from pol.claims.segment_claim import Three
from pol.errors import Fault
from pol.execution import _kernels
from pol.graph.step_program import Component
from pol.release import __version__
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.engines.replay_queue import WorkerStanding
from pol.verification.examination.proof_examination import ExaminedProof, ProofVerdict, SegmentDraw
from pol.verification.examination.screening import Suspicion
from pol.verification.verdict import second_look
from pol.verification.verdict.verdict import Outcome, Reason, Reasons, Verdict

SELDOM = 8
"""One segment in so many, rounded up, may need a second look without a remark: ReLU networks need one in 200."""

NEXT = {
    Outcome.ACCEPTED: "Nothing to do: the drawn segments were trained as claimed. Draw again for more confidence.",
    Outcome.REJECTED: "Don't pay for this training. Repeat the verification with the same seed to see it for yourself; "
    "on chain, post the verdict, or challenge the one that accepted it.",
    Outcome.INCONCLUSIVE: "Nothing is known yet, and nobody is to blame. Remove the obstacle, and verify again with "
    "the same seed.",
}
REASONS: dict[Reason | Fault, str] = {
    Reason.CORRUPT_OBJECT: "The store returns other bytes than those asked for: fetch another copy.",
    Reason.NOT_AVAILABLE: "An object is missing, or can't be read: ask its publisher, or try later.",
    Reason.WORKER_LOST: "A process ended without a result: give it more memory, or fewer segments at a time.",
    Reason.UNSUPPORTED: "This version of pol can't lower the task: try the version that it was published with.",
    Reason.DISTANCE_ABOVE_THRESHOLD: "A segment ends farther from the replay than honest hardware explains: steps were "
    "left out, changed or made up, or the profile was measured for other hardware.",
    Reason.WITHIN_SECOND_LOOK: "A segment exceeds the thresholds, but reruns of it diverge as far: it is weaker "
    "evidence than the others.",
    Reason.DRIFT: "Each segment is within the limits, but what the solver's states add to the replays points in one "
    "direction: somebody pushes the training. Kernels that round in one direction share up to a fifth of theirs.",
    Reason.OUTSIDE_SPAN: "A segment diverges as far as reruns of it, but elsewhere. One in hundreds of honest segments "
    "does; if many do, it is lower precision, or a push.",
    Reason.PAIR: "Each segment is within the limits, but replayed on from its own states the training goes elsewhere: "
    "something in the checkpoints acts later. Adam makes whole weights of small averages.",
    Reason.SLOT: "A tensor isn't where its steps lead, though its component is within the limit: other tensors move so "
    "far that it counts for nothing. `pol profile --scale` gives each its own limit.",
    Reason.INTEGERS_DIFFER: "A counter or another integer isn't what the steps give: steps left out or done twice.",
    Reason.ROOTS_DIFFER: "Exact mode accepts canonical bits only: was this training run canonically?",
    Fault.BROKEN_LOG: "The proof isn't over the log that was committed to: a checkpoint was exchanged afterwards.",
    Fault.WRONG_START: "The training doesn't begin where the task does.",
}


def advice(outcome: Outcome, reasons: Reasons) -> list[str]:
    """The next step: one sentence for the outcome, and one for each reason that has advice."""
    return [NEXT[outcome], *(REASONS[reason] for reason in reasons if reason in REASONS)]


def frequent_second_looks(verdicts: Sequence[Verdict]) -> list[str]:
    """A sentence if more segments passed by a second look than kinks alone explain; it rejects nothing."""
    looked = sum(verdict.outcome is Outcome.ACCEPTED and verdict.second_look is not None for verdict in verdicts)
    if looked * SELDOM <= len(verdicts) + SELDOM - 1:
        return []
    return [
        f"{looked} of {len(verdicts)} segments passed by a second look only. Running statistics that settle and a "
        "training that stands still do that, and so does lower precision. If the submitter can't tell which, ask for a "
        "profile over more segments, or for exact mode; --looks 0 shows what the thresholds alone say."
    ]


def pairs_apart(pairs: Sequence[Verdict]) -> list[str]:
    """A sentence if pairs of segments, replayed as one, weren't accepted; few of them reject nothing."""
    apart = [pair for pair in pairs if pair.outcome is not Outcome.ACCEPTED]
    if not apart:
        return []
    named = ", ".join(f"{2 * pair.segment} and {2 * pair.segment + 1}" for pair in apart)
    return [
        f"Of {len(pairs)} pairs of segments that were replayed as one, {len(apart)} weren't accepted: {named}. One in "
        "a hundred may be honest; replay more of them (--draws, --all)."
    ]


def fingerprint() -> dict[str, str]:
    """Versions and platform of this verifier, for people."""
    return {
        "pol": __version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "platform": f"{platform.system()} {platform.machine()}",
        "kernels": _kernels.isa(),
    }


@dataclass(frozen=True)
class VerificationReport:
    """One verification.

    ``proof`` is the digest of the learning proof, empty if it was read off a learning record. ``profile`` is that of
    the profile, None in exact mode. ``given_seed`` says whether the seed came from outside of this process.
    ``sketched`` is the seed by which drift was looked for, empty if it wasn't. Of a learning record, ``uncompared`` are
    the components of its own checkpoints that its task doesn't define, and ``unread`` own checkpoints weren't compared
    with the learning proof. ``subject`` is None if the proof or its task is bad, or couldn't be read.
    """

    store: str
    proof: str
    profile: str | None
    engine: str
    verdict: ProofVerdict
    thresholds: Three = EXACT
    subject: ExaminedProof | None = None
    draw: SegmentDraw | None = None
    given_seed: bool = False
    suspicions: tuple[Suspicion, ...] = ()
    sketched: bytes = b""
    uncompared: tuple[str, ...] = ()
    unread: int = 0
    seconds: float = 0.0
    machine: Mapping[str, str] = field(default_factory=fingerprint)
    workers: tuple[WorkerStanding, ...] = ()
    """Those of strangers, if segments were replayed by them."""

    @property
    def is_exact(self) -> bool:
        """Whether the training had to be canonical."""
        return self.thresholds == EXACT

    @property
    def advice(self) -> list[str]:
        """The next steps, in sentences."""
        often = frequent_second_looks([examined.verdict for examined in self.verdict.examined])
        return [*advice(self.verdict.outcome, self.verdict.reasons), *often, *pairs_apart(self.verdict.pairs)]

    @property
    def named(self) -> list[Suspicion]:
        """The segments that don't look like their neighbors."""
        return [suspicion for suspicion in self.suspicions if suspicion.is_named]


def limit_shares(verdict: Verdict, thresholds: Three) -> list[float]:
    """The distance of each component as a share of the limit; a second look may raise the limit.

    In exact mode: in shares of the distance travelled.
    """
    if verdict.claim is None:
        return []
    rows = zip(verdict.claim.distances, verdict.claim.references, thresholds, strict=True)
    first = [relative_distance(d, r) / (relative_limit(t) or 1.0) for d, r, t in rows]
    if verdict.second_look is None:
        return first
    return [
        min(pair)
        for pair in zip(first, second_look.second_look_shares(verdict.claim, verdict.second_look), strict=True)
    ]


def draw_reasons(found: VerificationReport) -> list[str]:
    """The reasons for replaying these segments, in sentences."""
    draw = found.draw
    if draw is None:
        return []
    if draw.seed is None:
        return [f"All {draw.segments} segments were replayed."]
    odds = f"if {draw.cheated} are bad, that hits at least one with probability {float(draw.probability):.6g}"
    told = [f"{len(draw.drawn)} of {draw.segments} segments were drawn: {odds}."]
    if found.given_seed:
        told.append(
            f"The seed {draw.seed.hex()} was given. It must be newer than the learning proof: "
            "a solver who knew it before could have cheated in other segments."
        )
    else:
        told.append(f"The seed {draw.seed.hex()} is fresh entropy of this verifier; --seed repeats the draw.")
    if found.suspicions:
        named = ", ".join(str(suspicion.segment) for suspicion in found.named) or "none"
        added = ", ".join(map(str, draw.suspected)) or "none"
        told.append(f"Segments that don't look like their neighbors: {named}. Added to the draw: {added}.")
    return told


def document(found: VerificationReport) -> dict[str, Any]:
    """A verification as JSON; integers that may exceed 2^53 are decimal strings, numbers without a value null."""
    verdict, subject, draw = found.verdict, found.subject, found.draw
    return {
        "outcome": verdict.outcome.name.lower(),
        "reasons": [reason.value for reason in verdict.reasons],
        "detail": verdict.detail,
        "next": found.advice,
        "store": found.store,
        "proof": found.proof,
        "task": None if subject is None else subject.task.digest,
        "log_root": None if subject is None else subject.proof.log_root.hex(),
        "mode": "exact" if found.is_exact else "tolerance",
        "profile": found.profile,
        "thresholds": [str(threshold) for threshold in found.thresholds],
        "draw": None if draw is None else _draw(draw, found.given_seed),
        "suspicious": [{"segment": s.segment, "moved": finite(s.moved), "score": finite(s.score)} for s in found.named],
        "segments": [segment_document(result) for result in verdict.examined],
        "pairs": [
            {**verdict_document(pair), "segment": None, "segments": [2 * pair.segment, 2 * pair.segment + 1]}
            for pair in verdict.pairs
        ],
        "drift": {
            "seed": found.sketched.hex() or None,
            "components": {
                drift.component.name.lower(): {"segments": drift.segments, "score": drift.score, "limit": drift.limit}
                for drift in verdict.drifts
            },
        },
        "environment": dict(found.machine),
        "solver_environment": {} if subject is None else dict(subject.proof.environment),
        "engine": found.engine,
        "workers": [
            {
                "key": worker.key.hex(),
                "answers": worker.answers,
                "fault": None if worker.fault is None else worker.fault.value,
                "detail": worker.detail,
                "evidence": worker.evidence or None,
            }
            for worker in found.workers
        ],
        "seconds": round(found.seconds, 3),
    }


def segment_document(result: ExaminedSegment) -> dict[str, Any]:
    """A segment; the bytes don't depend on the engine."""
    claim, verdict = result.verdict.claim, verdict_document(result.verdict)
    relative = None
    if claim is not None:
        rows = zip(Component, claim.distances, claim.references, strict=True)
        relative = {c.name.lower(): finite(relative_distance(d, r)) for c, d, r in rows}
    observed = {name: [finite(value) for value in values] for name, values in result.observed.items()}
    return {**verdict, "relative": relative, "observed": observed}


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict on one segment."""
    claim = verdict.claim
    document: dict[str, Any] = {
        "segment": verdict.segment,
        "outcome": verdict.outcome.name.lower(),
        "reasons": [reason.value for reason in verdict.reasons],
        "detail": verdict.detail,
        "claim": None,
        "second_look": None,
    }
    if claim is not None:
        document["claim"] = {
            "start": claim.start.hex(),
            "end": claim.end.hex(),
            "replay": claim.replay.hex(),
            "distances": [str(distance) for distance in claim.distances],
            "references": [str(reference) for reference in claim.references],
        }
    if verdict.second_look is not None:
        document["second_look"] = [
            {"end": rerun.end.hex(), "distances": [str(distance) for distance in rerun.distances]}
            for rerun in verdict.second_look.reruns
        ]
    return document


def finite(number: float) -> float | None:
    """A number that JSON has, or None."""
    return number if math.isfinite(number) else None


def _draw(draw: SegmentDraw, given: bool) -> dict[str, Any]:
    return {
        "segments": draw.segments,
        "seed": None if draw.seed is None else draw.seed.hex(),
        "seed_from": "all segments" if draw.seed is None else "outside" if given else "this verifier",
        "drawn": list(draw.drawn),
        "suspected": list(draw.suspected),
        "replayed": draw.replayed,
        "cheated": draw.cheated,
        "probability": float(draw.probability),
    }
