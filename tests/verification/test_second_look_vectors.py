"""Claims with their second looks, and what becomes of them, as docs/spec/verdict.md says.

For whoever decides the same elsewhere. Run this module to write the file anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.json_rows import json_rows
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim
from pol.errors import ProtocolError
from pol.verification.verdict.second_look import decide_with_second_look, needs_second_look
from pol.verification.verdict.verdict import Outcome

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "second_look.json"
START, END, REPLAY, RERUN = (bytes([n]) * 32 for n in (1, 2, 3, 4))
UNEQUAL, SATURATION = 2**160, 2**191
WAY = 2**100
CAP = WAY >> 12
FLOOR = 2**24
Row = dict[str, Any]

# --- the specification once more --------------------------------------------------------------------------------------


def within(distance: int, reference: int, threshold: int) -> bool:
    finite = distance < UNEQUAL and reference < SATURATION
    return finite and distance << 64 <= threshold * (reference % UNEQUAL)


def has_look(distances: list[int], references: list[int], thresholds: list[int], start: bytes, end: bytes) -> bool:
    if bytes(32) in (start, end):
        return False
    rows = zip(distances, references, thresholds, strict=True)
    rejected = [(d, r) for d, r, t in rows if not within(d, r, t)]
    fit = [d < UNEQUAL and r < SATURATION and d <= (r % UNEQUAL) >> 12 for d, r in rejected]
    return bool(rejected) and all(fit)


def accepted(
    distances: list[int], references: list[int], thresholds: list[int], reruns: list[list[int]], margin: int
) -> bool:
    for c, (distance, reference, threshold) in enumerate(zip(distances, references, thresholds, strict=True)):
        far = [rerun[c] for rerun in reruns]
        if within(distance, reference, threshold):
            continue
        if max(far) >= UNEQUAL or distance > min(margin * margin * max(far), (reference % UNEQUAL) >> 12):
            return False
    return True


# --- the file ---------------------------------------------------------------------------------------------------------


def vectors() -> list[Row]:
    rows: list[Row] = []

    def add(
        name: str,
        distances: list[int],
        reruns: list[list[int]],
        references: list[int] | None = None,
        margin: int = 2,
        thresholds: list[int] | None = None,
        start: bytes = START,
        end: bytes = END,
    ) -> None:
        references, thresholds = references or [WAY] * 3, thresholds or [FLOOR] * 3
        due = has_look(distances, references, thresholds, start, end)
        rows.append(
            {
                "name": name,
                "start": "0x" + start.hex(),
                "end": "0x" + end.hex(),
                "distances": [str(n) for n in distances],
                "references": [str(n) for n in references],
                "thresholds": [str(n) for n in thresholds],
                "margin": margin,
                "reruns": [[str(n) for n in rerun] for rerun in reruns],
                "due": due,
                "excused": due and accepted(distances, references, thresholds, reruns, margin),
            }
        )

    some = 2**78
    add("four times the furthest rerun, squared", [4 * some, 0, 0], [[1, 0, 0], [some, 0, 0]])
    add("one more", [4 * some + 1, 0, 0], [[1, 0, 0], [some, 0, 0]])
    add("the furthest is first", [4 * some, 0, 0], [[some, 0, 0], [1, 0, 0]])
    add("a margin of one", [some, 0, 0], [[some, 0, 0]], margin=1)
    add("one more at a margin of one", [some + 1, 0, 0], [[some, 0, 0]], margin=1)
    add("the greatest margin reaches the cap", [CAP, 0, 0], [[CAP, 0, 0]], margin=2**16 - 1)
    add("beyond the cap", [CAP + 1, 0, 0], [[UNEQUAL - 1, 0, 0]], margin=2**16 - 1)
    add("reruns that don't part", [some, 0, 0], [[0, 0, 0], [0, 0, 0]])
    for c, name in enumerate(("parameter", "buffer", "optimizer")):
        far = [4 * some if i == c else 0 for i in range(3)]
        add(f"the {name} alone, explained", far, [[n // 4 for n in far]])
        add(f"the {name} alone, not explained", far, [[some if i != c else 0 for i in range(3)]])
    add("two components, one explained", [4 * some, 4 * some, 0], [[some, some - 1, 0]])
    add("two components from two reruns", [4 * some, 4 * some, 0], [[some, 0, 0], [0, some, 0]])
    add("a component at its threshold needs no rerun", [4 * some, WAY >> 40, 0], [[some, 0, 0]])
    add("a component beyond the cap within its threshold", [some, CAP + 1, 0], [[some, 0, 0]], thresholds=[1, 2**60, 1])
    for far in (UNEQUAL - 1, UNEQUAL, SATURATION - 1, SATURATION, 2**256 - 1):
        add(f"a rerun at {far:#x}", [some, 0, 0], [[some, 0, 0], [far, 0, 0]])
    add("a rerun without a distance elsewhere", [some, 0, 0], [[some, UNEQUAL, 0]])
    add("integers that moved are no way", [CAP, 0, 0], [[CAP, 0, 0]], references=[WAY + 7 * UNEQUAL, WAY, WAY])
    add("no way but integers", [1, 0, 0], [[1, 0, 0]], references=[UNEQUAL, WAY, WAY])
    add("no way at all", [1, 0, 0], [[1, 0, 0]], references=[0, 0, 0])
    add("the shortest way that excuses anything", [1, 0, 0], [[1, 0, 0]], references=[4096, 0, 0])
    add("one less", [1, 0, 0], [[1, 0, 0]], references=[4095, 0, 0])
    add("the greatest reference", [some, 0, 0], [[some, 0, 0]], references=[SATURATION - 1, WAY, WAY])
    add("an infinite reference", [some, 0, 0], [[some, 0, 0]], references=[SATURATION, WAY, WAY])
    add("an infinite reference of what is equal", [some, 0, 0], [[some, 0, 0]], references=[WAY, SATURATION, WAY])
    add("an integer differs", [UNEQUAL, 0, 0], [[UNEQUAL, 0, 0]])
    add("within the thresholds", [WAY >> 40, 0, 0], [[some, 0, 0]])
    add("a zero start", [some, 0, 0], [[some, 0, 0]], start=bytes(32))
    add("a zero end", [some, 0, 0], [[some, 0, 0]], end=bytes(32))
    return rows


# --- the package against the file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> list[Row]:
    rows: list[Row] = json.loads(FILE.read_text())["rows"]
    return rows


def test_file_is_what_the_specification_says(recorded: list[Row]) -> None:
    assert recorded == vectors()
    assert {(row["due"], row["excused"]) for row in recorded} == {(True, True), (True, False), (False, False)}


def test_decisions(recorded: list[Row]) -> None:
    for row in recorded:
        (a, b, c), (x, y, z), (p, q, r) = (map(int, row[name]) for name in ("distances", "references", "thresholds"))
        start, end = (bytes.fromhex(row[name][2:]) for name in ("start", "end"))
        claim, thresholds = SegmentClaim(7, start, end, REPLAY, (a, b, c), (x, y, z)), (p, q, r)
        reruns = tuple(Rerun(RERUN, (int(u), int(v), int(w))) for u, v, w in row["reruns"])
        assert needs_second_look(claim, thresholds) == row["due"], row["name"]
        arguments = (claim, thresholds, SecondLook(7, reruns), len(reruns), row["margin"])
        if row["due"]:
            assert (decide_with_second_look(*arguments).outcome is Outcome.ACCEPTED) == row["excused"], row["name"]
        else:
            with pytest.raises(ProtocolError, match="no second look"):
                decide_with_second_look(*arguments)


if __name__ == "__main__":
    FILE.write_text(json_rows({"rows": vectors()}))
