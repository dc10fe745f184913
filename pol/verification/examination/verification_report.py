"""The report of a verification, and its JSON form: the draw, the verdicts, and advice."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pol.claims.acceptance_rule import EXACT, relative_distance, relative_limit
from pol.claims.segment_claim import Three
from pol.execution import _kernels
from pol.graph.step_program import Component
from pol.release import __version__
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.engines.worker_standing import WorkerStanding
from pol.verification.examination.proof_examination import ExaminedProof, ProofVerdict, SegmentDraw
from pol.verification.examination.screening import Suspicion
from pol.verification.examination.verdict_advice import advice, frequent_second_looks, pairs_apart
from pol.verification.verdict import second_look
from pol.verification.verdict.verdict import Verdict


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
