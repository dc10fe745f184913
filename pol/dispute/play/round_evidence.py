"""A worker's claim in a training in rounds as a disputed claim, and the evidence of whoever replays it."""

from __future__ import annotations

from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.executor import ExecutorFactory
from pol.rounds.auditing.claim_replay import load_phase, load_start, phase_constants
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds


def replay_claim_of(entry: ClaimEntry, identity: bytes = bytes(32)) -> ReplayClaim:
    """The claim as the court takes it; ``identity`` is the dispute's id."""
    claim = entry.claim
    steps = (claim.first_step, claim.steps)
    return ReplayClaim(identity, claim.program, claim.constants, *steps, claim.start, claim.end)


def trace_of(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> SegmentTrace:
    """One's own execution of a claim, from what its sources have published, or from replays of those that haven't.

    Raises:
        OperationalError: something is withheld.
    """
    program = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase]).program
    constants, claim = phase_constants(rounds, entry), entry.claim
    start = load_start(rounds, entry, executors)
    return SegmentTrace(program, constants, executors(program, constants), start, claim.first_step, claim.steps)
