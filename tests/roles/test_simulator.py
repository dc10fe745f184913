"""Games of real parties on the real contracts (`lab.simulator`): nobody honest loses, and no cheat gains."""

from collections.abc import Iterator

import pytest

from lab.benchmarks.simulated_games import BLOCKS, forgetting, results
from lab.simulator.game import Game, Result
from lab.simulator.world import World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def require_right(games: Iterator[Result]) -> None:
    for played in games:
        assert not played.wrong, (played.seed, played.cast, played.troubles, played.wrong, played.told)


def test_nobody_honest_loses_and_no_cheat_gains(world: World) -> None:
    require_right(iter(results(world, range(4))))


@pytest.mark.long
def test_in_more_games(world: World) -> None:
    require_right(iter(results(world, range(4, 16))))


@pytest.mark.slow
def test_in_many_games(world: World) -> None:
    require_right(iter(results(world, range(16, 2000))))


def test_a_seed_is_one_game(world: World) -> None:
    first, second = results(world, (6, 6))
    assert first == second


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "verb", "seed", "wrong"),
    [
        ("verifier", "disclose", 6, "verifier has lost"),
        ("verifier", "post the verdict", 6, "verifier has lost"),
        ("solver", "train", 6, "solver has lost"),
        ("solver", "reveal", 6, "hasn't ended"),
        ("whistleblower", "challenge the verdict", 2, "solver has lost"),
    ],
)
def test_who_forgets_a_duty_is_found(world: World, role: str, verb: str, seed: int, wrong: str) -> None:
    """Else the games would show nothing."""
    played = Game(world, seed, forgetting(role, verb), BLOCKS).play()
    assert any(wrong in told for told in played.wrong), (played.wrong, played.told)
