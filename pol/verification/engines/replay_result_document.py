"""Results of replay jobs as documents, and what of two of them has to be equal (docs/spec/replay_jobs.md#result)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pol.claims.distance import SATURATION
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim, Three
from pol.commitments import canonical_json
from pol.commitments.canonical_json import Document, Fields
from pol.errors import Fault, ProtocolError
from pol.verification.engines.engine import MAX_OBSERVED, ExaminedSegment, ReplayJob
from pol.verification.verdict.drift import BUCKETS, Direction
from pol.verification.verdict.second_look import decide_with_second_look
from pol.verification.verdict.state_sketch import Sketch
from pol.verification.verdict.verdict import Outcome, Reason, Reasons, Verdict, decide

KIND, VERSION = "pol/replay-result", 1
MEMBERS = ("job", "segment", "outcome", "reasons", "detail", "claim", "second_look", "observed", "direction")
LIMIT = 1 << 24
"""Bytes that a result has at most, signed and sealed."""
MAX_DETAIL = 4096
NUMBERS = 256
"""Bits of a distance."""
LONGEST = 2.0
"""Of the squared length of a sketch of a unit vector, which is 1 to within some hundredths."""
MARKS = frozenset({Reason.OUTSIDE_SPAN, Reason.SLOT})
"""Reasons that follow from rounded sums of doubles: near their limits two honest machines may differ in them."""
_OUTCOMES = {outcome.name.lower(): outcome for outcome in Outcome}
_REASONS: Mapping[str, Reason | Fault] = {reason.value: reason for kind in (Reason, Fault) for reason in kind}


def encode_result(job: str, result: ExaminedSegment) -> bytes:
    """The canonical bytes of the result of the job with this digest."""
    verdict = result.verdict
    return canonical_json.encode(
        {
            "kind": KIND,
            "version": VERSION,
            "job": job,
            "segment": verdict.segment,
            "outcome": verdict.outcome.name.lower(),
            "reasons": [reason.value for reason in verdict.reasons],
            "detail": verdict.detail[:MAX_DETAIL],
            "claim": None if verdict.claim is None else _claim_document(verdict.claim),
            "second_look": None
            if verdict.second_look is None
            else [{"end": r.end.hex(), "distances": [str(d) for d in r.distances]} for r in verdict.second_look.reruns],
            "observed": {name: np.array(values, ">f4").tobytes().hex() for name, values in result.observed.items()},
            "direction": None
            if result.direction is None
            else [None if s is None else s.astype(">f8").tobytes().hex() for s in result.direction.sketches],
        }
    )


def decode_result(data: bytes, digest: str, job: ReplayJob) -> ExaminedSegment:
    """The result in a document."""
    fields = Fields.of_document(data, "the replay result", KIND, VERSION, MEMBERS)
    if fields.digest("job") != digest or fields.integer("segment") != job.segment:
        raise ProtocolError(f"the result is that of job {fields.digest('job')}, not of {digest}")
    outcome = _OUTCOMES.get(fields.text("outcome"))
    if outcome is None:
        raise ProtocolError(f"{fields.text('outcome')!r} is no outcome")
    claim = _claim(fields, job)
    verdict = Verdict(job.segment, outcome, _reasons(fields), _detail(fields), claim, _look(fields, job))
    _require_consequence(verdict, job)
    return ExaminedSegment(verdict, _observed(fields), _direction(fields))


def are_equal(one: ExaminedSegment, other: ExaminedSegment) -> bool:
    """Whether two results of one job say the same; ``detail`` is for people, and directions are rounded."""
    if set(one.verdict.reasons) != set(other.verdict.reasons) or not are_same_replay(one, other):
        return False
    if one.direction is None or other.direction is None:
        return one.direction is other.direction
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.allclose(a, b, rtol=0, atol=1e-6))
        for a, b in zip(one.direction.sketches, other.direction.sketches, strict=True)
    )


def are_same_replay(one: ExaminedSegment, other: ExaminedSegment) -> bool:
    """Whether two results agree in all that a replay defines bit for bit: one of two that don't is false."""
    a, b = one.verdict, other.verdict
    return (a.outcome, a.claim, a.second_look, set(a.reasons) - MARKS) == (
        b.outcome,
        b.claim,
        b.second_look,
        set(b.reasons) - MARKS,
    ) and _words(one) == _words(other)


