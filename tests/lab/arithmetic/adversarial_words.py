"""Adversarial inputs for the primitives: the same words for every implementation, drawn from a seed.

A recipe draws operand words that are hard in one way; the cases of a primitive interleave the recipes of its family.
Draws use the raw stream of PCG64 only, which NumPy keeps stable across versions.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import MAGNITUDE, SIGN, Op, Words, apply

Operands = tuple[Words, Words, Words]
Integers = npt.NDArray[np.int64]

_MANTISSA = np.uint32(0x007FFFFF)
_BIAS = 127

_POSITIVE_SPECIALS = (
    *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007FFFFE, 0x007FFFFF),  # zero, subnormal
    *(0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0C000000),  # least normal, and 2^-103
    *(0x33000000, 0x33800000, 0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F000001),  # 2^-25, 2^-24, 2^-23, about 1/2
    *(0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FBFFFFF, 0x3FC00000, 0x40000000, 0x40400000),  # about 1, 3/2, 2, 3
    *(0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4B800000),  # about 2^23 and 2^24
    *(0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000),  # about 2^31 and 2^32
    *(0x5F000000, 0x7E7FFFFF, 0x7E800000, 0x7F000000, 0x7F7FFFFF, 0x7F800000),  # 2^63, greatest normal, infinity
    *(0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF),  # NaN: signalling, canonical, with payloads
)
SPECIALS: Words = np.array([word | sign for word in _POSITIVE_SPECIALS for sign in (0, int(SIGN))], np.uint32)
"""Words at which binary32 operations change their behaviour."""
SPECIALS.flags.writeable = False

_EDGES: Words = np.array(
    [
        *(0, 1, 2, 3, 7, 8, 15, 16, 23, 24, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0xFFFF, 0x10000, 0x10001),
        *(0x55555555, 0xAAAAAAAA, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF0000, 0xFFFFFFFE, 0xFFFFFFFF),
    ],
    np.uint32,
)


class _Draws:
    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> Words:
        return (self._bits.random_raw(count) >> np.uint64(32)).astype(np.uint32)

    def integers(self, low: int, high: int, count: int) -> Integers:
        """Integers in [low, high], near enough to uniform."""
        return low + (self.words(count) % np.uint32(high - low + 1)).astype(np.int64)

    def pick(self, choices: Words, count: int) -> Words:
        return choices[self.integers(0, len(choices) - 1, count)]

    def mantissas(self, count: int) -> Words:
        """Half of them random, half with few bits or runs of bits, which make ties."""
        shift = self.integers(0, 23, count).astype(np.uint32)
        bit = (np.uint32(1) << shift) & _MANTISSA
        run = (_MANTISSA << shift) & _MANTISSA
        low = (np.uint32(1) << shift) - np.uint32(1)
        random = self.words(count) & _MANTISSA
        kind = self.integers(0, 5, count)
        return np.choose(kind, [bit, run, low, random, random, random])

    def floats(self, exponents: Integers) -> Words:
        """Words with the given unbiased exponents (cut off to subnormal and greatest normal) and random signs."""
        count = len(exponents)
        biased = np.clip(exponents + _BIAS, 0, 254).astype(np.uint32)
        return (self.words(count) & SIGN) | (biased << np.uint32(23)) | self.mantissas(count)

    def nudge(self, words: Words) -> Words:
        """The words moved by at most two units in the last place, with random signs."""
        moved = words + self.integers(-2, 2, len(words)).astype(np.uint32)
        return (moved & MAGNITUDE) | (self.words(len(words)) & SIGN)


def _exponents(words: Words) -> Integers:
    return ((words >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int64) - _BIAS


def _narrow(x: npt.NDArray[np.float64]) -> Words:
    with np.errstate(all="ignore"):
        return np.asarray(x.astype(np.float32)).view(np.uint32)


def _wide(words: Words) -> npt.NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return words.view(np.float32).astype(np.float64)


def _special(draws: _Draws, count: int) -> Operands:
    a, b, c = (draws.pick(SPECIALS, count) for _ in range(3))
    return a, b, c


def _random(draws: _Draws, count: int) -> Operands:
    return draws.words(count), draws.words(count), draws.words(count)


def _special_or_random(draws: _Draws, count: int) -> Operands:
    def operand() -> Words:
        return np.where(draws.integers(0, 1, count) == 1, draws.pick(SPECIALS, count), draws.words(count))

    return operand(), operand(), operand()


def _small(draws: _Draws, count: int) -> Operands:
    a, b, c = (_narrow(draws.integers(-12, 12, count) / 2) for _ in range(3))
    return a, b, c


def _aligned(draws: _Draws, count: int) -> Operands:
    """Exponents so close that the mantissas of a sum overlap or just touch."""
    centre = draws.integers(-150, 128, count)
    a, b, c = (draws.floats(centre + draws.integers(-13, 13, count)) for _ in range(3))
    return a, b, c


def _neighbours(draws: _Draws, count: int) -> Operands:
    """Equal or almost equal sizes: cancellation, and comparisons that turn on the last bit."""
    a = np.where(draws.integers(0, 3, count) == 0, draws.pick(SPECIALS, count), draws.words(count))
    return a, draws.nudge(a), draws.nudge(a)


def _sum_ties(draws: _Draws, count: int) -> Operands:
    """The second operand is about half a unit in the last place of the first."""
    a = draws.floats(draws.integers(-125, 127, count))
    b = draws.floats(_exponents(a) - draws.integers(22, 26, count))
    return a, b, draws.words(count)


def _product_range(draws: _Draws, count: int) -> Operands:
    """Products about the edges of the range: subnormal, vanishing or overflowing; the addend stands close by."""
    edge = np.where(
        draws.integers(0, 1, count) == 1, draws.integers(-152, -122, count), draws.integers(125, 129, count)
    )
    a = draws.floats(np.clip(draws.integers(-120, 120, count), edge - 127, edge + 126))
    b = draws.floats(edge - _exponents(a))
    return a, b, draws.floats(edge + draws.integers(-26, 26, count))


def _product_ties(draws: _Draws, count: int) -> Operands:
    """Products of odd numbers of 12 and 13 bits: 25 bits, so often exact ties; a tiny addend tips them."""
    x = (draws.integers(1 << 12, (1 << 13) - 1, count) | 1).astype(np.float64)
    y = (draws.integers(1 << 11, (1 << 12) - 1, count) | 1).astype(np.float64)
    a = _narrow(np.ldexp(x, draws.integers(-60, 40, count)))
    b = _narrow(np.ldexp(y, draws.integers(-60, 40, count)))
    tiny = draws.floats(_exponents(a) + _exponents(b) - draws.integers(20, 80, count))
    return a, b, np.where(draws.integers(0, 2, count) == 0, np.uint32(0), tiny)


def _product_against_addend(draws: _Draws, count: int) -> Operands:
    """The product overlaps the addend, sticks out below it, or is only a sticky bit."""
    c = draws.floats(draws.integers(-149, 127, count))
    a = draws.floats(draws.integers(-60, 60, count))
    return a, draws.floats(_exponents(c) + draws.integers(-54, 27, count) - _exponents(a)), c


def _product_beside_tie(draws: _Draws, count: int) -> Operands:
    """The product misses half a unit of the addend by so little that it shows in no sum of 53 bits.

    (1 + x)(1 - x) = 1 - x^2 with x in units of 2^-23, and (1 + x)(1 - x + x^2) = 1 + x^3 with x in units of 2^-12.
    """
    c = draws.floats(draws.integers(-149, 127, count))
    half = np.maximum(_exponents(c), -126) - 24
    shift = half // 2 + draws.integers(-20, 20, count)
    m = draws.integers(1, 8, count)
    below = draws.integers(0, 1, count) == 1
    x = np.where(below, np.ldexp(m, -23), np.ldexp(m, -12))
    other = np.where(below, 1 - x, 1 - x + x * x)
    a, b = _narrow(np.ldexp(1 + x, shift)), _narrow(np.ldexp(other, half - shift))
    return a ^ (draws.words(count) & SIGN), b, c


def _product_cancellation(draws: _Draws, count: int) -> Operands:
    """The addend is the rounded product, up to two units: what is left is the rounding error of the product."""
    a = draws.floats(draws.integers(-70, 60, count))
    b = draws.floats(draws.integers(-70, 60, count))
    return a, b, draws.nudge(apply(Op.FMUL, a, b))


def _quotient_range(draws: _Draws, count: int) -> Operands:
    """Quotients about the edges of the range."""
    edge = np.where(
        draws.integers(0, 1, count) == 1, draws.integers(-152, -122, count), draws.integers(125, 129, count)
    )
    a = draws.floats(np.clip(draws.integers(-149, 127, count), edge - 126, edge + 127))
    return a, draws.floats(_exponents(a) - edge), draws.words(count)


def _midpoints(draws: _Draws, count: int) -> npt.NDArray[np.float64]:
    """Numbers of 25 bits, each halfway between two binary32 numbers."""
    odd = ((1 << 24) + (draws.words(count) & _MANTISSA).astype(np.int64) * 2 + 1).astype(np.float64)
    return np.ldexp(odd, draws.integers(-40, 10, count))


def _quotient_near_ties(draws: _Draws, count: int) -> Operands:
    b = draws.floats(draws.integers(-30, 30, count))
    return _narrow(_midpoints(draws, count) * _wide(b)), b, draws.words(count)


def _root_near_ties(draws: _Draws, count: int) -> Operands:
    a = _narrow(_midpoints(draws, count) ** 2)
    return a, draws.words(count), draws.words(count)


def _near_integers(draws: _Draws, count: int) -> Operands:
    """Floats about integers, halves and the limits of i32."""
    whole = draws.words(count).astype(np.int32) >> draws.integers(0, 31, count).astype(np.int32)
    a = draws.nudge(_narrow(whole + draws.integers(0, 3, count) / 4))
    return a, draws.floats(draws.integers(-3, 33, count)), draws.words(count)


def _integer_ties(draws: _Draws, count: int) -> Operands:
    """Integers that lie at, or one beside, the middle of two binary32 numbers, of both signs."""
    shift = draws.integers(1, 7, count)
    middle = (((1 << 23) | draws.integers(0, (1 << 23) - 1, count)) << shift) + (1 << (shift - 1))
    near = middle + draws.integers(-1, 1, count)
    a = np.where(draws.integers(0, 1, count) == 1, near, -near).astype(np.uint32)
    return a, draws.words(count), draws.words(count)


def _wide_floats(draws: _Draws, count: int) -> Operands:
    """Numbers from 2^22 to beyond 2^64, many about the limits of u32 and i64."""
    limits = np.array([0x4B800000, 0x4F000000, 0x4F800000, 0x5A000000, 0x5F000000, 0x5F800000], np.uint32)
    at_limit = draws.nudge(draws.pick(limits, count))
    a = np.where(draws.integers(0, 2, count) == 0, at_limit, draws.floats(draws.integers(22, 66, count)))
    return a, draws.words(count), draws.words(count)


def _unsigned_ties(draws: _Draws, count: int) -> Operands:
    """Unsigned integers at, or one beside, the middle of two binary32 numbers, half of them above 2^31."""
    shift = np.maximum(draws.integers(1, 16, count) - 8, 1)
    middle = (((1 << 23) | draws.integers(0, (1 << 23) - 1, count)) << shift) + (1 << (shift - 1))
    return (middle + draws.integers(-1, 1, count)).astype(np.uint32), draws.words(count), draws.words(count)


def _long_ties(draws: _Draws, count: int) -> Operands:
    """Integers of 64 bits at, or one beside, the middle of two binary32 numbers, of both signs: a high, b low."""
    shift = draws.integers(1, 39, count)
    middle = (((1 << 23) | draws.integers(0, (1 << 23) - 1, count)) << shift) + (1 << (shift - 1))
    near = middle + draws.integers(-1, 1, count)
    both = np.where(draws.integers(0, 1, count) == 1, near, -near).view(np.uint64)
    return (both >> np.uint64(32)).astype(np.uint32), both.astype(np.uint32), draws.words(count)


def _long_words(draws: _Draws, count: int) -> Operands:
    """Integers of 64 bits of every length and both signs, so that the upper word is often a sign only."""
    upper, lower, _ = _random(draws, count)
    wide = (upper.astype(np.uint64) << np.uint64(32) | lower).view(np.int64) >> draws.integers(0, 63, count)
    both = wide.view(np.uint64)
    return (both >> np.uint64(32)).astype(np.uint32), both.astype(np.uint32), draws.words(count)


def _short_ties(draws: _Draws, count: int) -> Operands:
    """Words whose lower half is about the half of the upper half's last place."""
    upper = np.where(draws.integers(0, 3, count) == 0, draws.pick(SPECIALS, count), draws.words(count))
    lower = (0x8000 + draws.integers(-1, 1, count)).astype(np.uint32)
    return upper & np.uint32(0xFFFF0000) | lower, draws.words(count), draws.words(count)


