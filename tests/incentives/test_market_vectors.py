"""One vector file per rule that Python and Solidity share; forge reads the same files.

Run this module to write them anew.
"""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commitments.test_log import audit_path, subproof, tree_hash
from lab.incentives.auction_rules import Admission, AuctionTerms, award, forfeited, rate_of, round_id
from lab.json_rows import json_rows
from pol.claims.segment_draw import draw
from pol.incentives import payouts
from pol.incentives.auction import Bid, commitment
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import Deal, Payout

pytestmark = pytest.mark.rules

VECTORS = Path(__file__).resolve().parents[2] / "fixtures" / "vectors"
ETHER = 10**18


CHANCE = JackpotRules(watchers=2, shares=4, rate=1 << 30)
"""Of the market of tests/forge/market/MarketBase.sol."""
MOST = payouts.MAX_AMOUNT
DRAWS = 2


@dataclass(frozen=True)
class Named:
    """Amounts of terms, and a price that an auction led to."""

    work_units: int
    unit_price: int
    price: int
    verifier_fee: int
    solver_stake: int
    verifier_stake: int
    bond: int
    jackpot: int
    profiled: bool = True
    looks: int = 0
    """Reruns of a second look; of two drawn segments one needs it."""

    @property
    def deal(self) -> Deal:
        """What the settlement table makes of them."""
        return Deal(
            payouts.maximum_price(self.work_units, self.unit_price),
            self.price,
            self.verifier_fee,
            self.solver_stake,
            self.verifier_stake,
            self.bond,
            CHANCE.tax(self.jackpot),
            CHANCE.share(self.jackpot),
            self.profiled,
            payouts.look_fee(self.verifier_fee, self.looks, DRAWS),
        )