def _words(result: ExaminedSegment) -> dict[str, bytes]:
    """Bits, as a NaN equals nothing."""
    return {name: np.array(values, ">f4").tobytes() for name, values in result.observed.items()}


def _require_consequence(verdict: Verdict, job: ReplayJob) -> None:
    """The outcome follows from the claim by the public rules; without a claim nothing is accepted."""
    claim, look = verdict.claim, verdict.second_look
    if claim is None:
        follows = verdict.outcome is not Outcome.ACCEPTED and look is None
    elif look is None:
        follows = decide(claim, job.thresholds).outcome is verdict.outcome
    else:
        follows = decide_with_second_look(claim, job.thresholds, look, job.looks).outcome is verdict.outcome
    if not follows:
        raise ProtocolError(f"the result says {verdict.outcome.name.lower()}, which doesn't follow from its numbers")


def _claim_document(claim: SegmentClaim) -> Document:
    return {
        "start": claim.start.hex(),
        "end": claim.end.hex(),
        "replay": claim.replay.hex(),
        "distances": [str(distance) for distance in claim.distances],
        "references": [str(reference) for reference in claim.references],
    }


def _claim(fields: Fields, job: ReplayJob) -> SegmentClaim | None:
    if fields.value("claim") is None:
        return None
    found = fields.member("claim", ("start", "end", "replay", "distances", "references"))
    ends = found.hash("start"), found.hash("end")
    if ends != (job.start.state_root, job.end.state_root):
        raise ProtocolError("the result is about other checkpoints than those of the job")
    distances, references = _three(found, "distances"), _three(found, "references")
    return SegmentClaim(job.segment, *ends, found.hash("replay"), distances, references)


def _three(fields: Fields, name: str) -> Three:
    numbers = fields.decimals(name, NUMBERS)
    if len(numbers) != 3 or max(numbers) > SATURATION:
        raise ProtocolError(f"the result has {name} {numbers}: expected three, at most {SATURATION}")
    return numbers[0], numbers[1], numbers[2]


def _look(fields: Fields, job: ReplayJob) -> SecondLook | None:
    if fields.value("second_look") is None:
        return None
    reruns = []
    for item in fields.items("second_look"):
        rerun = Fields(item, "a rerun of the result", ("end", "distances"))
        reruns.append(Rerun(rerun.hash("end"), _three(rerun, "distances")))
    return SecondLook(job.segment, tuple(reruns))


def _reasons(fields: Fields) -> Reasons:
    names = fields.items("reasons")
    found = tuple(_REASONS[name] for name in names if isinstance(name, str) and name in _REASONS)
    if not found or len(found) != len(names) or len(set(found)) != len(found):
        raise ProtocolError(f"the result has the reasons {names}: expected known ones, each once")
    return found


def _detail(fields: Fields) -> str:
    detail = fields.text("detail")
    if len(detail) > MAX_DETAIL:
        raise ProtocolError(f"the result's detail has more than {MAX_DETAIL} characters")
    return detail


def _observed(fields: Fields) -> dict[str, tuple[float, ...]]:
    found = fields.texts("observed")
    if len(found) > MAX_OBSERVED:
        raise ProtocolError(f"the result has {len(found)} observed scalars: {MAX_OBSERVED} at most")
    observed = Fields(found, "the result's observed", found)
    return {name: _floats(observed.octets(name), name) for name in found}


def _floats(data: bytes, name: str) -> tuple[float, ...]:
    if len(data) % 4:
        raise ProtocolError(f"{name!r} of the result isn't words of 4 bytes")
    return tuple(map(float, np.frombuffer(data, ">f4")))


def _direction(fields: Fields) -> Direction | None:
    if fields.value("direction") is None:
        return None
    sketches = [_sketch(item) for item in fields.items("direction")]
    if len(sketches) != 3:
        raise ProtocolError(f"the result's direction has {len(sketches)} sketches: expected 3")
    return Direction((sketches[0], sketches[1], sketches[2]))


def _sketch(item: Any) -> Sketch | None:
    if item is None:
        return None
    data = Fields({"sketch": item}, "the result's direction", ("sketch",)).octets("sketch", 8 * BUCKETS)
    sketch: Sketch = np.frombuffer(data, ">f8").astype(np.float64)
    if not sketch @ sketch <= LONGEST:  # refuses NaN, too
        raise ProtocolError("the result's direction isn't a sketch of a unit vector")
    return sketch