def _half_ties(draws: _Draws, count: int) -> Operands:
    """Numbers about the middle of two f16 numbers, from below the least subnormal to beyond the greatest."""
    exponent = draws.integers(-28, 17, count)
    place = np.ldexp(1.0, np.maximum(exponent, -14) - 10)  # distance of f16 numbers
    below = np.floor(np.ldexp(1 + draws.integers(0, 1 << 10, count) / 1024, exponent) / place)
    a = draws.nudge(_narrow((below + draws.integers(0, 2, count) / 2) * place))
    return a, draws.words(count), draws.words(count)


def _edges(draws: _Draws, count: int) -> Operands:
    a, b, c = (draws.pick(_EDGES, count) for _ in range(3))
    return a, b, c


def _integer_neighbours(draws: _Draws, count: int) -> Operands:
    a = np.where(draws.integers(0, 1, count) == 1, draws.pick(_EDGES, count), draws.words(count))
    b = a + draws.integers(-1, 1, count).astype(np.uint32)
    return a, b, draws.words(count)


def _shift_amounts(draws: _Draws, count: int) -> Operands:
    return draws.words(count), draws.integers(0, 70, count).astype(np.uint32), draws.words(count)


def _conditions(draws: _Draws, count: int) -> Operands:
    """Zero and everything that only looks like it, the minus zero of binary32 among them."""
    a = draws.pick(np.array([0, 0, 0, 1, 0x80000000, 0xFFFFFFFF, 0x100], np.uint32), count)
    return a, draws.words(count), draws.pick(SPECIALS, count)


