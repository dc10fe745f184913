"""The page of `pol report TRAINING`: a verification or an audit, and what the training itself shows."""

from __future__ import annotations

import json
import secrets
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from pol.cli.file_output import write_file
from pol.cli.verification.rounds_report import write_rounds_page
from pol.cli.verification.verification_options import digest_in, hash_in
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.report.narrator import ConsoleNarrator
from pol.training.record import learning_record
from pol.training.record.recorded_run import RecordedRun, open_run, open_store

if TYPE_CHECKING:
    from pol.training.storage.store import Store

EXIT = {"accepted": 0, "rejected": 1, "inconclusive": 3}
CHEATED, CONFIDENCE = Fraction(1, 20), Fraction(99, 100)
"""A lie in this share of all segments or claims is found with this probability."""


def write_training_page(
    file: Path,
    training: str,
    proof: str | None,
    profile: str | None,
    draws: int | None,
    seed: str | None,
    by: str,
    as_json: bool,
) -> int:
    """Write the page of whatever training there is, and print what it says; the exit code of its outcome.

    Raises:
        UsageError: an option is malformed, or of another kind of training.
    """
    outcome, detail = _page_of(file, training, proof, profile, draws, seed, by)
    if as_json:
        print(json.dumps({"page": str(file), "outcome": outcome, "detail": detail}))
    else:
        print(f"{file}: {outcome}: {detail}")
    return EXIT[outcome]


def _page_of(
    file: Path, training: str, proof: str | None, profile: str | None, draws: int | None, seed: str | None, by: str
) -> tuple[str, str]:
    """Write the page; outcome and detail."""
    drawn_by = None if seed is None else bytes.fromhex(hash_in(seed))
    if proof is None and _is_rounds(training):
        if profile is not None:
            raise click.UsageError("--profile is for a learning proof: claims of rounds are exact, leave it out")
        return _of_rounds(file, training, draws, drawn_by, by)
    if proof is None and not _stores(training)[0].holds(learning_record.HEAD):
        raise OperationalError(
            f"{training} holds neither a learning record nor a training in rounds; of another store name the digest of "
            "a learning proof, too: pol report STORE PROOF"
        )
    digests = [None if name is None else digest_in(name) for name in (proof, profile)]
    if proof is None:
        run = open_run(training)
        if not run.names_task():
            return _of_record(file, run, by)
    return _of_proof(file, training, digests[0], digests[1], draws, drawn_by, by)


def _of_proof(
    file: Path, path: str, proof: str | None, profile: str | None, draws: int | None, seed: bytes | None, by: str
) -> tuple[str, str]:
    from pol.report.training_cards import course_cards, residual_card
    from pol.report.verification_page import page
    from pol.report.verification_scope import Occasion, repeat_command
    from pol.verification.engines.engine import SlotEngine
    from pol.verification.examination import verify_training as verification
    from pol.verification.examination.training_course import course_of

    tell, begun, engine = _narrator(), time.monotonic(), SlotEngine()
    sampling = verification.Sampling(CONFIDENCE, CHEATED, draws, seed=seed, suspicious=1)
    found = verification.verify(path, proof, profile=profile, sampling=sampling, engine=engine, progress=tell.progress)
    cards = []
    if found.subject is not None:
        subject = found.subject
        with tell.progress("looking at all checkpoints") as advance:
            course = course_of(subject.store, subject.task, subject.proof.checkpoints, CpuExecutor, advance)
        cards = [*residual_card(engine.distances), *course_cards(course)]
    found = replace(found, engine="local", seconds=time.monotonic() - begun)
    occasion = Occasion(int(time.time()), by, repeat_command(found))
    write_file(file, page(found, occasion, cards).encode())
    return found.verdict.outcome.name.lower(), found.verdict.detail


def _of_rounds(file: Path, url: str, draws: int | None, seed: bytes | None, by: str) -> tuple[str, str]:
    from pol.claims.sample_size import cheated_segments, draws_for
    from pol.rounds.auditing.drawn_audit import audit_claims, drawn_claims, open_rounds

    tell, store = _narrator(), open_store(url)
    rounds = open_rounds(store)
    everything, seed = list(rounds.claims.values()), seed or secrets.token_bytes(32)
    if draws is None:
        draws = draws_for(len(everything), cheated_segments(len(everything), CHEATED), CONFIDENCE, len(everything))
    chosen = drawn_claims(everything, draws, seed)
    with tell.progress("replaying drawn claims") as advance:
        found = audit_claims(rounds, chosen, is_all_roots=True, advance=advance)
    options = ["--draw", str(draws), "--seed", seed.hex(), "--all-roots"]
    write_rounds_page(file, url, found, options, by, seed.hex(), tell)
    return found.outcome, f"{len(chosen)} of {len(everything)} claims replayed, all roots checked"


def _of_record(file: Path, run: RecordedRun, by: str) -> tuple[str, str]:
    """A record that names no task: its log and its checkpoints can be checked, its steps can't be replayed."""
    from pol.report.record_page import page
    from pol.report.verification_scope import Occasion
    from pol.verification.examination.training_course import recorded_course

    with _narrator().progress("comparing checkpoints") as advance:
        course = recorded_course(run, advance)
    occasion = Occasion(int(time.time()), by, f"pol check {run.store.url}")
    write_file(file, page(run, course, occasion).encode())
    return "accepted", f"{len(run.steps)} checkpoints; no task is named, so nothing could be replayed"


def _narrator() -> ConsoleNarrator:
    return ConsoleNarrator(Console(stderr=True, quiet=not sys.stderr.isatty()))


def _is_rounds(training: str) -> bool:
    from pol.rounds.log.rounds_log import HEAD

    return any(store.holds(HEAD) for store in _stores(training))


def _stores(training: str) -> list[Store]:
    """The store at a path, and the one that a demo's folder holds."""
    from pol.training.storage.store import Store

    store = open_store(training)
    return [store, Store(f"{store.url.rstrip('/')}/store")]
