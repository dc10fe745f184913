"""A dispute about a claim of a training in rounds, all of its moves checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import ReplayClaim
from pol.errors import ProtocolError
from pol.graph.node_names import ProgramNames
from pol.report.disputes.dispute_entries import DisputeEntry, entries, given_up
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds


@dataclass(frozen=True)
class ToldDispute:
    """A dispute about a claim of these rounds, all of its moves checked."""

    claim: ClaimEntry
    moves: tuple[DisputeEntry, ...]

    @classmethod
    def of(cls, rounds: LoggedRounds, record: DisputeRecord, ended_by: str) -> ToldDispute | None:
        """The dispute of a record; None if only some rounds were read, and it is about none of their claims.

        Raises:
            ProtocolError: it is about no claim of these rounds, or a move is illegal.
        """
        about = record.claim
        if not isinstance(about, ReplayClaim):
            raise ProtocolError("the dispute beside these rounds isn't about the execution of a claim")
        for entry in rounds.claims.values():
            claim = entry.claim
            if (claim.program, claim.start, claim.end) == (about.program, about.start, about.end):
                names = load_phase(rounds.store, rounds.plan.phase(claim.phase)).names
                return cls(entry, _moves(record, names, ended_by))
        if not rounds.is_whole:
            return None
        raise ProtocolError("the dispute beside these rounds is about no claim of them: it was moved here or changed")


def _moves(record: DisputeRecord, names: ProgramNames, ended_by: str) -> tuple[DisputeEntry, ...]:
    found: Sequence[DisputeEntry] = list(entries(record, names))
    if found[-1].outcome is None:
        found = [*found, given_up(record, names, ended_by)]
    return tuple(found)
