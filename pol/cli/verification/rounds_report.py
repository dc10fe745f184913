"""The page about a training in rounds, as `pol audit --report` and `pol report` write it."""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pol.cli.dispute.recorded_dispute import read_json
from pol.cli.file_output import write_file
from pol.dispute.dispute_record import DisputeRecord
from pol.errors import PolError
from pol.execution.cpu import CpuExecutor
from pol.report.narrator import Narrator

if TYPE_CHECKING:
    from pol.report.disputes.told_dispute import ToldDispute
    from pol.rounds.auditing.drawn_audit import RoundsAudit

DISPUTE, PAGE = "dispute.json", "page.html"
"""What a demo keeps beside its store."""


def write_rounds_page(
    file: Path, url: str, found: RoundsAudit, options: list[str], by: str, seed: str | None, tell: Narrator
) -> None:
    """Write the page of an audit; ``options`` repeat it, ``seed`` has drawn its claims.

    Raises:
        ProtocolError: the dispute that was kept beside the log isn't of these rounds.
    """
    from pol.report.rounds_page import RoundsFigures, page
    from pol.report.verification_scope import Occasion
    from pol.rounds.auditing.round_audit import Lie
    from pol.rounds.rounds_course import claim_distances, rounds_course

    with tell.progress("looking at the loss of all claims") as advance:
        course = rounds_course(found.rounds, CpuExecutor, advance)
    distances = {}
    for finding in found.lies:
        if finding.lie is Lie.EXECUTION:
            with suppress(PolError):  # withheld since the audit
                entry = found.rounds.claims[finding.claim]
                distances[finding.claim] = claim_distances(found.rounds, entry, CpuExecutor)
    figures = RoundsFigures(course, distances, _kept_dispute(Path(url) / DISPUTE, found), seed)
    occasion = Occasion(int(time.time()), by, shlex.join(["pol", "audit", url, *options]))
    write_file(file, page(found, figures, occasion).encode())


def _kept_dispute(kept: Path, found: RoundsAudit) -> ToldDispute | None:
    """The dispute that `pol demo --decentralised --out` has kept beside the store, if there is one."""
    from pol.report.disputes.told_dispute import ToldDispute

    if not kept.is_file():
        return None
    told = read_json(kept)
    record = DisputeRecord.from_dict(told)
    ended_by = told.get("ended_by")
    return ToldDispute.of(found.rounds, record, ended_by if isinstance(ended_by, str) else "silence")
