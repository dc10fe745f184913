"""Terms on either side of every bound: fixtures/vectors/terms.jsonl, which forge submits, and what the client says.

Run this module to write the file anew. A row is one value of one field, refused (`no`) or taken (`ok`); what is refused
is changed back, what is taken stays for the next rows of its group.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pol.chain.desks.task_registry import Terms
from pol.chain.desks.terms_rules import require
from pol.errors import ProtocolError
from pol.incentives.jackpot import JackpotRules

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "terms.jsonl"
ETHER, DAY = 10**18, 86_400
CHANCE, COMMIT_WINDOW = JackpotRules(watchers=2, shares=4, rate=1 << 30), 120
"""Of the market of tests/forge/market/MarketDeployment.sol."""
MOST, UINT32, UINT128 = 1 << 112, (1 << 32) - 1, (1 << 128) - 1
HASHES = ("program", "constants", "initial_state", "document", "reruns")
WINDOWS = ("profile", "bid", "seat", "training", "verification", "watch", "disclosure", "challenge")
FIRST: tuple[Any, ...] = (
    *(name.encode().ljust(32, b"\0") for name in HASHES), 40, 10, 2, 10**12, 8 * ETHER * (1 << 32) // 10**12, 0,
    5 * ETHER, 4 * ETHER, ETHER, ETHER, 2 * ETHER, 3, 2, 4, 0, 0, 600, 600, 300, 3600, 1800, 900, 300, 1200, 600,
)  # fmt: skip
ORDINARY = Terms(*FIRST)
EXACT = replace(ORDINARY, reruns=bytes(32), rerun_count=0, profiled=0, margin=0, profile_window=0)
MOST_SECOND = 8 * ETHER // 60


def groups() -> Iterator[tuple[Terms, str]]:
    """First terms, and rows: a field, then values that are taken, or refused behind an exclamation mark."""
    yield replace(ORDINARY, work_units=MOST, unit_price=1), f"work_units !{MOST + 1} !0 1; unit_price !{MOST + 1} !0"
    for name in HASHES:
        yield ORDINARY, f"{name} !0"
    yield ORDINARY, f"interval !0; steps !0 !41; draws !0 !5 4; margin !{1 << 16} {(1 << 16) - 1}"
    yield replace(ORDINARY, interval=1), f"steps !{UINT32} {UINT32 - 1}"
    yield replace(ORDINARY, interval=3), f"steps {UINT32}"
    yield replace(ORDINARY, interval=4), f"steps !{1 << 32}"
    yield replace(ORDINARY, steps=400), "draws !33 32; profiled !17 16"
    yield ORDINARY, f"rerun_count !0 !{(1 << 16) + 1} !{UINT32} {1 << 16}; profiled !0 !5 !{UINT32} 4"
    looked = replace(ORDINARY, solver_stake=80 * ETHER, look_margin=(1 << 16) - 1, looks=1)
    yield looked, "looks !65 64"
    shortest = replace(looked, steps=32, interval=1, profiled=1, draws=32)
    yield shortest, "looks !17 16"
    # Each drawn segment may need one, and what they leave covers as much as before.
    stake = 66 * ETHER
    yield replace(shortest, draws=8, looks=64), f"solver_stake !{stake - 1} !{64 * ETHER} {stake}"
    yield replace(looked, looks=1), f"look_margin !{1 << 16} !0"
    yield ORDINARY, "look_margin !1"
    yield EXACT, f"reruns !1; rerun_count !1; profiled !1; profile_window !60; second_price {MOST_SECOND}"
    yield replace(EXACT, look_margin=1), "looks !1"
    for name in WINDOWS:
        low, high = COMMIT_WINDOW + 1 if name == "watch" else 60, (365 if name == "training" else 90) * DAY
        yield ORDINARY, f"{name}_window !0 !59 !{low - 1} {low} !{high + 1} {high} !{UINT32}"
    yield ORDINARY, f"clock !0 !599 600 !{14 * DAY + 1} {14 * DAY} !{UINT32}"
    small = replace(ORDINARY, solver_stake=20 * ETHER, verifier_stake=3200, jackpot=CHANCE.shares)
    # A wei makes delays free, a fortune makes challenges impossible.
    yield small, f"bond !0 !199 200 !1601 1600 !{UINT128}"
    yield replace(small, bond=1 << 111), f"verifier_stake {MOST} !{MOST + 1}"
    yield replace(small, bond=0), "verifier_stake !0"
    yield replace(small, verifier_stake=1), "bond !1"
    yield replace(small, bond=400), f"solver_stake !{2 * ETHER - 1} {2 * ETHER} !{MOST + 1}; verifier_fee !{MOST + 1}"
    # 88 hundredths of a word's bond, which ends at the verifier's stake or follows stake and price, and the tax.
    yield ORDINARY, "solver_stake !3832499999999999999 3832500000000000000"
    dear = replace(ORDINARY, verifier_stake=100 * ETHER, bond=10 * ETHER)
    yield dear, "solver_stake !13647135416666666663 13647135416666666664"
    # Seven sixteenths of what second looks leave of the stake go to the fund; the tax is 0.3125 ether.
    looked = replace(ORDINARY, verifier_fee=ETHER // 10, looks=8, look_margin=1, unit_price=1)
    yield looked, "solver_stake 1514285714285714283 !1514285714285714282"
    yield replace(small, bond=400, verifier_fee=0, work_units=1, unit_price=1), "solver_stake !0 1"
    # Less than one unit a share reserves nothing, and by more than half of the stake a lie pays.
    yield (
        ORDINARY,
        f"jackpot !{CHANCE.shares - 1} !0 {CHANCE.shares}; second_price !{MOST + 1} !{MOST_SECOND + 1} {MOST_SECOND}",
    )
    yield replace(small, bond=400), f"jackpot 1600 !1601 !{MOST + 1}"


def cases() -> Iterator[tuple[Terms, str, bool]]:
    """Terms, the field that was changed last, and whether they are taken."""
    for first, texts in groups():
        terms = first
        for text in texts.split("; "):
            field, *values = text.split(" ")
            for value in values:
                number = int(value.lstrip("!"))
                change: dict[str, Any] = {field: number.to_bytes(32, "big") if field in HASHES else number}
                new = replace(terms, **change)
                taken = value[0] != "!"
                yield new, field, taken
                if taken:
                    terms = new


def camel(field: str) -> str:
    """The contract's name of a field."""
    return re.sub("_(.)", lambda found: found[1].upper(), field)


