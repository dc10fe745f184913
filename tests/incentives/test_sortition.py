"""Tickets over time and their draws."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.incentives.ticket_weights import Weights
from pol.incentives.sortition import RANKS, DrawnDuty, TicketDraw, watch_limit

pytestmark = pytest.mark.rules

SEED = hashlib.sha256(b"seed").digest()
TASK = hashlib.sha256(b"task").digest()


def account(number: int) -> bytes:
    return number.to_bytes(20, "big")


def watch(seating: int, since: int = 1000) -> TicketDraw:
    return TicketDraw(DrawnDuty.WATCH, TASK, seating, since, SEED)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 3)), max_size=20), st.integers(1, 60))
def test_weights_are_those_of_a_naive_history(changes: list[tuple[int, int, int]], t: int) -> None:
    """Every second is written down; the contract's rule is read off."""
    weights, second = Weights(), 1
    now: dict[int, int] = {}
    ends: dict[int, dict[int, int]] = {}
    for who, tickets, wait in changes:
        second += wait
        weights.set(account(who), tickets, second)
        now[who] = tickets
        ends[second] = dict(now)
    then = ends[max((s for s in ends if s < t), default=0)] if any(s < t for s in ends) else {}
    assert weights.total(t) == sum(then.values())
    for who in range(4):
        assert weights.tickets(account(who), t) == min(then.get(who, 0), now.get(who, 0))


def test_limits_keep_to_the_ranks() -> None:
    assert watch_limit(3, 3) == RANKS
    assert watch_limit(0, 1) == RANKS
    assert watch_limit(4, 3) == RANKS // 4 * 3
    assert watch_limit(RANKS - 1, 2) == 2


def test_as_many_watch_as_are_meant_to_on_average() -> None:
    """400 seatings, 60 tickets, three watchers: 1,200 expected, with a standard error of 34."""
    weights = Weights()
    weights.set(account(1), 40, 1)
    weights.set(account(2), 20, 1)
    drawn = Counter(holder for seating in range(400) for holder, _ in weights.watching(watch(seating), 3))
    assert abs(drawn.total() - 1200) < 3 * 34
    assert abs(drawn[account(1)] - 800) < 3 * 28


def test_names_make_nobody_stronger() -> None:
    """A seat goes to tickets: 30 of one account against 30 accounts with one win half of 400, give or take 10."""
    weights = Weights()
    weights.set(account(99), 30, 1)
    for number in range(30):
        weights.set(account(number), 1, 1)
    won = 0
    for seating in range(400):
        _, winner, _ = weights.ranked(TicketDraw(DrawnDuty.SEAT, TASK, seating, 1000, SEED))[0]
        won += winner == account(99)
    assert abs(won - 200) < 3 * 10


def test_a_seat_and_its_watchers_are_drawn_apart() -> None:
    weights = Weights()
    weights.set(account(1), 5, 1)
    seat = TicketDraw(DrawnDuty.SEAT, TASK, 1, 1000, SEED)
    assert seat.purpose != watch(1).purpose
    assert watch(1).purpose != watch(2).purpose
    assert {rank for rank, _, _ in weights.ranked(seat)}.isdisjoint(rank for rank, _, _ in weights.ranked(watch(1)))
    assert [ticket for _, _, ticket in sorted(weights.ranked(seat))] == [t for _, _, t in weights.ranked(seat)]


def test_who_enrols_after_the_round_was_fixed_is_not_drawn() -> None:
    weights = Weights()
    weights.set(account(1), 2, 10)
    weights.set(account(2), 50, 20)
    assert {holder for holder, _ in weights.watching(watch(1, since=20), 100)} == {account(1)}
    assert {holder for holder, _ in weights.watching(watch(1, since=21), 100)} == {account(1), account(2)}
    weights.set(account(1), 0, 30)
    assert weights.watching(watch(1, since=20), 100) == []
