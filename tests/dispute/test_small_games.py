"""Every small game on an EVM: each shape, place of a lie, side and way to play; whoever tells the truth wins.

Where neither side tells it there is nobody to be right, but there is an end: within the bound, with one winner.
Against the clock a move counts up to the last second, and not one second later, for either side.

An opening shows whole levels of a binary tree (design.md, section 5), so that it commits to what lies open by a root;
its arity is a power of two. Three parts can't lie open but at the end of a list; two and four, played here, are the
arities next to it on both sides.
"""

from collections import Counter
from collections.abc import Iterator
from copy import copy
from itertools import product
from random import Random

import pytest
from timed_disputes import ClockedCourt, Pace, Timed, clocked_court
from tiny_programs import Contradicting, Silent, every_lie, honest_trace

from dispute_harness import Court, court, replay_claim
from hostile_players import RandomPlayer
from lab.disputes.dispute_match import Match
from pol.commitments.merkle import depth
from pol.commitments.program_hash import ProgramCommitment
from pol.demo.lying_players import LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import Side

SHAPES = list(product((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3)))
"""Nodes, terms of the fold, steps."""
SIDES = (Side.ASSERTER, Side.CHALLENGER)
PROMPT, LAST_SECOND = Pace(), Pace(last_second=True)


@pytest.fixture(scope="module", params=[1, 2])
def small_court(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def hear(court: Court, honest: SegmentTrace, liar: SegmentTrace, side: Side, player: Player) -> Match:
    players = {side: player, side.other: ReplayPlayer(honest)}
    claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
    header = ProgramCommitment.of(honest.program).header
    return court.hear(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER])


def ways(honest: SegmentTrace, liar: LyingTrace, other: LyingTrace, random: Random) -> list[Player]:
    """How to play with a lie, but for telling it to the end."""
    return [
        RandomPlayer(random, honest.program),
        Contradicting((ReplayPlayer(liar), ReplayPlayer(honest))),
        Contradicting((ReplayPlayer(liar), ReplayPlayer(other), RandomPlayer(random, honest.program))),
        *(Silent(ReplayPlayer(liar), moves) for moves in range(4)),
    ]


def most_moves(shape: tuple[int, int, int], bits: int) -> int:
    """One for each opening that a dispute can have: the first is the challenge's, and after the last comes a proof."""
    nodes, _, steps = shape
    leaf, terms, body = 1, 1, 1
    return sum(max(1, -(-depth(n) // bits)) for n in (steps, nodes)) + leaf + terms + body


def clash_all(court: Court, shapes: list[tuple[int, int, int]], every: int, share: float) -> Counter[str]:
    """Both sides play dishonestly, with ``share`` of all pairs of ways to: how the games ended."""
    random, seen = Random(5), Counter[str]()
    for shape in shapes:
        honest = honest_trace(*shape)
        end, header = honest.first_step + honest.steps, ProgramCommitment.of(honest.program).header
        lies = list(every_lie(honest))
        for lie in lies[::every]:
            mine, yours, other = (LyingTrace(honest, li) for li in (lie, *random.choices(lies, k=2)))
            if mine.state_root(end) == yours.state_root(end):
                continue
            asserters, challengers = (
                [ReplayPlayer(trace), *ways(honest, trace, other, random)] for trace in (mine, yours)
            )
            claim = replay_claim(honest, mine)
            for asserter, challenger in product(asserters, challengers):
                if random.random() > share:
                    continue
                # `hear` holds each head and the end against the chain's; a head names the side whose clock runs.
                match = court.hear(claim, header, copy(asserter), copy(challenger))
                assert match.winner in (Side.ASSERTER, Side.CHALLENGER)
                assert match.refuted or match.winner is match.last.turn.other
                assert len(match.record.moves) <= most_moves(shape, court.bits), (shape, lie, match.detail)
                seen.update(["games", match.winner.name, f"refuted {match.refuted}", type(asserter).__name__])
    return seen


def play_all(court: Court, shapes: list[tuple[int, int, int]], every: int) -> int:
    random, games = Random(4), 0
    for shape in shapes:
        honest = honest_trace(*shape)
        end = honest.first_step + honest.steps
        lies = [lie for lie in every_lie(honest) if LyingTrace(honest, lie).state_root(end) != honest.state_root(end)]
        for number, (lie, side) in enumerate(product(lies, (Side.ASSERTER, Side.CHALLENGER))):
            liar = LyingTrace(honest, lie)
            players: list[Player] = [ReplayPlayer(liar)]
            if number % every == 0:
                players += ways(honest, liar, LyingTrace(honest, random.choice(lies)), random)
            for player in players:
                match = hear(court, honest, liar, side, player)
                assert match.winner is side.other, (shape, lie, side, player, match.detail)
                games += 1
    return games


def test_the_truth_wins_small_games(small_court: Court) -> None:
    assert play_all(small_court, [(1, 1, 1), (1, 3, 2), (3, 2, 1), (4, 4, 3)], every=9) > 300


@pytest.mark.slow
def test_the_truth_wins_every_small_game(small_court: Court) -> None:
    assert play_all(small_court, SHAPES, every=1) > 10_000


def test_small_games_without_truth_end(small_court: Court) -> None:
    seen = clash_all(small_court, [(1, 3, 2), (3, 2, 1), (4, 4, 3)], every=23, share=0.2)
    assert min(seen[key] for key in ("ASSERTER", "CHALLENGER", "refuted True", "refuted False")) > 0
    assert min(seen[player.__name__] for player in (ReplayPlayer, RandomPlayer, Contradicting, Silent)) > 0
    assert seen["games"] > 50


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_small_games_of_every_shape_without_truth_end(small_court: Court) -> None:
    assert clash_all(small_court, SHAPES, every=1, share=0.25)["games"] > 10_000


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
