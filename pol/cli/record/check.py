"""``pol check``: checks files against a commitment, or a learning record against itself."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from pol.cli.examples import example
from pol.cli.file_output import (
    DIFFERS,
    FINE,
    SHOWN_ROWS,
    UNSEEN,
    console,
    json_option,
    read_file,
    unsupported_is_unseen,
)
from pol.cli.record.commit import entries_of
from pol.errors import OperationalError
from pol.training.record.recorded_run import is_run, open_store, split_step
from pol.training.storage.commitment import DOCUMENT_LIMIT, Commitment, compare
from pol.verification.runs.record_check import CheckFinding, CheckOutcome, check_record


@click.command(epilog=example("pol check model.safetensors model.json", "pol check runs/first"))
@click.argument("path")
@click.argument("commitment", required=False, type=click.Path(path_type=Path))
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Look at N checkpoints of a record instead of all.")
@click.option("--seed", type=int, metavar="S", help="Draws the sample.")
@json_option
@unsupported_is_unseen
def check(path: str, commitment: Path | None, sample: int | None, seed: int | None, as_json: bool) -> int:
    """Check PATH against COMMITMENT (from `pol commit --out`), or a learning record against what it says itself.

    RECORD@STEP checks one checkpoint of a record.
    """
    if seed is not None and sample is None:
        raise click.UsageError("--seed draws a sample: say how many checkpoints with --sample")
    if commitment is not None:
        if sample is not None:
            raise click.UsageError("--sample is for learning records; a commitment is checked whole")
        return _against(path, commitment, as_json)
    place, step = split_step(path)
    if not is_run(place):
        if "://" not in place and not Path(place).exists():
            raise OperationalError(f"can't read {path}: it does not exist")
        raise click.UsageError(
            f"{path} is no learning record: give a commitment to check it against (pol commit {path} --out FILE)"
        )
    if step is None:
        return _record(check_record(open_store(place), sample, seed or 0), as_json)
    if sample is not None:
        raise click.UsageError(f"{path} is one checkpoint: leave out --sample, or the step")
    return _record(check_record(open_store(place), step=step), as_json)


def _against(path: str, file: Path, as_json: bool) -> int:
    committed = Commitment.decode(read_file(file, limit=DOCUMENT_LIMIT))
    found = Commitment(entries_of(path)[0])
    mismatches = compare(committed.entries, found.entries)
    if as_json:
        document = {
            "equal": not mismatches,
            "committed": committed.root.hex(),
            "found": found.root.hex(),
            "entries": len(committed.entries),
            "mismatches": [{"name": m.name, "how": m.how} for m in mismatches],
        }
        print(json.dumps(document, indent=2))
        return DIFFERS if mismatches else FINE
    terminal = console()
    if not mismatches:
        terminal.print(f"equal: all {len(found.entries)} entries, complete root {found.root.hex()}", soft_wrap=True)
        return FINE
    for mismatch in mismatches[:SHOWN_ROWS]:
        terminal.print(f"{mismatch.how:<13} {mismatch.name}", soft_wrap=True)
    if len(mismatches) > SHOWN_ROWS:
        terminal.print(f"and {len(mismatches) - SHOWN_ROWS} more: --json has all")
    terminal.print(f"{len(mismatches)} of {len(committed.entries)} committed entries aren't what was committed to")
    return DIFFERS


def _record(findings: list[CheckFinding], as_json: bool) -> int:
    outcomes = {finding.outcome for finding in findings}
    code = DIFFERS if CheckOutcome.BAD in outcomes else UNSEEN if CheckOutcome.UNSEEN in outcomes else FINE
    if as_json:
        rows = [{"check": f.check, "about": f.about, "outcome": f.outcome.value, "detail": f.detail} for f in findings]
        print(json.dumps({"fine": code == FINE, "findings": rows}, indent=2))
        return code
    table = Table("check", "about", "outcome", "detail")
    for column in table.columns:
        column.overflow = "fold"
    for finding in findings:
        table.add_row(finding.check, finding.about, finding.outcome.value, finding.detail)
    terminal = console()
    terminal.print(table)
    bad = ", ".join(f"{f.check} {f.about}".strip() for f in findings if f.outcome is CheckOutcome.BAD)
    verdict = {
        FINE: "everything that was checked is good",
        DIFFERS: f"the record, or what it names, is bad: {bad}",
        UNSEEN: "nothing bad was found, but not everything could be checked",
    }
    terminal.print(verdict[code], soft_wrap=True)
    return code