def numbers(terms: Terms) -> dict[str, str]:
    """All fields as decimal numbers, hashes too."""
    words = {field.name: getattr(terms, field.name) for field in fields(terms)}
    return {camel(k): str(int.from_bytes(v, "big") if isinstance(v, bytes) else v) for k, v in words.items()}


def rows() -> Iterator[dict[str, Any]]:
    """Ordinary terms; then what is changed in them, and the field that the contract names, empty if it takes them."""
    yield {"terms": numbers(ORDINARY)}
    for terms, field, taken in cases():
        changes = dict(sorted(numbers(terms).items() - numbers(ORDINARY).items()))
        yield {"changes": changes, "refused": "" if taken else camel(field)}


def test_the_file_has_these_rows() -> None:
    assert [json.loads(line) for line in FILE.read_text().splitlines()] == list(rows())


def test_the_client_says_each_bound_before_the_contract_refuses() -> None:
    refused = 0
    for terms, field, taken in cases():
        if taken:
            require(terms, CHANCE.shares, CHANCE.tax(terms.jackpot), COMMIT_WINDOW)
            continue
        tax = CHANCE.tax(min(max(terms.jackpot, CHANCE.shares), MOST))
        with pytest.raises(ProtocolError, match=field) as said:
            require(terms, CHANCE.shares, tax, COMMIT_WINDOW)
        assert field in HASHES or str(getattr(terms, field)) in str(said.value), field
        refused += 1
    assert refused > 80


def test_a_price_that_no_desk_could_hold_is_refused() -> None:
    with pytest.raises(ProtocolError, match="the price is"):
        require(replace(ORDINARY, work_units=MOST, unit_price=MOST), CHANCE.shares, 1, COMMIT_WINDOW)


if __name__ == "__main__":
    FILE.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows()))
