"""Exact distances of words, leaves and sums, as docs/spec/verdict.md says; forge reads the same file.

The file is computed from the definition in Fractions below. Run this module to write it anew.
"""

import json
import random
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.json_rows import json_rows
from pol.claims.distance import leaf_distances, saturating_sum, tensor_distance
from pol.graph.tensor_type import DType

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "distances.json"
F32, I32 = 1, 2
INFINITE = 2**256 - 1
CORNERS = {
    "zero": 0x00000000, "negative zero": 0x80000000, "smallest subnormal": 0x00000001,
    "largest subnormal": 0x007FFFFF, "smallest normal": 0x00800000, "below 2^-40": 0x2B7FFFFF,
    "2^-40": 0x2B800000, "-1.5 * 2^-40": 0xABC00000, "1": 0x3F800000, "-1": 0xBF800000,
    "below 2^23": 0x4AFFFFFF, "above -2^23": 0xCAFFFFFF, "2^23": 0x4B000000, "-2^23": 0xCB000000,
    "largest finite": 0x7F7FFFFF, "infinity": 0x7F800000, "negative infinity": 0xFF800000,
    "signalling NaN": 0x7F800001, "quiet NaN": 0x7FC00000,
}  # fmt: skip

# --- the specification once more --------------------------------------------------------------------------------------


def fix(word: int, scale: int = 0) -> int | None:
    """``trunc(x * 2^(40 + scale))`` of a binary32 by its bits; None if it has no distance."""
    sign, exponent, mantissa = word >> 31, word >> 23 & 0xFF, word & 0x7FFFFF
    if exponent == 0xFF:
        return None
    value = Fraction(mantissa, 2**149) if exponent == 0 else (2**23 + mantissa) * Fraction(2) ** (exponent - 150)
    if value >= 2 ** (23 - scale):
        return None
    magnitude = value * 2 ** (40 + scale)
    floor = magnitude.numerator // magnitude.denominator
    return -floor if sign else floor


def distance(dtype: int, x: int, y: int, scale: int = 0) -> int:
    if dtype == I32:
        return 0 if x == y else 2**160
    a, b = fix(x, scale), fix(y, scale)
    if x == y and not (x >> 23 & 0xFF == 0xFF and x & 0x7FFFFF):
        return 0
    return INFINITE if a is None or b is None else (a - b) ** 2


def total(parts: list[int]) -> int:
    return INFINITE if INFINITE in parts or sum(parts) >= 2**191 else sum(parts)


# --- the file ---------------------------------------------------------------------------------------------------------


def pack(words: list[int]) -> str:
    return "0x" + struct.pack("<64I", *words).hex()


def unpack(leaf: str) -> list[int]:
    return list(struct.unpack("<64I", bytes.fromhex(leaf[2:])))


def word_vectors() -> list[dict[str, Any]]:
    """Every corner against every corner, and some of them as integers."""
    corners = list(CORNERS.values())
    pairs = [(F32, scale, x, y) for scale in (0, 12, 23) for i, x in enumerate(corners) for y in corners[i:]]
    pairs += [(I32, 0, x, y) for x in corners[::4] for y in corners[::4]]
    return [
        {"dtype": dtype, "scale": scale, "x": x, "y": y, "distance": str(distance(dtype, x, y, scale))}
        for dtype, scale, x, y in pairs
    ]


