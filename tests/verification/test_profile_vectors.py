"""Leaves, ratios, thresholds and whole profiles, as docs/spec/profile.md says; forge reads the same file.

The file is computed below from the definitions, in Fractions and eth_abi. Run this module to write it anew.
"""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from commitments.test_log import audit_path, tree_hash
from lab.json_rows import json_rows
from pol.claims.segment_claim import Rerun, Three
from pol.errors import UnsupportedError
from pol.graph.step_program import Component
from pol.verification.profile.profile_claim import Portion, ProfileClaim, claim, ratio, require_threshold

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "profile.json"
INFINITE = 2**256 - 1
UNEQUAL = 2**160
Row = dict[str, Any]

# --- the specification once more --------------------------------------------------------------------------------------


def ratio_of(distance: int, reference: int) -> int | None:
    if distance >= 2**160 or reference >= 2**191:
        return None
    if distance == 0:
        return 0
    words = reference - reference // 2**160 * 2**160
    if words == 0:
        return None
    exact = Fraction(distance * 2**64, words)
    return -(-exact.numerator // exact.denominator)


def threshold_of(found: int, margin: int) -> int | None:
    threshold = max(2**24, margin**2 * found)
    return threshold if threshold <= 2**52 else None


def demanded_of(distance: int, reference: int, margin: int) -> int | None:
    found = ratio_of(distance, reference)
    return None if found is None else threshold_of(found, margin)


# --- the file ---------------------------------------------------------------------------------------------------------

NUMBERS = (0, 1, 2, 3, 2**40, 2**64 - 1, 2**96 + 1, UNEQUAL - 1)


def maybe(name: str, value: int | None) -> Row:
    """A number that may not exist; zero stands where there is none."""
    return {"exists": value is not None, name: str(value or 0)}


def ratio_vectors() -> list[Row]:
    references = (*NUMBERS, UNEQUAL, UNEQUAL + 1, 7 * UNEQUAL + 2**40, 2**191 - 1, 2**191, INFINITE)
    distances = (*NUMBERS, UNEQUAL, 2**191, INFINITE)
    return [
        {"distance": str(d), "reference": str(r), **maybe("ratio", ratio_of(d, r))}
        for d in distances
        for r in references
    ]


def threshold_vectors() -> list[Row]:
    """From one rerun: around floor and cap for each margin, and where there is no ratio."""
    pairs = [(d, 2**64) for d in (0, 1, 2**12, 2**24 - 1, 2**24, 2**24 + 1, 2**52 - 1, 2**52, 2**52 + 1, 2**64)]
    pairs += [(2**52 // margin**2 + i, 2**64) for margin in (64, 65535) for i in (0, 1)]
    pairs += [(2**24, 2**64 - 1), (2**24, 2**64 + 1), (UNEQUAL - 1, 1), (UNEQUAL - 1, UNEQUAL - 1)]
    pairs += [(1, 0), (1, UNEQUAL), (UNEQUAL, 2**64), (0, INFINITE), (INFINITE, 1)]
    return [
        {"distance": str(d), "reference": str(r), "margin": margin, **maybe("threshold", demanded_of(d, r, margin))}
        for d, r in pairs
        for margin in (1, 2, 64, 65535)
    ]


def profile_vectors() -> list[Row]:
    source = random.Random("profiles")

    def root() -> bytes:
        return source.randbytes(32)

    def honest(reference: int) -> int:
        return reference * source.randint(1, 1000) // 10**13

    rows: list[Row] = []
    for name, margin, segments, count in [
        ("one rerun", 64, 1, 1),
        ("one portion", 64, 1, 5),
        ("two portions", 64, 2, 4),
        ("three portions", 16, 3, 3),
        ("sixteen portions", 1, 16, 2),
    ]:
        references = [[source.randint(2**90, 2**100) for _ in Component] for _ in range(segments)]
        portions = [(root(), row) for row in references]
        reruns = [(root(), [honest(r) for r in references[k]]) for k in range(segments) for _ in range(count)]
        rows.append(profile_vector(name, margin, portions, reruns))

    big = 2**60 + 1
    for name, references, distances in [
        ("all distances are zero", [big] * 3, [[0, 0, 0]] * 3),
        ("nothing moves", [0, 0, 0], [[0, 0, 0]] * 2),
        (
            "no buffers, and a counter in the optimizer state",
            [big, 0, UNEQUAL + big],
            [[3, 0, 9], [4, 0, 1], [4, 0, 9]],
        ),
        ("equal greatest ratios: the first is the witness", [big] * 3, [[1, 7, 5], [9, 7, 5], [9, 7, 6]]),
        ("an integer differs", [big] * 3, [[1, 1, 1], [1, UNEQUAL, 1]]),
        ("a rerun isn't finite", [big] * 3, [[1, 1, 1], [2, 2, 2], [1, 1, INFINITE]]),
        ("a reference isn't finite, but the distance is zero", [INFINITE, big, big], [[0, 1, 1]]),
        ("only the rerun moves", [0, big, big], [[0, 1, 1], [5, 1, 1]]),
        ("only an integer moves, and the rerun's numbers", [UNEQUAL, big, big], [[1, 1, 1]]),
        ("the greatest distance that has a ratio, and the least reference", [1, big, big], [[UNEQUAL - 1, 1, 1]]),
        ("a threshold of 2^64", [2**76, big, big], [[2**64, 1, 1]]),
        ("the greatest threshold", [2**76, big, big], [[2**64 - 2**12, 1, 1]]),
    ]:
        rows.append(profile_vector(name, 64, [(root(), references)], [(root(), row) for row in distances]))
    return rows


def profile_vector(
    name: str, margin: int, portions: list[tuple[bytes, list[int]]], reruns: list[tuple[bytes, list[int]]]
) -> Row:
    count = len(reruns) // len(portions)
    leaves = [keccak(encode(["(bytes32,uint256[3])"], [(end, distances)])) for end, distances in reruns]
    ratios = [[ratio_of(row[c], portions[i // count][1][c]) for i, (_, row) in enumerate(reruns)] for c in range(3)]
    # Nothing exceeds a rerun without a ratio.
    keys = [[(value is None, value or 0) for value in row] for row in ratios]
    witnesses = [row.index(max(row)) for row in keys]
    worst = [row[witness] for row, witness in zip(ratios, witnesses, strict=True)]
    thresholds = [None if value is None else threshold_of(value, margin) for value in worst]
    exists = None not in thresholds
    return {
        "name": name,
        "margin": margin,
        "rerunCount": count,
        "portions": [{"end": "0x" + end.hex(), "references": [str(x) for x in row]} for end, row in portions],
        "reruns": [{"end": "0x" + end.hex(), "distances": [str(x) for x in row]} for end, row in reruns],
        "leaves": ["0x" + leaf.hex() for leaf in leaves],
        "root": "0x" + tree_hash(leaves).hex(),
        "ratios": [[maybe("ratio", value) for value in row] for row in ratios],
        "witnesses": witnesses,
        "paths": [["0x" + node.hex() for node in audit_path(witness, leaves)] for witness in witnesses],
        "exists": exists,
        "thresholds": [str(value if exists else 0) for value in thresholds],
    }


def vectors() -> Row:
    """Integers beyond 2^53 as decimal strings: JSON readers lose them."""
    return {"ratios": ratio_vectors(), "thresholds": threshold_vectors(), "profiles": profile_vectors()}


# --- the package against the file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FILE.read_text())


def stated(row: Row, name: str) -> int | None:
    return int(row[name]) if row["exists"] else None


def three(texts: list[str]) -> Three:
    a, b, c = (int(text) for text in texts)
    return a, b, c


def claim_of(row: Row) -> ProfileClaim:
    portions = [Portion(bytes.fromhex(p["end"][2:]), three(p["references"])) for p in row["portions"]]
    reruns = [Rerun(bytes.fromhex(r["end"][2:]), three(r["distances"])) for r in row["reruns"]]
    return claim(row["margin"], portions, reruns)


def test_file_is_what_the_specification_says(recorded: Any) -> None:
    assert recorded == vectors()


def test_ratios(recorded: Any) -> None:
    for row in recorded["ratios"]:
        assert ratio(int(row["distance"]), int(row["reference"])) == stated(row, "ratio"), row
    assert {row["exists"] for row in recorded["ratios"]} == {True, False}


def test_thresholds(recorded: Any) -> None:
    for row in recorded["thresholds"]:
        arguments = (int(row["distance"]), int(row["reference"]), row["margin"])
        if row["exists"]:
            assert require_threshold(*arguments) == int(row["threshold"]), row
        else:
            with pytest.raises(UnsupportedError):
                require_threshold(*arguments)
    assert {row["exists"] for row in recorded["thresholds"]} == {True, False}


def test_profiles(recorded: Any) -> None:
    for row in recorded["profiles"]:
        found = claim_of(row)
        assert found.rerun_count == row["rerunCount"]
        assert ["0x" + rerun.leaf.hex() for rerun in found.reruns] == row["leaves"]
        assert "0x" + found.root.hex() == row["root"]
        assert list(found.witnesses) == row["witnesses"], row["name"]
        paths = [["0x" + node.hex() for node in found.log.inclusion(witness)] for witness in found.witnesses]
        assert paths == row["paths"]
        for component in Component:
            assert found.ratios(component) == [stated(r, "ratio") for r in row["ratios"][component - 1]], row["name"]
        if row["exists"]:
            assert found.thresholds == three(row["thresholds"]), row["name"]
        else:
            with pytest.raises(UnsupportedError):
                _ = found.thresholds
    assert {row["exists"] for row in recorded["profiles"]} == {True, False}


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
