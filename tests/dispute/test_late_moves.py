"""Small games against the clock: a move counts up to the last second, and not one second later, for either side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from timed_disputes import ClockedCourt, Pace, Timed, clocked_court
from tiny_programs import every_lie, honest_trace

from dispute_harness import replay_claim
from pol.commitments.program_hash import ProgramCommitment
from pol.demo.lying_players import LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import Side

SIDES = (Side.ASSERTER, Side.CHALLENGER)
PROMPT, LAST_SECOND = Pace(), Pace(last_second=True)


@pytest.fixture(scope="module", params=[1, 2])
def clocked(request: pytest.FixtureRequest) -> Iterator[ClockedCourt]:
    with clocked_court(request.param) as found:
        yield found


def timed(
    court: ClockedCourt, honest: SegmentTrace, traces: dict[Side, SegmentTrace], paces: dict[Side, Pace]
) -> Timed:
    players = {side: ReplayPlayer(trace) for side, trace in traces.items()}
    header = ProgramCommitment.of(honest.program).header
    return court.play_timed(replay_claim(honest, traces[Side.ASSERTER]), header, players, paces)


def liars(honest: SegmentTrace) -> list[LyingTrace]:
    """Whose lies show in what is claimed."""
    end = honest.first_step + honest.steps
    found = [LyingTrace(honest, lie) for lie in every_lie(honest)]
    return [liar for liar in found if liar.state_root(end) != honest.state_root(end)]


def race(court: ClockedCourt, honest: SegmentTrace, liar: LyingTrace, side: Side) -> int:
    """The games about one lie in which somebody is late; how many."""
    traces: dict[Side, SegmentTrace] = {side: liar, side.other: honest}
    for mine, yours in ((LAST_SECOND, PROMPT), (PROMPT, LAST_SECOND), (LAST_SECOND, LAST_SECOND)):
        found = timed(court, honest, traces, {side: mine, side.other: yours})
        assert (found.winner, found.late) == (side.other, Side.NONE), "the last second counts"
    games, moves = 3, found.match.record.moves
    # The asserter makes the first move, and they take turns.
    for number in range(len(moves)):
        late = SIDES[number % 2]
        paces = {late: Pace(last_second=True, too_late=number // 2), late.other: PROMPT}
        found = timed(court, honest, traces, paces)
        assert (found.winner, found.late) == (late.other, late), "one second later, even the truth loses"
        games += 1
    return games


def test_the_last_second_counts_and_the_next_one_does_not(clocked: ClockedCourt) -> None:
    honest = honest_trace(2, 2, 2)
    lies = liars(honest)
    assert sum(race(clocked, honest, lies[i], side) for i, side in zip((0, -1), SIDES, strict=True)) > 12


def test_two_liars_who_take_all_their_time_still_end(clocked: ClockedCourt) -> None:
    honest = honest_trace(2, 3, 2)
    mine, *_, yours = liars(honest)
    for paces in product((LAST_SECOND, PROMPT), repeat=2):
        found = timed(
            clocked, honest, dict(zip(SIDES, (mine, yours), strict=True)), dict(zip(SIDES, paces, strict=True))
        )
        assert (found.winner, found.late) == (found.match.winner, Side.NONE)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_small_lie_against_the_clock(clocked: ClockedCourt) -> None:
    games = 0
    for shape in product((1, 3), (1, 3), (1, 2)):
        honest = honest_trace(*shape)
        games += sum(race(clocked, honest, liar, side) for liar, side in product(liars(honest), SIDES))
    assert games > 500
