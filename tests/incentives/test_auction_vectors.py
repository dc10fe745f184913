"""Numbers of the auction that Python and Solidity share (`tests/forge/incentives/AuctionVectors.t.sol`).

Run this module to write them anew.
"""

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lab.incentives.auction_rules import Admission, AuctionTerms, award, forfeited, rate_of, round_id
from lab.json_rows import json_rows
from pol.incentives.auction import Bid, commitment

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "auction.json"
ETHER = 10**18
ADMISSION = Admission(entry_work=10**12, growth=4)


def terms_of(maximum: int, second_price: int, training_window: int) -> AuctionTerms:
    return AuctionTerms(
        maximum,
        solver_stake=maximum // 3 + 1,
        second_price=second_price,
        work_units=10**12,
        submitter=bytes(range(20)),
        verifier=bytes(range(20, 40)),
        window=600,
        training_window=training_window,
        thresholds=bytes(range(32)),
    )


def text(value: int | bytes) -> str:
    """Amounts as decimal strings: JSON readers lose integers beyond 2^53."""
    return str(value) if isinstance(value, int) else "0x" + value.hex()


def round_vectors() -> list[dict[str, Any]]:
    """Bids in the order of their commitments, the order in which they are revealed, and who wins at what price."""
    dice = random.Random(7)
    shapes = [
        (10 * ETHER, ETHER // 1000, 7_200, ETHER),
        (10 * ETHER, 0, 7_200, ETHER),
        (60, 1, 60, 1),
        ((1 << 128) - 1, ((1 << 128) - 1) // 7_200, 7_200, 1 << 124),
        (7_777_777_777, 1_000_003, 7_200, 99_999_999),
    ]
    rounds = []
    for maximum, second_price, window, grain in shapes:
        terms = terms_of(maximum, second_price, window)
        for count in (0, 1, 2, 5):
            bids = []
            for index in range(count):
                seconds = dice.choice([60, min(window, 1_000), min(window, 2_000)])
                room = (maximum - second_price * seconds) // grain
                bids.append(Bid((0x1000 + index).to_bytes(20), dice.randint(0, min(room, 4)) * grain, seconds))
            won = award(terms, bids)
            rounds.append(
                {
                    **{name: text(getattr(terms, name)) for name in ("maximum", "second_price", "training_window")},
                    "count": count,
                    "price": [text(bid.price) for bid in bids],
                    "seconds": [bid.seconds for bid in bids],
                    "order": dice.sample(range(count), count),
                    "winner": text(bytes(20) if won is None else won.bidder),
                    "paid": text(0 if won is None else won.price),
                    "promised": 0 if won is None else won.seconds,
                }
            )
    return rounds


def id_vector() -> dict[str, Any]:
    """A round, and a bid for it."""
    terms = terms_of(10 * ETHER, ETHER // 1000, 7_200)
    auction, desk, task = (0xA0C710).to_bytes(20), (0xDE5C).to_bytes(20), bytes(range(100, 132))
    round_ = round_id(31_337, auction, desk, task, 3, terms)
    bid, salt = Bid((0xADA).to_bytes(20), 2 * ETHER, 3_600), bytes(range(200, 232))
    return {
        "auction": text(auction),
        "desk": text(desk),
        "task": text(task),
        "number": 3,
        "terms": {name: text(value) for name, value in asdict(terms).items()},
        "round": text(round_),
        "bidder": text(bid.bidder),
        "price": text(bid.price),
        "seconds": bid.seconds,
        "salt": text(salt),
        "commitment": text(commitment(round_, bid, salt)),
    }


def admission_vector() -> dict[str, Any]:
    """Accepted tasks of one solver and the rate after each; then what it may promise."""
    accepted = [(10**12, 1_000), (10**12, 5_000), (3 * 10**12, 999), (10**11, 60), (11 * 10**12, 1_000)]
    rates: list[int] = []
    for work, seconds in accepted:
        assert ADMISSION.admits(max(rates, default=0), work, seconds)
        rates.append(max([*rates, rate_of(work, seconds)]))
    queries = [
        (work, seconds + change)
        for work in (10**12, 10**12 + 1, 44 * 10**12, 10**15 + 7, (1 << 128) - 1)
        for seconds in [min(ADMISSION.shortest_promise(rates[-1], work) or (1 << 32) - 2, (1 << 32) - 2)]
        for change in (-1, 0, 1)
    ]
    return {
        "entry_work": ADMISSION.entry_work,
        "growth": ADMISSION.growth,
        "accepted_work": [text(work) for work, _ in accepted],
        "accepted_seconds": [seconds for _, seconds in accepted],
        "rate": [text(rate) for rate in rates],
        "work": [text(work) for work, _ in queries],
        "seconds": [seconds for _, seconds in queries],
        "admitted": [int(ADMISSION.admits(rates[-1], work, seconds)) for work, seconds in queries],
    }


def vectors() -> dict[str, Any]:
    stakes = [1, 15, 16, 17, 5 * ETHER + 1, (1 << 128) - 1]
    rounds = round_vectors()
    return {
        "round_count": len(rounds),
        "rounds": rounds,
        "id": id_vector(),
        "admission": admission_vector(),
        "stakes": [text(stake) for stake in stakes],
        "forfeited": [text(forfeited(stake)) for stake in stakes],
    }


def test_file_is_what_python_computes() -> None:
    assert json.loads(FILE.read_text()) == vectors()


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