NAMED = [
    Named(10**12, 8 * ETHER * payouts.WORK // 10**12, 7 * ETHER, ETHER, 5 * ETHER, 4 * ETHER, ETHER, 2 * ETHER),
    # The least of everything; then fees and prices of nothing.
    Named(1, 1, 1, 1, 2, 8, 1, 4),
    Named(payouts.WORK - 1, 3, 0, 0, 1, 8, 2, 4),
    # Nothing divides.
    Named(12_345_677, 348_000_001, 900_001, 99_991, 199_999, 421, 27, 209),
    Named(12_345_677, 348_000_001, 1_000_300, 99_991, 199_999, 3_203, 203, 1_601),
    Named((1 << 32) + 1, (1 << 96) - 1, 1 << 95, (1 << 80) + 1, (1 << 81) + 3, (1 << 79) + 1, (1 << 78) - 1, 1 << 78),
    # The most of everything.
    Named(1 << 32, MOST, MOST, MOST // 2, MOST, MOST, MOST // 2, MOST // 2),
    # Second looks: the stake pays for as many as there can be.
    Named(12_345_677, 348_000_001, 900_001, 99_991, 1_000_003, 3_203, 203, 1_601, looks=3),
    Named(12_345_677, 348_000_001, 900_001, 99_991, 499_957, 3_203, 203, 1_601, looks=3),
    # Exact mode.
    Named(12_345_677, 348_000_001, 900_001, 99_991, 199_999, 3_203, 203, 1_601, profiled=False),
]
ROWS: dict[str, Callable[[Deal], Payout]] = {
    "profileConcluded": payouts.profile_concluded,
    "accepted": payouts.accepted,
    "rejected": payouts.rejected,
    "rejectedRepeated": payouts.rejected_though_repeated,
    "challengerRight": payouts.challenger_right,
    "challengerWrong": payouts.challenger_wrong,
    "challengeMoot": lambda deal: payouts.challenge_moot(_after(1, deal)),
    "challengerWrongAgain": lambda deal: payouts.challenger_wrong(_after(5, deal)),
    "challengerRightAtLast": lambda deal: payouts.challenger_right(_after(5, deal)),
    "profileConvicted": payouts.profile_convicted,
    "errorFound": payouts.error_found,
    "secretWithheld": payouts.secret_withheld,
    "secretLeaked": payouts.secret_leaked,
    "solverDefaulted": payouts.solver_defaulted,
    "dataWithheld": lambda deal: payouts.data_withheld(deal, stood=False),
    "dataWithheldAfterVerdict": lambda deal: payouts.data_withheld(deal, stood=True),
    "dataWithheldAfterWord": lambda deal: payouts.data_withheld(deal, stood=False, said=True),
    "dataWithheldAfterBoth": lambda deal: payouts.data_withheld(deal, stood=True, said=True),
    "notServed": payouts.not_served,
    "acceptedContradicted": lambda deal: _with_word(payouts.accepted(deal, contradicted=True), deal),
    "seatDefaulted": payouts.seat_defaulted,
    "profilerDefaulted": payouts.profiler_defaulted,
    "abandonedSeated": lambda deal: payouts.abandoned(deal, decided=True),
    "abandonedCommitted": lambda deal: payouts.abandoned(deal, decided=False),
    "cancelledUnseated": lambda deal: payouts.cancelled_unprofiled(deal, seated=False),
    "cancelledSeated": lambda deal: payouts.cancelled_unprofiled(deal, seated=True),
    "cancelledBidding": payouts.cancelled_bidding,
}


def payout_vectors() -> dict[str, Any]:
    """Amounts as decimal strings: JSON readers lose integers beyond 2^53."""
    return {
        "count": len(NAMED),
        "deals": [
            {
                **{name: str(int(amount)) for name, amount in asdict(named).items()},
                "escrow": str(named.deal.escrow),
                **{row: {who: str(wei) for who, wei in asdict(pay(named.deal)).items()} for row, pay in ROWS.items()},
            }
            for named in NAMED
        ],
    }


def _with_word(paid: Payout, deal: Deal) -> Payout:
    return replace(paid, fund=paid.fund + payouts.word_contradicted(deal).fund)


def _after(earlier: int, deal: Deal) -> Deal:
    """The challenge after ``earlier`` others."""
    return replace(deal, bond=payouts.bond_after(deal.bond, deal.verifier_stake, earlier))


def objection_vectors() -> dict[str, Any]:
    """Bonds and rewards of objections, as columns."""
    random = Random(23)
    rows = []
    for i in range(200):
        bits = random.randrange(1, 112)
        fee, draws, looks = random.randrange(1 << bits), random.randrange(1, 33), random.choice([0, 0, 1, 16])
        stake = 2 * fee + draws * payouts.look_fee(fee, looks, draws) + random.randrange(1, 1 << bits + 1)
        price, segments = random.randrange(1 << bits), random.randrange(1, 1 << 20)
        tax, earlier, extra = random.randrange(stake // 2 + 1), random.randrange(i + 1), random.randrange(1 << bits)
        segment = payouts.segment_price(price, segments, fee, draws)
        left = payouts.slashable(stake, fee, looks, draws)
        bond = payouts.objection_bond(segment + extra, left, earlier)
        reward = payouts.objector_reward(left, bond, tax)
        rows.append((price, segments, fee, draws, stake, looks, tax, earlier, extra, segment, left, bond, reward))
    names = ("price", "segments", "fee", "draws", "stake", "looks", "tax", "earlier", "extra")
    columns = zip((*names, "segment", "left", "bond", "reward"), zip(*rows, strict=True), strict=True)
    return {name: [str(value) for value in column] for name, column in columns}


def draw_vectors() -> dict[str, Any]:
    """Seeds and shapes, up to 32 of 32 segments, with what they draw."""
    shapes = [(1, 1), (2, 2), (4, 2), (10, 3), (32, 32), (33, 32), (1_000_003, 32), ((1 << 32) - 2, 5)]
    seeds = [hashlib.sha256(f"seed {i}".encode()).digest() for i in range(len(shapes))]
    return {
        "seed": ["0x" + seed.hex() for seed in seeds],
        "segments": [segments for segments, _ in shapes],
        "drawn": [draw(seed, *shape) for seed, shape in zip(seeds, shapes, strict=True)],
    }


def log_vectors() -> dict[str, Any]:
    """Roots and proofs by the RFC's definitions; lists run in parallel as forge reads no records."""
    entries = [hashlib.sha256(f"state {i}".encode()).digest() for i in range(33)]
    inclusions = [(i, n) for n in (1, 2, 3, 5, 8, 13, 32, 33) for i in sorted({0, 1, n // 2, n - 1}) if i < n]
    pairs = [(m, n) for n in (1, 2, 3, 7, 8, 9, 33) for m in sorted({1, 2, 4, 6, 8, 32, n}) if m <= n]

    def texts(path: list[bytes]) -> list[str]:
        return ["0x" + item.hex() for item in path]

    return {
        "entries": texts(entries),
        "roots": texts([tree_hash(entries[:size]) for size in range(1, len(entries) + 1)]),
        "inclusion_index": [i for i, _ in inclusions],
        "inclusion_size": [n for _, n in inclusions],
        "inclusion_path": [texts(audit_path(i, entries[:n])) for i, n in inclusions],
        "consistency_old_size": [m for m, _ in pairs],
        "consistency_size": [n for _, n in pairs],
        "consistency_path": [texts(subproof(m, entries[:n], True)) for m, n in pairs],
    }


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


def auction_vectors() -> dict[str, Any]:
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


FILES = {
    "payouts.json": payout_vectors,
    "objections.json": objection_vectors,
    "draws.json": draw_vectors,
    "auction.json": auction_vectors,
    "checkpoint_log.json": log_vectors,
}


@pytest.mark.parametrize("name", FILES)
def test_file_is_what_python_computes(name: str) -> None:
    assert json.loads((VECTORS / name).read_text()) == FILES[name]()


if __name__ == "__main__":
    for file_name, compute in FILES.items():
        (VECTORS / file_name).write_text(json_rows(compute()))
