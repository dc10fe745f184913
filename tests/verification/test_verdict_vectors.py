"""Claims and what exact mode and a tolerance make of them, as docs/spec/verdict.md says; forge reads the same file.

The sums are those of small states, by the definition in `test_distance_vectors`. Run this module to write it anew.
"""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from test_distance_vectors import CORNERS, F32, I32, INFINITE, distance, total

from lab.json_rows import json_rows
from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import SegmentClaim, Three
from pol.verification.verdict.verdict import Outcome, decide

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "verdicts.json"
UNEQUAL = 2**160
TOLERANT: Three = (2**40, 0, 2**40)
ONE, TWO, THREE = 0x3F800000, 0x40000000, 0x40400000
Row = dict[str, Any]
State = tuple[int, int, int]
"""A parameter, a moment and a counter of the optimizer."""

# --- the specification once more --------------------------------------------------------------------------------------


def root(state: State) -> bytes:
    return hashlib.sha256(struct.pack("<3I", *state)).digest()


def sums(x: State, y: State) -> list[int]:
    """By component; there is no buffer."""
    return [distance(F32, x[0], y[0]), 0, total([distance(F32, x[1], y[1]), distance(I32, x[2], y[2])])]


def reason(far: int, way: int, threshold: int) -> str | None:
    if far >= 2**191:
        return "distance-infinite"
    if far >= UNEQUAL:
        return "integers-differ"
    if way >= 2**191:
        return "reference-infinite"
    return None if far * 2**64 <= threshold * (way % UNEQUAL) else "distance-above-threshold"


def reasons(thresholds: Three, start: bytes, end: bytes, replay: bytes, far: list[int], way: list[int]) -> list[str]:
    """Why not; none if the segment is accepted."""
    if bytes(32) in (start, end):
        return ["zero-root"]
    if thresholds == (0, 0, 0) and replay != end:
        return ["roots-differ"]
    found = (reason(*row) for row in zip(far, way, thresholds, strict=True))
    return list(dict.fromkeys(why for why in found if why))


# --- the file ---------------------------------------------------------------------------------------------------------


def vector(name: str, start: bytes, end: bytes, replay: bytes, far: list[int], way: list[int]) -> Row:
    claim = (start, end, replay, far, way)
    return {
        "name": name, "start": "0x" + start.hex(), "end": "0x" + end.hex(), "replay": "0x" + replay.hex(),
        "distances": [str(number) for number in far], "references": [str(number) for number in way],
        "exact": not reasons(EXACT, *claim), "exactReasons": reasons(EXACT, *claim),
        "tolerant": not reasons(TOLERANT, *claim), "tolerantReasons": reasons(TOLERANT, *claim),
    }  # fmt: skip


def vectors() -> Row:
    start, end = (ONE, ONE, 0), (TWO, THREE, 10)
    rows = []

    def add(name: str, replay: State, claimed: State | None = None, begin: State = start) -> None:
        """The solver's end is the replayed one, unless another is given."""
        claimed = replay if claimed is None else claimed
        rows.append(vector(name, root(begin), root(claimed), root(replay), sums(replay, claimed), sums(replay, begin)))

    add("the replayed state", end)
    add("nothing moved", start)
    add("the counter alone moved", (ONE, ONE, 10))
    add("the last bit of a parameter differs", end, (TWO + 1, THREE, 10))
    add("a bit below what distances see differs", (0, THREE, 10), (1, THREE, 10))
    add("zero of the other sign", (0, THREE, 10), (0x80000000, THREE, 10))
    add("a parameter differs by as much as it moved", end, (THREE, THREE, 10))
    add("the counter differs", end, (TWO, THREE, 11))
    for name in ("quiet NaN", "signalling NaN", "infinity", "negative infinity", "2^23", "-2^23", "largest finite"):
        word = CORNERS[name]
        add(f"{name} in a parameter of equal states", (word, THREE, 10))
        add(f"{name} in a moment of equal states", (TWO, word, 10))
        add(f"{name} in a parameter of start and end", (word, THREE, 10), begin=(word, ONE, 0))
        add(f"{name} in a parameter of the start", end, begin=(word, ONE, 0))
        add(f"{name} in a parameter of the solver's end", end, (word, THREE, 10))
    add("a counter with the bits of a NaN", (TWO, THREE, CORNERS["quiet NaN"]))
    add("the largest parameter with a distance", (CORNERS["below 2^23"], THREE, 10))

    s, e, other = root(start), root(end), root((THREE, THREE, 10))
    some = [2**80, 0, UNEQUAL + 2**80]
    rows.append(vector("the start is zero", bytes(32), e, e, [0, 0, 0], some))
    rows.append(vector("the end is zero", s, bytes(32), bytes(32), [0, 0, 0], some))
    # What a verifier may claim, though no states have these sums.
    rows.append(vector("equal roots that are said to be apart", s, e, e, [1, 0, 0], some))
    rows.append(vector("equal roots and a buffer that is said to be apart", s, e, e, [0, 1, 0], some))
    rows.append(vector("equal roots and an integer that is said to differ", s, e, e, [0, 0, UNEQUAL], some))
    rows.append(vector("other roots that are said to be near", s, e, other, [0, 0, 0], some))
    edges = {"the greatest finite": 2**191 - 1, "the least infinite": 2**191, "2^256 - 1 as": INFINITE}
    for place in range(3):
        for name, number in edges.items():
            way = [number if i == place else n for i, n in enumerate(some)]
            rows.append(vector(f"{name} reference of component {place + 1}", s, e, e, [0, 0, 0], way))
    return {"tolerance": list(TOLERANT), "rows": rows}


# --- the package against the file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FILE.read_text())


def test_file_is_what_the_specification_says(recorded: Any) -> None:
    assert recorded == vectors()


@pytest.mark.parametrize(("mode", "thresholds"), [("exact", EXACT), ("tolerant", TOLERANT)])
def test_decisions(recorded: Any, mode: str, thresholds: Three) -> None:
    for row in recorded["rows"]:
        roots = (bytes.fromhex(row[name][2:]) for name in ("start", "end", "replay"))
        (a, b, c), (x, y, z) = (map(int, row[name]) for name in ("distances", "references"))
        verdict = decide(SegmentClaim(0, *roots, (a, b, c), (x, y, z)), thresholds)
        accepted = verdict.outcome is Outcome.ACCEPTED
        assert accepted == row[mode], row["name"]
        assert accepted or [why.value for why in verdict.reasons] == row[f"{mode}Reasons"], row["name"]
        assert verdict.detail


@pytest.mark.long
def test_nothing_without_a_distance_is_accepted(recorded: Any) -> None:
    nan = [row for row in recorded["rows"] if row["name"] == "quiet NaN in a parameter of equal states"]
    assert [(row["exact"], row["exactReasons"]) for row in nan] == [(False, ["distance-infinite"])]
    for row in recorded["rows"]:
        if any(int(number) >= 2**191 for number in (*row["distances"], *row["references"])):
            assert not row["exact"]
            assert not row["tolerant"]


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
