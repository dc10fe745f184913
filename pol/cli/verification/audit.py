"""``pol audit URL``: is what a worker claims of a round true?"""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from pol.cli.examples import example
from pol.cli.file_output import console, json_option
from pol.cli.verification.rounds_report import write_rounds_page
from pol.report.narrator import ConsoleNarrator
from pol.training.storage.store import Store

if TYPE_CHECKING:
    from pol.rounds.auditing.drawn_audit import RoundsAudit

EXIT = {"accepted": 0, "rejected": 1, "inconclusive": 3}
_SEED = re.compile(r"(?:0x)?[0-9a-fA-F]{64}")


def _seed(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    if value is not None and not _SEED.fullmatch(value):
        raise click.BadParameter(f"{value!r} isn't 32 bytes in hexadecimal")
    return None if value is None else bytes.fromhex(value.removeprefix("0x"))


@click.command(epilog=example("pol audit runs/rounds --round 4 --worker 2"))
@click.argument("url")
@click.option("--worker", metavar="K", help="Claims of this worker: its seat, or its key's address.")
@click.option("--round", "round_", type=click.IntRange(0), metavar="R", help="Claims of this round.")
@click.option("--draw", "draws", type=click.IntRange(1), metavar="N", help="Draw N of these claims instead of all.")
@click.option("--seed", callback=_seed, metavar="HEX", help="Randomness of the draw; else fresh entropy.")
@click.option("--all-roots", is_flag=True, help="Check all claims and rosters by their roots; needs no replay.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page of HTML.")
@click.option("--by", default="", metavar="NAME", help="Who audits, for the page.")
@json_option
def audit(
    url: str,
    worker: str | None,
    round_: int | None,
    draws: int | None,
    seed: bytes | None,
    all_roots: bool,
    report: Path | None,
    by: str,
    as_json: bool,
) -> int:
    """Check the training in rounds at URL: who signed which claim, from what, and whether its program gives that end.

    Exit codes: 0 accepted, 1 a lie was found, 2 wrong usage, 3 something is withheld or can't be read.
    """
    from pol.rounds.auditing.drawn_audit import audit as audited

    if seed is not None and draws is None:
        raise click.UsageError("--seed is for a draw: give --draw N, too")
    drawn_by = seed or secrets.token_bytes(32)
    began = time.monotonic()
    tell = ConsoleNarrator(Console(stderr=True, quiet=as_json or not sys.stderr.isatty()))
    with tell.progress("replaying claims") as advance:
        found = audited(Store(url), worker, round_, draws=draws, seed=drawn_by, is_all_roots=all_roots, advance=advance)
    seconds = time.monotonic() - began
    drawn_seed = drawn_by.hex() if draws is not None else None
    if report is not None:
        asked = {"--worker": worker, "--round": round_, "--draw": draws, "--seed": drawn_seed}
        options = [word for name, value in asked.items() if value is not None for word in (name, str(value))]
        write_rounds_page(report, url, found, [*options, *(["--all-roots"] if all_roots else [])], by, drawn_seed, tell)
    if as_json:
        print(json.dumps(document(found) | {"seed": drawn_seed, "seconds": round(seconds, 3)}, indent=2))
    else:
        _tell(found, drawn_seed, seconds)
    return EXIT[found.outcome]


def document(found: RoundsAudit) -> dict[str, Any]:
    """An audit as ``--json`` prints it."""
    replayed = [
        {
            "worker": entry.worker,
            "round": entry.claim.round,
            "phase": found.plan.phase_name(entry.claim.phase),
            "part": entry.claim.part,
            "steps": entry.claim.steps,
            "claim": entry.claim.digest.hex(),
        }
        for entry in found.claims
    ]
    findings = [
        {
            "lie": finding.lie.value,
            "worker": finding.worker,
            "round": finding.round,
            "phase": finding.phase,
            "claim": finding.claim.hex(),
            "detail": finding.detail,
        }
        for finding in found.findings
    ]
    return {
        "outcome": found.outcome,
        "system": found.plan.system,
        "plan": found.plan.digest.hex(),
        "replayed": replayed,
        "findings": findings,
    }


def _tell(found: RoundsAudit, seed: str | None, seconds: float) -> None:
    out = console()
    steps = sum(entry.claim.steps for entry in found.claims)
    what = f"{len(found.claims)} claims with {steps} steps replayed" if found.claims else "roots of all claims checked"
    drawn = f", drawn by {seed}" if seed is not None else ""
    out.print(f"{found.outcome}: {found.plan.system}, {what} in {seconds:.1f} s{drawn}", soft_wrap=True)
    for finding in found.findings:
        out.print(f"{finding.lie.value}: {finding}", soft_wrap=True)
