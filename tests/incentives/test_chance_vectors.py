"""Vectors of draws, planted errors and the jackpot, which Python and Solidity share; forge reads the same files.

Run this module to write them anew.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.incentives.ticket_weights import Weights
from lab.json_rows import json_rows
from pol.claims.segment_claim import SegmentClaim
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE, Assignment, commitment
from pol.incentives.jackpot import JackpotRules, watch_commitment
from pol.incentives.sortition import RANKS, DrawnDuty, TicketDraw, watch_limit

pytestmark = pytest.mark.rules

VECTORS = Path(__file__).resolve().parents[2] / "fixtures" / "vectors"
WATCHERS = 3


def word(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def account(number: int) -> bytes:
    return word(f"account {number}")[:20]


def texts(values: list[bytes]) -> list[str]:
    return ["0x" + value.hex() for value in values]


HISTORY = [
    # account, its tickets from then on, second
    (0, 5, 100),
    (1, 1, 100),
    (0, 8, 100),
    (2, 40, 101),
    (1, 3, 107),
    (1, 2, 107),
    (0, 0, 110),
    (3, 7, 110),
    (0, 6, 119),
    (2, 12, 120),
    (3, 0, 120),
    (3, 7, 121),
]
TIMES = [1, 99, 100, 101, 102, 107, 108, 110, 111, 119, 120, 121, 122, 1000]


def history() -> Weights:
    weights = Weights()
    for number, tickets, at in HISTORY:
        weights.set(account(number), tickets, at)
    return weights


def sortition_vectors() -> dict[str, Any]:
    """A history of tickets and what counts of it at some times; ranks; who watches; limits."""
    weights = history()
    draws = [
        TicketDraw(duty, word(f"task {number}"), number % 3 + 1, since, word(f"seed {number}"))
        for number, (duty, since) in enumerate(
            [
                (DrawnDuty.SEAT, 111),
                (DrawnDuty.WATCH, 111),
                (DrawnDuty.WATCH, 102),
                (DrawnDuty.WATCH, 1000),
                (DrawnDuty.SEAT, 122),
            ]
        )
    ]
    ranked = [weights.ranked(draw) for draw in draws]
    watching = [weights.watching(draw, WATCHERS) for draw in draws]
    limits = [(4, 3), (5, 3), (64, 3), (1_000_003, 17), ((1 << 64) + 1, 1), (1 << 255, (1 << 32) - 1), (2, 1)]
    accounts = [account(number) for number in range(4)]
    return {
        "accounts": texts(accounts),
        "history_account": [number for number, _, _ in HISTORY],
        "history_tickets": [tickets for _, tickets, _ in HISTORY],
        "history_at": [at for _, _, at in HISTORY],
        "t": TIMES,
        "tickets": [[weights.tickets(holder, t) for t in TIMES] for holder in accounts],
        "total": [weights.total(t) for t in TIMES],
        "watchers": WATCHERS,
        "draws": [
            {
                "duty": str(draw.duty),
                "task": "0x" + draw.task_id.hex(),
                "seating": draw.seating,
                "since": draw.since,
                "seed": "0x" + draw.seed.hex(),
                "rank": texts([rank.to_bytes(32, "big") for rank, _, _ in order]),
                "account": [accounts.index(holder) for _, holder, _ in order],
                "ticket": [ticket for _, _, ticket in order],
                "watches": [int((holder, ticket) in drawn) for _, holder, ticket in order],
            }
            for draw, order, drawn in zip(draws, ranked, watching, strict=True)
        ],
        "limit_total": [str(total) for total, _ in limits],
        "limit_watchers": [watchers for _, watchers in limits],
        "limit": texts([watch_limit(*limit).to_bytes(32, "big") for limit in limits]),
    }


def forced_error_vectors() -> dict[str, Any]:
    """Seatings with rates from the least to the largest; some are forced."""
    rates = [LEAST_RATE, 1 << 28, 429_496_730, LARGEST_RATE, LARGEST_RATE]
    cases = []
    for number in range(15):
        assignment = Assignment(word(f"seed {number}"), word(f"task {number}"), number + 1, word(f"secret {number}"))
        claim = SegmentClaim(
            number,
            word(f"start {number}"),
            word(f"end {number}"),
            word(f"replay {number}"),
            (number, (1 << 255) + number, (1 << 256) - 1),
            (0, 1 << 128, number),
        )
        rate, draws, salt = rates[number % len(rates)], number % 32 + 1, word(f"salt {number}")
        cases.append(
            {
                "seed": "0x" + assignment.seed.hex(),
                "task": "0x" + assignment.task_id.hex(),
                "seating": assignment.seating,
                "secret": "0x" + assignment.secret.hex(),
                "account": "0x" + account(number).hex(),
                "rate": rate,
                "draws": draws,
                "salt": "0x" + salt.hex(),
                "segment": claim.segment,
                "roots": texts([claim.start, claim.end, claim.replay]),
                "distances": [str(number) for number in claim.distances],
                "references": [str(number) for number in claim.references],
                "forced": int(assignment.is_forced(rate)),
                "index": assignment.index(draws),
                "error": "0x" + assignment.error_root.hex(),
                "sealed": "0x" + assignment.sealed(salt, claim).hex(),
                "commitment": "0x" + commitment(account(number), assignment.task_id, assignment.secret).hex(),
            }
        )
    return {"count": len(cases), "cases": cases}


def jackpot_vectors() -> dict[str, Any]:
    """Amounts as decimal strings: JSON readers lose integers beyond 2^53."""
    jackpots = [
        (JackpotRules(3, 6, LARGEST_RATE), [6, 7, 10**18, (1 << 128) - 1]),
        (JackpotRules(3, 8, 1 << 28), [8, 1_000_003, 10**18 + 1]),
        (JackpotRules(1, 2, LEAST_RATE), [2, 3, 10**17]),
        (JackpotRules(40, 97, 429_496_730), [97, 98, (1 << 96) + 1]),
    ]
    rows = [(jackpot, reserved) for jackpot, amounts in jackpots for reserved in amounts]
    watches = [
        (account(number), word(f"task {number}"), number, number * 5, word(f"root {number}"), word(f"salt {number}"))
        for number in range(4)
    ]
    return {
        "count": len(rows),
        "rows": [
            {
                "watchers": jackpot.watchers,
                "shares": jackpot.shares,
                "rate": jackpot.rate,
                "reserved": str(reserved),
                "share": str(jackpot.share(reserved)),
                "tax": str(jackpot.tax(reserved)),
            }
            for jackpot, reserved in rows
        ],
        "watches": [
            {
                "account": "0x" + watch[0].hex(),
                "task": "0x" + watch[1].hex(),
                "seating": watch[2],
                "index": watch[3],
                "entry": "0x" + watch[4].hex(),
                "salt": "0x" + watch[5].hex(),
                "commitment": "0x" + watch_commitment(*watch).hex(),
            }
            for watch in watches
        ],
    }


FILES = {
    "sortition.json": sortition_vectors,
    "forced_errors.json": forced_error_vectors,
    "jackpot.json": jackpot_vectors,
}


@pytest.mark.parametrize("name", FILES)
def test_file_is_what_python_computes_of_chance(name: str) -> None:
    assert json.loads((VECTORS / name).read_text()) == FILES[name]()


def test_vectors_have_both_sides_of_every_question() -> None:
    assert {case["forced"] for case in forced_error_vectors()["cases"]} == {0, 1}
    assert {watches for draw in sortition_vectors()["draws"] for watches in draw["watches"]} == {0, 1}


if __name__ == "__main__":
    for file_name, compute in FILES.items():
        (VECTORS / file_name).write_text(json_rows(compute()))


SEED = hashlib.sha256(b"seed").digest()
TASK = hashlib.sha256(b"task").digest()


def account_of(number: int) -> bytes:
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
        weights.set(account_of(who), tickets, second)
        now[who] = tickets
        ends[second] = dict(now)
    then = ends[max((s for s in ends if s < t), default=0)] if any(s < t for s in ends) else {}
    assert weights.total(t) == sum(then.values())
    for who in range(4):
        assert weights.tickets(account_of(who), t) == min(then.get(who, 0), now.get(who, 0))


def test_limits_keep_to_the_ranks() -> None:
    assert watch_limit(3, 3) == RANKS
    assert watch_limit(0, 1) == RANKS
    assert watch_limit(4, 3) == RANKS // 4 * 3
    assert watch_limit(RANKS - 1, 2) == 2


def test_as_many_watch_as_are_meant_to_on_average() -> None:
    """400 seatings, 60 tickets, three watchers: 1,200 expected, with a standard error of 34."""
    weights = Weights()
    weights.set(account_of(1), 40, 1)
    weights.set(account_of(2), 20, 1)
    drawn = Counter(holder for seating in range(400) for holder, _ in weights.watching(watch(seating), 3))
    assert abs(drawn.total() - 1200) < 3 * 34
    assert abs(drawn[account_of(1)] - 800) < 3 * 28


def test_names_make_nobody_stronger() -> None:
    """A seat goes to tickets: 30 of one account_of against 30 accounts with one win half of 400, give or take 10."""
    weights = Weights()
    weights.set(account_of(99), 30, 1)
    for number in range(30):
        weights.set(account_of(number), 1, 1)
    won = 0
    for seating in range(400):
        _, winner, _ = weights.ranked(TicketDraw(DrawnDuty.SEAT, TASK, seating, 1000, SEED))[0]
        won += winner == account_of(99)
    assert abs(won - 200) < 3 * 10


def test_a_seat_and_its_watchers_are_drawn_apart() -> None:
    weights = Weights()
    weights.set(account_of(1), 5, 1)
    seat = TicketDraw(DrawnDuty.SEAT, TASK, 1, 1000, SEED)
    assert seat.purpose != watch(1).purpose
    assert watch(1).purpose != watch(2).purpose
    assert {rank for rank, _, _ in weights.ranked(seat)}.isdisjoint(rank for rank, _, _ in weights.ranked(watch(1)))
    assert [ticket for _, _, ticket in sorted(weights.ranked(seat))] == [t for _, _, t in weights.ranked(seat)]


def test_who_enrols_after_the_round_was_fixed_is_not_drawn() -> None:
    weights = Weights()
    weights.set(account_of(1), 2, 10)
    weights.set(account_of(2), 50, 20)
    assert {holder for holder, _ in weights.watching(watch(1, since=20), 100)} == {account_of(1)}
    assert {holder for holder, _ in weights.watching(watch(1, since=21), 100)} == {account_of(1), account_of(2)}
    weights.set(account_of(1), 0, 30)
    assert weights.watching(watch(1, since=20), 100) == []
