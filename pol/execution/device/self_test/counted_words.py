"""Words that follow from a counter: the same on every machine, without a file."""

from __future__ import annotations

import numpy as np

from pol.arithmetic.primitives import Words

_SPECIALS = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),  # around 0
        *(0x3F800000, 0xBF800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x4B000000, 0x4B7FFFFF, 0xCB000001),  # integers
        *(0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0xDF000000),  # 2^31, 2^63
        *(0x33000000, 0x33000001, 0x387FC000, 0x38800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x7F7FFFFF),  # of float16
        *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FABCDEF),  # no numbers
        *(0x00000002, 0x00000005, 0x0000001F, 0x00000020, 0x00000021, 0x00000040, 0x000000FF, 0xFFFFFFE0),  # of shifts
    ],
    np.uint32,
)


def counted_words(stream: int, count: int) -> Words:
    """Any words: half of them arbitrary, three eighths numbers near 1, the rest special ones."""
    drawn, kind = _mixed(stream, count), _mixed(stream + 1_000, count)
    special = _SPECIALS[(kind >> 8) % np.uint32(_SPECIALS.size)]
    chosen = np.where(kind % 8 == 0, special, np.where(kind % 8 < 4, _near_one(drawn), drawn))
    return np.asarray(chosen, np.uint32)


def counted_numbers(stream: int, count: int) -> Words:
    """Numbers of magnitude 2^-8 to 2: sums of many of them stay finite, and round."""
    return _near_one(_mixed(stream, count))


def counted_integers(stream: int, count: int, limit: int) -> Words:
    """Integers from 0 to ``limit`` - 1."""
    return np.asarray(_mixed(stream, count) % np.uint32(limit), np.uint32)


def _near_one(words: Words) -> Words:
    """Words with the exponent replaced by one of eight."""
    return np.asarray(words & np.uint32(0x807FFFFF) | (words >> 23 & 7) + np.uint32(119) << 23, np.uint32)


def _mixed(stream: int, count: int) -> Words:
    """The finalizer of MurmurHash3 on a counter."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(stream * 0x85EBCA6B % 2**32)
        x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ x >> 16, np.uint32)
