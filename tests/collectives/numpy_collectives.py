"""The rules of docs/spec/collectives.md once more, in NumPy: no torch, no line of the package."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CHUNK = 1024
Floats = NDArray[np.float32]


def canonical(values: Floats) -> Floats:
    words = values.astype(np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), words).view(np.float32)


def ordered(
    rows: Sequence[Floats], operation: str = "sum", order: str = "ascending", roster: Sequence[int] | None = None
) -> Floats:
    """The result of every element, by the words of each rank."""
    terms = [np.asarray(rows[rank], np.float32) for rank in roster or range(len(rows))]
    with np.errstate(all="ignore"):
        while len(terms) > 1:
            if order == "ascending":
                terms = [terms[0] + terms[1], *terms[2:]]
            else:
                terms = [sum_of(terms[place : place + 2]) for place in range(0, len(terms), 2)]
        total = terms[0]
        if operation == "mean":
            total = total * (np.float32(1) / np.float32(len(rows)))
    return canonical(total)


def sum_of(pair: Sequence[Floats]) -> Floats:
    return pair[0] + pair[1] if len(pair) == 2 else pair[0]


def integers(
    rows: Sequence[Floats], operation: str, bits: int, rests: Sequence[Floats] | None = None
) -> tuple[Floats, list[Floats]]:
    """The result of one tensor (all ranks' elements in a row), and each rank's rest."""
    n, limit = len(rows), 2 ** (bits - 1) - 1
    with np.errstate(all="ignore"):
        given = [row + rest for row, rest in zip(rows, rests, strict=True)] if rests else list(rows)
        result, left = np.empty_like(rows[0]), [np.zeros_like(row) for row in rows]
        for begin in range(0, len(rows[0]), CHUNK):
            chunk = slice(begin, begin + CHUNK)
            parts = [row[chunk] for row in given]
            if not all(np.isfinite(part).all() for part in parts):
                result[chunk] = canonical(np.full_like(parts[0], np.nan))
                continue
            greatest = max(float(np.abs(part).max()) for part in parts)
            # frexp: greatest = m 2^k with 1/2 <= m < 1. A chunk below 2^-126 counts as one of 2^-126.
            e = max(int(np.frexp(max(greatest, 2.0**-126))[1]) - (bits - 1), -126)
            wide = [np.clip(np.rint(part.astype(np.float64) * 2.0**-e), -limit, limit) + 0.0 for part in parts]
            sums = sum(part.astype(np.int64) for part in wide)
            value = sums.astype(np.float32)
            if operation == "mean":
                value = value * (np.float32(1) / np.float32(n))
            result[chunk] = value * np.float32(2.0**e)
            for rest, part, q in zip(left, parts, wide, strict=True):
                exact = part.astype(np.float64) - q * 2.0**e
                rest[chunk] = exact
                assert (rest[chunk] == exact).all(), "the rest is a float32"
    return result, left


def to_bfloat16(values: Floats) -> Floats:
    """Rounded to nearest even, as float32."""
    words = canonical(values).view(np.uint32).astype(np.uint64)
    rounded = (words + 0x7FFF + (words >> np.uint64(16) & np.uint64(1))) & np.uint64(0xFFFF0000)
    return np.where(np.isnan(values), np.uint64(0x7FC00000), rounded).astype(np.uint32).view(np.float32)
