"""A server of arrivals that is killed at any write, or sent a message twice: it keeps every promise, once."""

import random
from collections.abc import Sequence

import pytest

import chosen_rows
from lab.rounds.arrival_drill import QUORUM, ROUNDS, WORKERS, ArrivalDrill, Habit
from lab.rounds.tiny_training import key
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.drawn_audit import open_rounds
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.log.log_entries import encode_entry
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.training.storage.store import Store


def require_honest(drill: ArrivalDrill, is_replayed: bool = False, liars: Sequence[str] = ()) -> None:
    """All rounds are there, the log has every receipt that anybody has seen, and only liars can be accused."""
    store = Store(drill.url)
    rounds = open_rounds(store)
    require_whole(store, load_head(store)[1])
    arrivals = {round_: roster.arrivals for round_, (roster,) in rounds.rosters.items()}
    assert [len(arrivals[round_]) for round_ in range(ROUNDS)] == [0, *[QUORUM] * (ROUNDS - 1)]
    logged = set(map(encode_entry, rounds.entries))
    assert drill.receipts
    assert set(map(encode_entry, drill.receipts)) <= logged
    assert {finding.worker for finding in findings_by_roots(rounds, receipts=drill.receipts)} == set(liars)
    if is_replayed:
        assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))


@pytest.mark.long
@pytest.mark.parametrize("begin", chosen_rows.first(range(5), 1, others=pytest.mark.slow))
def test_a_server_killed_at_any_write_goes_on(begin: int) -> None:
    undisturbed = ArrivalDrill()
    undisturbed.play()
    require_honest(undisturbed, is_replayed=True)
    assert undisturbed.writes > 20
    for write in range(begin, undisturbed.writes, 5):
        for is_done in (False, True):
            drill = ArrivalDrill([(write, is_done)])
            drill.play()
            require_honest(drill)


# Two of each kind in every run, the others where everything runs.
MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6)]


@pytest.mark.parametrize("seed", [0, 1, *MORE])
def test_a_server_killed_again_and_again_goes_on(seed: int) -> None:
    drawn = random.Random(seed)
    drill = ArrivalDrill([(drawn.randrange(12), drawn.random() < 0.5) for _ in range(5)], seed)
    drill.play()
    require_honest(drill, is_replayed=True)


@pytest.mark.parametrize("repeating", [[1], pytest.param([0, 1], marks=pytest.mark.long), [1, 2]])
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2)]])
def test_a_message_that_comes_twice_is_promised_one_round(seed: int, repeating: list[int]) -> None:
    """A second promise of it would be the server's lie about the order of arrivals."""
    drill = ArrivalDrill(seed=seed, habits=dict.fromkeys(repeating, Habit.REPEATS))
    drill.play()
    require_honest(drill)
    assert len(set(map(encode_entry, drill.receipts))) < len(drill.receipts)


def test_who_signs_two_messages_for_one_place_is_left_out() -> None:
    """Two promises for one place can't both be kept."""
    drill = ArrivalDrill(habits={1: Habit.FORKS})
    drill.play()
    require_honest(drill, liars=[key(1).name])


def test_who_signs_under_a_roster_of_its_own_is_left_out() -> None:
    """Nobody could show on a chain who has given that roster."""
    drill = ArrivalDrill(habits={1: Habit.STRAYS})
    drill.play()
    require_honest(drill)
    assert key(1).name not in {claim.worker for claim in open_rounds(Store(drill.url)).claims.values()}


def test_a_training_that_is_done_is_left_as_it_is() -> None:
    drill = ArrivalDrill()
    drill.play()
    before = Store(drill.url).read("rounds.json")
    drill.play()
    assert Store(drill.url).read("rounds.json") == before
    assert len(open_rounds(Store(drill.url)).plan.phases) == WORKERS
