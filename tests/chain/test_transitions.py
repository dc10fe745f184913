"""The rows of fixtures/vectors/transitions.jsonl are complete, and the specification and the client say the same.

TransitionsTest of forge shows that the contracts do what the rows say; run this module to write them anew.
"""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from contract_run import FORGE
from pol.chain.contract_abi import artifact, contracts
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import Status

pytestmark = pytest.mark.rules

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "fixtures" / "vectors" / "transitions.jsonl"
DESKS = (
    *("TaskRegistry", "Seats", "ProofRegistry", "Profiles", "Verdicts", "Challenges", "Objections", "Counterclaims"),
    *("DataDemands", "Settlement"),
)
STATUSES = {name.title() for name in Status.__members__}
OUTSIDE = {"wire", "announce"}
"""Functions of desks that are about no task."""
INSIDE = {"Verdicts.void": "Challenges.settleDispute", "Settlement.claimWithheld": "DataDemands.expire"}
"""Verbs of desks that move a task, and the calls of parties that lead to them."""

Moves = dict[tuple[str, str], set[str]]
"""Calls by the status that they find and the one to which they lead."""


def rows() -> list[dict[str, str]]:
    """Every row; what is no `status`, `call` or `by` is a moment and what comes of the call in it."""
    return [json.loads(line) for line in FILE.read_text().splitlines()]


def results(row: dict[str, str]) -> set[str]:
    """What comes of a call, at some moment."""
    return {text for key, text in row.items() if key not in {"status", "call", "by"}}


def moves(by_desks: bool) -> Moves:
    """The moves that calls of parties cause, one after the other, or those that the registry admits from desks."""
    found: Moves = defaultdict(set)
    for row in rows():
        for ways in results(row) if (row["by"] in DESKS) is by_desks else ():
            begin = row["status"]
            for end in ways.split():
                if end in STATUSES:
                    found[begin, end].add(row["by"] if by_desks else row["call"])
                begin = begin if by_desks else end
    return found


def specified() -> Moves:
    """The table of docs/spec/market.md, "Transitions"."""
    section = (ROOT / "docs" / "spec" / "market.md").read_text().partition("### Transitions\n")[2]
    table = re.findall(r"^\| (\S+) \| (\S+) \| (`\w+\.\w+`.*) \| .+ \|$", section.partition("\n\nA verdict")[0], re.M)
    return {
        ("None" if begin == "-" else begin, end): set(verbs.replace("`", "").split(", ")) for begin, end, verbs in table
    }


def test_every_call_has_a_row_in_every_status() -> None:
    calls = {
        f"{desk}.{item['name']}"
        for desk in DESKS
        for item in artifact(desk)["abi"]
        if item["type"] == "function" and item["stateMutability"] == "nonpayable" and item["name"] not in OUTSIDE
    }
    found = defaultdict(set)
    for row in rows():
        found[row["status"]].add(row["call"])
    assert found == dict.fromkeys(STATUSES, calls)


def test_parties_move_a_task_as_specified() -> None:
    expected = {way: {INSIDE.get(verb, verb) for verb in verbs} for way, verbs in specified().items()}
    assert len(expected) > 20
    assert moves(by_desks=False) == expected


def test_desks_may_move_a_task_where_a_verb_of_theirs_does() -> None:
    expected = {
        way: {verb.partition(".")[0] for verb in verbs} - {"TaskRegistry"} for way, verbs in specified().items()
    }
    assert moves(by_desks=True) == {way: desks for way, desks in expected.items() if desks}


def test_the_client_knows_every_refusal() -> None:
    known = {item["name"] for name in contracts() for item in artifact(name)["abi"] if item["type"] == "error"}
    told = {result for row in rows() if row["by"] not in DESKS for found in results(row) for result in found.split()}
    assert told - STATUSES - {"done"} <= known
    assert len(told) > 40


def test_the_client_objects_where_the_contract_admits_it() -> None:
    admitted = {row["status"] for row in rows() if row["call"] == "Objections.object" and "done" in results(row)}
    assert admitted == {status.name.title() for status in DISPUTABLE}


if __name__ == "__main__":
    command = [FORGE, "test", "--match-contract", "TransitionsTest", "-vv"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not (lines := re.findall(r"^ +(\{.+\})$", said.stdout, re.M)):
        raise SystemExit(said.stdout + said.stderr)
    FILE.write_text("".join(f"{line}\n" for line in lines))
