"""A worker's false claim in the court: its author maintains the end, somebody who has replayed it challenges."""

from lab.disputes.dispute_match import Match, play
from pol.demo.lying_players import JumpingTrace
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import replay_claim_of, trace_of
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_end, load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds

Sides = tuple[ReplayClaim, bytes, ReplayPlayer, ReplayPlayer]


def sides(rounds: LoggedRounds, entry: ClaimEntry) -> Sides:
    """The claim, the program's header, its author's player and the challenger's: for `Court.play` and `Court.hear`."""
    honest = trace_of(rounds, entry, CpuExecutor)
    held, start = load_end(rounds, entry), honest.state(entry.claim.first_step)
    end = [held.get(slot, words) for slot, words in enumerate(start)]  # what isn't held is as its source
    author = JumpingTrace(trace_of(rounds, entry, CpuExecutor), end)
    assert author.state_root(entry.claim.first_step + entry.claim.steps) == entry.claim.end
    header = honest.commitment.header
    assert load_phase(rounds.store, rounds.plan.phases[entry.claim.phase]).program == honest.program
    return replay_claim_of(entry), header, ReplayPlayer(author), ReplayPlayer(honest)


def walked(rounds: LoggedRounds, entry: ClaimEntry) -> Match:
    """The dispute by the rules alone, without a chain."""
    return play(*sides(rounds, entry))
