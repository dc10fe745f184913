"""The ways of a task between statuses are the same in the contract, the specification, and the verbs of the desks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pol.chain.desks.task_registry import Status

pytestmark = pytest.mark.rules

ROOT = Path(__file__).parent.parent.parent
DESKS = {
    "REGISTRY": "TaskRegistry",
    "SEATS": "Seats",
    "PROOFS": "ProofRegistry",
    "PROFILES": "Profiles",
    "VERDICTS": "Verdicts",
    "DEMANDS": "DataDemands",
    "SETTLEMENT": "Settlement",
}
"""Constants of `Lifecycle`, and the contracts for which they stand."""

Row = tuple[str, str, str, str]
"""From, to, verbs, when."""


def in_code() -> tuple[list[Row], list[set[str]]]:
    """The rows of contracts/market/Lifecycle.sol, and the desks that each of them admits."""
    text = (ROOT / "contracts" / "market" / "Lifecycle.sol").read_text()
    rows, desks = [], []
    begin, above = "", ""
    for line in text.splitlines():
        if found := re.search(r"if \(from == Status\.(\w+)\)", line):
            begin = found[1]
        elif found := re.fullmatch(r" +if \(to == Status\.(\w+)\) return ([A-Z |]+);(?: // (.+))?", line):
            verbs, _, when = (found[3] or above).partition(": ")
            rows.append((begin, found[1], verbs, when))
            desks.append({DESKS[name] for name in found[2].split(" | ")})
        elif found := re.fullmatch(r" {8,}// (.+)", line):
            above = found[1]
    assert len(rows) == len(re.findall(r"\breturn [A-Z]", text))
    return rows, desks


def in_specification() -> list[Row]:
    """The rows of docs/spec/market.md, "Transitions"."""
    text = (ROOT / "docs" / "spec" / "market.md").read_text()
    section = text.partition("### Transitions\n")[2]
    found = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \| (.+) \|$", section, re.M)
    table = found[2:] if found[0][0] == "from" and found[1][0] == "---" else []
    return [
        ("None" if begin == "-" else begin, end, verbs.replace("`", ""), when)
        for begin, end, verbs, when in table
        if begin == "-" or begin.upper() in Status.__members__
    ]


def test_the_specification_has_the_rows_of_the_code() -> None:
    rows, _ = in_code()
    assert len(rows) > 20
    written = in_specification()
    assert written[: len(rows)] == rows
    # What follows are other tables.
    assert not any(re.match(r"[A-Z]\w+\.\w+", row[2]) for row in written[len(rows) :])


def test_every_way_is_named_once_and_leads_from_status_to_status() -> None:
    rows, _ = in_code()
    ways = [row[:2] for row in rows]
    assert len(set(ways)) == len(ways)
    assert {name.upper() for way in ways for name in way} == set(Status.__members__)


def test_a_desk_is_admitted_by_the_verbs_that_take_the_way() -> None:
    rows, desks = in_code()
    for (_, _, verbs, _), admitted in zip(rows, desks, strict=True):
        assert {verb.partition(".")[0] for verb in verbs.split(", ")} == admitted
        for verb in verbs.split(", "):
            desk, _, name = verb.partition(".")
            assert re.search(rf"function {name}\(", (ROOT / "contracts" / "market" / f"{desk}.sol").read_text()), verb


def test_whoever_calls_advance_is_in_the_table() -> None:
    _, desks = in_code()
    callers = {
        path.stem
        for path in (ROOT / "contracts").rglob("*.sol")
        if re.search(r"registry\.(advance|openBidding|close)\(", path.read_text())
    }
    assert callers | {"TaskRegistry"} == set().union(*desks)
