"""Killed processes lose nothing, and machines that err challenge nobody; in full behind the marker for slow tests."""

from random import Random

import pytest

from lab.benchmarks.role_drills import arena, end_to_end, false_challenges, kills


@pytest.mark.long
@pytest.mark.parametrize("least", [5, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_killed_processes_lose_no_dispute_and_stake_nothing_twice(least: int) -> None:
    with arena() as place:
        found = kills(place, least, Random(3))
    assert found.kills >= least
    assert found.disputes >= 2
    assert found.trainings >= 1
    assert (found.lost, found.duplicated) == (0, 0)


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("games", [6, 10_000])
def test_a_flipped_bit_in_a_replay_challenges_nobody(games: int) -> None:
    with arena() as place:
        assert false_challenges(place, games, Random(4)) == 0


@pytest.mark.slow
def test_from_a_lie_to_the_slash() -> None:
    end = end_to_end()
    assert end.transactions > 2
    assert end.computing > 0
    assert end.waiting > 0
