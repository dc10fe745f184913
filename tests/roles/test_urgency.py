"""What is due is done in the order of deadlines; where that fails, the least is lost."""

from collections.abc import Iterable, Mapping
from itertools import combinations, permutations
from random import Random

import pytest

from pol.roles.party.decisions import Action, Mode
from pol.roles.process.schedule import in_order

pytestmark = pytest.mark.rules


def deed(name: int, due: int | None, at_stake: int = 0) -> Action:
    return Action(bytes([name]), "move", "a clock runs", Mode.DEFEND, lambda: None, due, at_stake)


def names(deeds: list[Action]) -> list[int]:
    return [each.task_id[0] for each in deeds]


def test_deadlines_come_first_and_what_has_none_last() -> None:
    deeds = [deed(1, None), deed(2, 300), deed(3, 200)]
    assert names(in_order(deeds, 100, lambda _: 1)) == [3, 2, 1]


def test_the_greater_stake_is_saved_where_only_one_can_be() -> None:
    deeds = [deed(1, 150, at_stake=1), deed(2, 160, at_stake=50)]
    assert names(in_order(deeds, 100, lambda _: 55)) == [2, 1]
    assert names(in_order(deeds, 100, lambda _: 30)) == [1, 2]


def test_what_is_late_already_delays_nothing() -> None:
    deeds = [deed(1, 90, at_stake=10**18), deed(2, 160), deed(3, None)]
    assert names(in_order(deeds, 100, lambda _: 1)) == [2, 3, 1]


def timely(order: Iterable[Action], lengths: Mapping[bytes, int]) -> int:
    """How many of the deeds are done by their deadlines, one after the other."""
    end = met = 0
    for each in order:
        end += lengths[each.task_id]
        met += each.due is None or end <= each.due
    return met


def test_an_order_that_meets_all_deadlines_is_found_where_there_is_one() -> None:
    random = Random(7)
    for _ in range(300):
        deeds = [deed(n, random.randrange(1, 20), random.randrange(9)) for n in range(5)]
        lengths = {each.task_id: random.randrange(1, 6) for each in deeds}

        order = in_order(deeds, 0, lambda each, lengths=lengths: lengths[each.task_id])
        assert sorted(names(order)) == list(range(5))
        feasible = any(timely(each, lengths) == 5 for each in permutations(deeds))
        assert timely(order, lengths) == 5 or not feasible


def test_with_equal_stakes_as_many_deadlines_are_met_as_can_be() -> None:
    random = Random(8)
    for _ in range(200):
        deeds = [deed(n, random.randrange(1, 20)) for n in range(6)]
        lengths = {each.task_id: random.randrange(1, 6) for each in deeds}

        # In the order of deadlines all of a set are met, if any order meets them.
        deeds.sort(key=lambda deed: deed.due or 0)
        most = max(n for n in range(7) if any(timely(chosen, lengths) == n for chosen in combinations(deeds, n)))
        assert timely(in_order(deeds, 0, lambda each, lengths=lengths: lengths[each.task_id]), lengths) >= most
