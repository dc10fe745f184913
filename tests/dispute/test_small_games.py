"""Every small game on an EVM: each shape, place of a lie, side and way to play; whoever tells the truth wins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from court import Court, court, replay_claim
from small import Contradicting, Silent, every_lie, honest_trace

from pol.commitments.program import ProgramCommitment
from pol.dispute.evidence import SegmentTrace
from pol.dispute.hostile import LyingTrace, RandomPlayer
from pol.dispute.match import Match
from pol.dispute.players import Player, ReplayPlayer
from pol.dispute.position import Side

SHAPES = list(product((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3)))
"""Nodes, terms of the fold, steps."""


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
