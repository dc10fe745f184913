"""``pol verify STORE [PROOF]``: verify a learning proof by replaying drawn segments."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from pol.cli.examples import defaulted, example
from pol.cli.file_output import console, write_file
from pol.cli.verification.verification_options import Share, digest_option, engine_options, hash_option, open_engine
from pol.errors import EvidenceError, OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.report.narrator import ConsoleNarrator
from pol.training.record.recorded_run import is_run, open_run, open_store

if TYPE_CHECKING:
    from pol.report.verification_scope import Occasion
    from pol.verification.examination.verification_report import VerificationReport

EXIT = {"accepted": 0, "rejected": 1, "inconclusive": 3}


@click.command(epilog=example("pol verify runs/first --exact --draws 3"))
@click.argument("store")
@click.argument("proof", required=False, callback=digest_option)
@click.option(
    "--profile", callback=digest_option, metavar="DIGEST", help="The profile with the thresholds, in the same store."
)
@click.option("--exact", is_flag=True, help="Roots must be equal: the default if the proof says that it is exact.")
@click.option(
    "--seed", callback=hash_option, metavar="HEX", help="Randomness of a beacon after the proof; else fresh entropy."
)
@defaulted(
    "--confidence",
    type=Share(),
    default="0.99",
    metavar="P",
    help="Draw enough segments to hit a bad one with this probability,",
)
@defaulted("--cheat-fraction", type=Share(), default="0.05", metavar="F", help="if this share of them is bad.")
@click.option("--draws", type=click.IntRange(1), metavar="N", help="Draw N segments instead.")
@click.option("--all", "everything", is_flag=True, help="Replay all segments.")
@click.option(
    "--suspicious", type=click.IntRange(0), default=0, metavar="K", help="Screen all checkpoints; replay K more."
)
@defaulted(
    "--looks",
    type=click.IntRange(0, 64),
    default=16,
    metavar="N",
    help="Reruns of a second look at a segment beyond the thresholds; 0: no second look.",
)
@click.option(
    "--log-root", callback=hash_option, metavar="HEX", help="Root of the checkpoint log that was committed to."
)
@engine_options
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page of HTML.")
@click.option("--by", default="", metavar="NAME", help="Who verifies, for the page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(store: str, proof: str | None, report: Path | None, by: str, as_json: bool, **options: Any) -> int:
    """Verify the learning proof PROOF (its digest, or a file with it) in STORE, or that of the learning record in it.

    Segments are drawn and replayed canonically, and compared with what the solver's checkpoints say.

    Exit codes: 0 accepted, 1 rejected, 2 wrong usage, 3 inconclusive.
    """
    from pol.report.verification_page import page
    from pol.report.verification_scope import unchecked
    from pol.verification.examination.verification_report import document

    if options["profile"] is not None and options["exact"]:
        raise click.UsageError("--profile and --exact exclude each other: compare by thresholds, or exactly")
    if sum((options["everything"], options["draws"] is not None)) > 1:
        raise click.UsageError("--all and --draws exclude each other")
    if proof is None and not is_run(store):
        open_store(store)
        raise click.UsageError(f"{store} is no learning record: name the digest of a learning proof")
    found = _verify(store, proof, as_json, **options)
    occasion = _occasion(found, by, options)
    if report is not None:
        write_file(report, page(found, occasion).encode())
    left = unchecked(found, occasion)
    if as_json:
        print(json.dumps({**document(found), "unchecked": left}, indent=2))
    else:
        _tell(found, left, report)
    return EXIT[found.verdict.outcome.name.lower()]


def _verify(path: str, digest: str | None, quiet: bool, **options: Any) -> VerificationReport:
    from pol.verification.engines.store_engine import StoreEngine
    from pol.verification.examination import verify_training as verification

    begun, terminal = time.monotonic(), Console(stderr=True, quiet=quiet)
    narrator = ConsoleNarrator(terminal)

    def tell(sentence: str, facts: dict[str, Any]) -> None:
        terminal.print(sentence, markup=False, highlight=False, soft_wrap=True)

    if digest is None:
        _require_task(path)
    sampling = verification.Sampling(
        confidence=options["confidence"],
        cheat_fraction=options["cheat_fraction"],
        draws=options["draws"],
        everything=options["everything"],
        seed=None if options["seed"] is None else bytes.fromhex(options["seed"]),
        suspicious=options["suspicious"],
    )
    engine = open_engine({**options, "store": path}, tell)
    try:
        found = verification.verify(
            path,
            digest,
            profile=options["profile"],
            exact=options["exact"] or None,
            sampling=sampling,
            log_root=None if options["log_root"] is None else bytes.fromhex(options["log_root"]),
            engine=engine,
            looks=options["looks"],
            progress=narrator.progress,
        )
    except EvidenceError:
        raise
    except ProtocolError as error:  # of the arguments: bad evidence is an outcome
        raise click.UsageError(str(error)) from error
    workers = tuple(engine.workers) if isinstance(engine, StoreEngine) else ()
    return replace(found, engine=options["engine"], seconds=time.monotonic() - begun, workers=workers)


def _require_task(path: str) -> None:
    """Refuse a record that names no task: it isn't false, but it can't be replayed."""
    try:
        named = open_run(path).names_task()
    except (ProtocolError, OperationalError):
        return  # the verification finds the same, as an outcome
    if not named:
        raise click.UsageError(
            "this record names no task, so its steps can't be replayed. `pol check RECORD` verifies its checkpoints; "
            "Recorder(..., task=) makes a record whose training can be replayed (docs/guides/record.md)"
        )


def _occasion(found: VerificationReport, by: str, options: dict[str, Any]) -> Occasion:
    from pol.report.verification_scope import Occasion, repeat_command
    from pol.verification.verdict.second_look import LOOKS

    more = [] if options["looks"] == LOOKS else ["--looks", str(options["looks"])]
    committed = options["log_root"]
    more += [] if committed is None else ["--log-root", committed]
    return Occasion(int(time.time()), by, repeat_command(found, more), is_log_committed=committed is not None)


def _tell(found: VerificationReport, left: list[str], report: Path | None) -> None:
    from pol.verification.examination.verification_report import draw_reasons

    terminal, verdict = console(), found.verdict
    if verdict.examined:
        terminal.print(_table(found))
    if found.draw is not None:
        for line in draw_reasons(found):
            terminal.print(line, soft_wrap=True)
    for worker in found.workers:
        fault = "" if worker.fault is None else f", {worker.fault.value}: {worker.detail}"
        terminal.print(f"worker {worker.key.hex()}: {worker.answers} answers{fault}", soft_wrap=True)
    reasons = ", ".join(reason.value for reason in verdict.reasons)
    terminal.print(f"{verdict.outcome.name}: {verdict.detail} ({reasons})", soft_wrap=True)
    for sentence in found.advice:
        terminal.print(sentence, soft_wrap=True)
    for sentence in ("What wasn't checked:", *(f"- {line}" for line in left)):
        terminal.print(sentence, soft_wrap=True, highlight=False, markup=False)
    if report is not None:
        terminal.print(f"report: {report}", soft_wrap=True)


def _table(found: VerificationReport) -> Table:
    from pol.verification.examination.verification_report import limit_shares

    unit = "travelled" if found.is_exact else "limit"
    table = Table("segment", "steps", "outcome", *(f"{c.name.lower()} / {unit}" for c in Component), "reasons")
    interval = found.subject.task.document.interval if found.subject is not None else 0
    for result in found.verdict.examined:
        verdict, first = result.verdict, result.verdict.segment * interval
        far = [f"{share:.3g}" for share in limit_shares(verdict, found.thresholds)] or ["-"] * len(Component)
        reasons = ", ".join(reason.value for reason in verdict.reasons)
        outcome = verdict.outcome.name.lower()
        table.add_row(str(verdict.segment), f"{first} to {first + interval}", outcome, *far, reasons)
    return table