Recipe = Callable[[_Draws, int], Operands]
_FLOAT: Sequence[Recipe] = (_special, _random, _special_or_random, _small, _aligned, _neighbours)
_INTEGER: Sequence[Recipe] = (_edges, _random, _integer_neighbours, _shift_amounts)
_FURTHER: Mapping[Op, Sequence[Recipe]] = {
    Op.FADD: (_sum_ties,),
    Op.FSUB: (_sum_ties,),
    Op.FMUL: (_product_range, _product_ties),
    Op.FDIV: (_quotient_range, _quotient_near_ties),
    Op.FFMA: (_product_range, _product_ties, _product_against_addend, _product_beside_tie, _product_cancellation),
    Op.FSQRT: (_root_near_ties,),
    Op.FRINT: (_near_integers,),
    Op.F2I: (_near_integers,),
    Op.I2F: (_integer_ties,),
    Op.F2U: (_near_integers, _wide_floats),
    Op.U2F: (_integer_ties, _unsigned_ties),
    Op.F2LHI: (_near_integers, _wide_floats),
    Op.F2LLO: (_near_integers, _wide_floats),
    Op.L2F: (_long_ties, _long_words),
    Op.RBF16: (_short_ties,),
    Op.RF16: (_half_ties,),
    Op.SELECT: (_conditions, _special),
}

