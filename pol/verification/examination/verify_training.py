"""Verify a training without a chain: draw segments, replay them, compare, decide (docs/spec/verdict.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction

from pol.claims.acceptance_rule import EXACT
from pol.claims.sample_size import cheated_segments, draws_for
from pol.claims.segment_claim import Three
from pol.claims.segment_draw import draw as draw_segments
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.training.record import proof_of_record
from pol.training.record.learning_record import load_record
from pol.training.record.recorded_run import RecordedRun, open_store
from pol.training.storage.store import Store
from pol.verification.engines.engine import Engine, LocalEngine
from pol.verification.examination import proof_examination, screening
from pol.verification.examination.proof_examination import Advance, ExaminedProof, SegmentDraw
from pol.verification.examination.verification_report import VerificationReport
from pol.verification.profile.profile_document import load_profile
from pol.verification.verdict.second_look import LOOKS
from pol.verification.verdict.segment_pairs import ends_of, pairs_of

Progress = Callable[[str], AbstractContextManager[Advance]]
"""``progress(title)``: tells how far a long part is."""


def silent(title: str) -> AbstractContextManager[Advance]:
    """Tell nothing."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class Sampling:
    """Which segments are replayed.

    As many as it takes to hit a bad segment with probability ``confidence`` if ``cheat_fraction`` of them are bad;
    or ``draws`` of them; or ``everything``. ``seed``: 32 bytes of a beacon after the proof; None: fresh entropy.
    ``suspicious``: so many more, by a screen of all checkpoints. Floats are taken as they are printed.
    """

    confidence: Fraction = Fraction(99, 100)
    cheat_fraction: Fraction = Fraction(1, 20)
    draws: int | None = None
    everything: bool = False
    seed: bytes | None = None
    suspicious: int = 0

    def __post_init__(self) -> None:
        for name in ("confidence", "cheat_fraction"):
            object.__setattr__(self, name, Fraction(str(getattr(self, name))))


def verify(
    store: Store | str,
    proof: str | None = None,
    *,
    profile: str | None = None,
    exact: bool | None = None,
    sampling: Sampling = Sampling(),
    log_root: bytes | None = None,
    engine: Engine | None = None,
    looks: int = LOOKS,
    progress: Progress = silent,
) -> VerificationReport:
    """Verify the learning proof with digest ``proof`` in a store, or that of the learning record in it.

    Bad evidence and failed looks are outcomes (REJECTED, INCONCLUSIVE), not errors.

    Args:
        store: the store, or its folder or URL.
        proof: digest in hex; None if the store is a learning record whose training had a task.
        profile: digest of the profile that holds the thresholds; excludes ``exact``.
        exact: roots have to be equal; by default if the proof says that the solver trained canonically.
        log_root: root of the checkpoint log that the solver committed to before the draw, if it is known.
        engine: where segments are replayed; this process by default.
        looks: reruns of a second look at a segment beyond the thresholds; 0 for none.

    Raises:
        ProtocolError: both of ``profile`` and ``exact``, or neither for a proof that isn't exact; more draws than
            segments; a store with options.
        OperationalError: the profile can't be used, or the engine can't work.
    """
    if (profile is not None and exact) or (profile is None and exact is False):
        raise ProtocolError("a verification compares by a profile or exactly: give one of profile= and exact=True")
    store = open_store(store) if isinstance(store, str) else store
    if store.options:
        raise ProtocolError(
            "segments are replayed from the store's URL alone: put its options into fsspec's configuration"
        )
    engine = LocalEngine() if engine is None else engine
    found = VerificationReport(store.url, proof or "", profile, type(engine).__name__, proof_examination.UNSEEN)
    run = None
    try:
        if proof is not None:
            subject = proof_examination.open_proof(store, proof, log_root)
        else:
            run = RecordedRun(store, load_record(store))
            task, learning_proof = proof_of_record.proof_of(run)
            subject = proof_examination.checked_proof(store, task, learning_proof, log_root)
    except (ProtocolError, OperationalError, UnsupportedError) as error:
        return replace(found, verdict=proof_examination.verdict_on_failure(error))
    if profile is None and exact is None and not subject.proof.is_exact:
        raise ProtocolError(
            "the proof doesn't say that its training is exact: give the digest of a profile (--profile or profile=; "
            "pol profile makes one), or compare bits (--exact or exact=True)"
        )
    found = replace(found, subject=subject, thresholds=_thresholds(subject, profile))
    if sampling.suspicious:
        with progress("screening all checkpoints") as advance:
            suspicions = screening.screen(store, subject.task, subject.proof, advance)
        found = replace(found, suspicions=tuple(suspicions))
    draw = _draw(subject, sampling, [suspicion.segment for suspicion in found.suspicions])
    # States are equal in exact mode: nothing drifts, and nothing within limits acts later.
    sketched = b"" if found.is_exact else sampling.seed or draw.seed or os.urandom(32)
    pairs = pairs_of(draw.replayed, draw.segments, sketched) if sketched else []
    found = replace(found, draw=draw, given_seed=sampling.seed is not None, sketched=sketched)
    try:
        if run is not None:
            ends = {segment + 1 for segment in draw.replayed} | {0, draw.segments} | ends_of(pairs)
            rest = proof_of_record.require_recorded(run, subject.task, subject.proof, sorted(ends))
            found = replace(found, uncompared=tuple(rest), unread=len(run.record.checkpoints) - len(ends))
    except (ProtocolError, OperationalError) as error:
        return replace(found, verdict=proof_examination.verdict_on_failure(error))
    with progress("replaying segments") as advance:
        verdict = proof_examination.examine_proof(
            subject, draw.replayed, found.thresholds, engine, advance, looks, sketched, pairs
        )
    return replace(found, verdict=verdict)


def _thresholds(subject: ExaminedProof, digest: str | None) -> Three:
    # A bad profile is not the solver's fault: it keeps the verifier from looking.
    if digest is None:
        return EXACT
    if not subject.store.exists(digest):
        raise OperationalError(
            f"the store has no profile {digest}: give the digest that `pol profile` printed, or put that profile there"
        )
    try:
        return load_profile(subject.store, digest, subject.task).thresholds
    except ProtocolError as error:
        raise OperationalError(f"the profile can't be used: {error}") from error


def _draw(subject: ExaminedProof, wanted: Sampling, suspects: list[int]) -> SegmentDraw:
    segments = subject.task.document.segments
    cheated = cheated_segments(segments, wanted.cheat_fraction)
    if wanted.everything:
        return SegmentDraw(segments, None, tuple(range(segments)), cheated)
    draws = wanted.draws or draws_for(segments, cheated, wanted.confidence, segments)
    if draws > segments:
        raise ProtocolError(f"can't draw {draws} segments: the task has {segments}; replay them all instead")
    seed = os.urandom(32) if wanted.seed is None else wanted.seed
    drawn = draw_segments(seed, segments, draws, segments)
    suspected = [segment for segment in suspects if segment not in drawn][: wanted.suspicious]
    return SegmentDraw(segments, seed, tuple(drawn), cheated, tuple(suspected))