def leaf_vectors() -> list[dict[str, Any]]:
    """Pairs of leaves; what lies behind the first ``words`` words is not part of the tensor and does not count."""
    source = random.Random("distances")
    rows: list[dict[str, Any]] = []

    def add(name: str, dtype: int, x: list[int], y: list[int], words: int = 64, scale: int = 0) -> None:
        parts = [distance(dtype, a, b, scale) for a, b in list(zip(x, y, strict=True))[:words]]
        rows.append(
            {
                "name": name, "dtype": dtype, "scale": scale, "words": words, "x": pack(x), "y": pack(y),
                "sum": str(total(parts)),
            }
        )  # fmt: skip

    def floats(low: int, high: int) -> list[int]:
        """Words with biased exponents in ``[low, high]``."""
        return [
            source.getrandbits(1) << 31 | source.randint(low, high) << 23 | source.getrandbits(23) for _ in range(64)
        ]

    for low, high in [(118, 130), (118, 130), (100, 149), (100, 149), (80, 95), (0, 149), (141, 149)]:
        add(f"random words with exponents {low} to {high}", F32, floats(low, high), floats(low, high))
    for scale, low, high in [(12, 90, 120), (12, 76, 137), (23, 63, 126), (23, 100, 128)]:
        name = f"random words of scale {scale} with exponents {low} to {high}"
        add(name, F32, floats(low, high), floats(low, high), scale=scale)
    x = floats(120, 128)
    add("neighbours", F32, x, [word ^ source.getrandbits(2) for word in x])
    add("equal", F32, x, x)
    add("signs flipped", F32, x, [word ^ 0x80000000 for word in x])
    add("any bits", F32, *([source.getrandbits(32) for _ in range(64)] for _ in range(2)))
    add("subnormal against subnormal", F32, floats(0, 0), floats(0, 0))
    add("subnormal against 1", F32, floats(0, 0), [0x3F800000] * 64)
    add("around 2^-40", F32, floats(86, 88), floats(86, 88))
    add("truncation toward zero", F32, [0x2BC00000] * 64, [0xABC00000] * 64)
    add("the greatest finite distance", F32, [0x4AFFFFFF] * 64, [0xCAFFFFFF] * 64)
    for name in ("2^23", "-2^23", "infinity", "negative infinity", "signalling NaN", "quiet NaN"):
        place = source.randrange(64)
        bad = [CORNERS[name] if i == place else word for i, word in enumerate(x)]
        add(f"{name} in X", F32, bad, x)
        add(f"{name} in Y", F32, x, bad)
        add(f"{name} in both", F32, bad, bad)
        add(f"{name} as an integer", I32, bad, x)
        add(f"{name} as an integer in both", I32, bad, bad)
    add("all NaN", F32, [0x7FC00000] * 64, [0x7FC00000] * 64)
    z = [source.getrandbits(32) for _ in range(64)]
    add("integers, equal", I32, z, z)
    add("integers, all unequal", I32, z, [word ^ 1 << i % 32 for i, word in enumerate(z)])
    for place in (0, 31, 63):
        add(f"integers, word {place} unequal", I32, z, [word ^ (i == place) << 31 for i, word in enumerate(z)])
    add("integers, some unequal", I32, z, [word ^ source.getrandbits(1) for word in z])
    for words in (1, 2, 7, 8, 9, 33, 63):
        clean_x, clean_y = ([word * (i < words) for i, word in enumerate(floats(110, 130))] for _ in range(2))
        add(f"{words} words", F32, clean_x, clean_y, words)
        behind = [word if i < words else 0x7FC00000 for i, word in enumerate(clean_x)]
        add(f"{words} words, NaN behind them", F32, behind, clean_y, words)
        add(f"{words} words as integers, others behind them", I32, behind, clean_x, words)
        ends = [*clean_x[: words - 1], 0x7F800000, *clean_x[words:]]
        add(f"{words} words, the last one infinite", F32, ends, clean_y, words)

    return rows


def sum_vectors() -> list[dict[str, Any]]:
    """Sums of distances up to where they saturate."""
    limit = 2**191
    lists = [
        [0], [1, 2, 3], [2**128 - 1] * 16, [2**160] * 16, [limit - 1], [limit - 1, 0], [limit - 2, 1],
        [limit - 1, 1], [limit], [limit // 2, limit // 2], [limit - 1] * 16, [0, INFINITE], [INFINITE, 0],
        [INFINITE, 1], [INFINITE, INFINITE], [2**255, 2**255], [0] * 15 + [INFINITE],
    ]  # fmt: skip
    return [{"parts": [str(part) for part in parts], "sum": str(total(parts))} for parts in lists]


def vectors() -> dict[str, Any]:
    """Distances as decimal strings: JSON readers lose integers beyond 2^53. Leaves as their 256 bytes."""
    return {"words": word_vectors(), "leaves": leaf_vectors(), "sums": sum_vectors()}


# --- the package against the file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FILE.read_text())


def test_file_is_what_the_specification_says(recorded: Any) -> None:
    assert recorded == vectors()


def test_words(recorded: Any) -> None:
    for item in recorded["words"]:
        dtype, expected = DType(item["dtype"]), int(item["distance"])
        x, y = (np.array([item[name]], np.uint32) for name in ("x", "y"))
        assert leaf_distances(dtype, x, y, item["scale"]) == [expected], item
        assert leaf_distances(dtype, y, x, item["scale"]) == [expected], item


def test_leaves(recorded: Any) -> None:
    sums = []
    for item in recorded["leaves"]:
        x, y = (np.array(unpack(item[name])[: item["words"]], np.uint32) for name in "xy")
        assert leaf_distances(DType(item["dtype"]), x, y, item["scale"]) == [int(item["sum"])], item["name"]
        assert tensor_distance(DType(item["dtype"]), y, x, item["scale"]) == int(item["sum"]), item["name"]
        sums.append(int(item["sum"]))
    assert 0 in sums
    assert INFINITE in sums
    assert any(0 < s < 2**160 for s in sums)


def test_leaves_of_one_tensor(recorded: Any) -> None:
    """All full leaves, one behind the other, and a short one at the end."""
    full = [item for item in recorded["leaves"] if (item["dtype"], item["scale"], item["words"]) == (F32, 0, 64)]
    *_, last = (item for item in recorded["leaves"] if item["dtype"] == F32 and item["words"] == 33)
    items = [*full, last]
    x, y = (np.array([w for item in items for w in unpack(item[name])[: item["words"]]], np.uint32) for name in "xy")
    assert leaf_distances(DType.F32, x, y) == [int(item["sum"]) for item in items]


def test_sums(recorded: Any) -> None:
    for item in recorded["sums"]:
        assert saturating_sum(int(part) for part in item["parts"]) == int(item["sum"]), item


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