_OF_INTEGERS = frozenset({Op.I2F, Op.U2F, Op.L2F, *(op for op in Op if op >= Op.ADD)})


def cases(op: Op, count: int, seed: int) -> Operands:
    """Operand words (a, b, c) of `count` cases, shape (count,); operands that the primitive lacks are drawn too.

    The first words of a longer draw from the same seed differ: a set of cases is named by (op, count, seed).
    """
    recipes = (*(_INTEGER if op in _OF_INTEGERS else _FLOAT), *_FURTHER.get(op, ()))
    draws = _Draws(seed << 8 | op)
    share = -(-count // len(recipes))
    drawn = [recipe(draws, share) for recipe in recipes]
    a, b, c = (np.stack([operands[i] for operands in drawn], axis=1).reshape(-1)[:count] for i in range(3))
    return a, b, c


_ONE, _MINUS, _LEAST = 0x3F800000, 0x80000000, 1
_BY_HAND: Mapping[Op, Sequence[tuple[int, int, int]]] = {
    # Equal terms up to where a carry would be the sign.
    Op.FADD: [(word | sign, word | sign, 0) for word in range(0x727FFFFF, 0x75800000, 1 << 23) for sign in (0, _MINUS)],
    # 28 bits before the remainder: the last four say more than a half only with the last one.
    Op.FDIV: [(_LEAST, 0x0A7FFA57, 0)],
    Op.FFMA: [
        *((_ONE, _MINUS, _MINUS), (_ONE, _MINUS, 0), (_ONE, 0, _MINUS), (0x71800000, _ONE, 0xF1800000)),  # zeros
        *((0x53FFFFFF, word - (65 << 23), word - (24 << 23)) for word in range(0x727FFFFF, 0x75800000, 1 << 23)),
        # In the middle of two subnormal numbers; and of two others, with the least number on either side of it.
        *((0x3F000000, 0x00800000 + x, (0x00800000 + y) | _MINUS) for x in range(8) for y in range(8)),
        *((0x3F800001 + 2 * x, 0x19C00000, _LEAST | sign) for x in range(4) for sign in (0, _MINUS)),
    ],
}


def by_hand(op: Op) -> Operands:
    """Operand words at the ends of the contract's short ways, each found by a mutant that no drawn case notices."""
    a, b, c = np.array(_BY_HAND.get(op, []), np.uint32).reshape(-1, 3).T
    return a, b, c


def arguments(inputs: int, count: int, seed: int) -> tuple[Words, ...]:
    """Arguments for a function of `inputs` numbers, each of shape (count,): special, random, moderate, small."""
    draws = _Draws(seed << 8)
    share = -(-count // 4)

    def argument() -> Words:
        moderate = draws.floats(draws.integers(-30, 7, share))
        parts = [draws.pick(SPECIALS, share), draws.words(share), moderate, _narrow(draws.integers(-48, 48, share) / 4)]
        return np.stack(parts, axis=1).reshape(-1)[:count]

    return tuple(argument() for _ in range(inputs))


__all__ = ["SPECIALS", "Operands", "arguments", "by_hand", "cases"]
