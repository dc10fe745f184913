"""Cases of the kind that Berkeley TestFloat runs: all tuples of interesting numbers, and random mixes with them.

A number is interesting for its exponent (the ends of the range, about 1, and where conversions change) and for its
fraction: level 1 has four of them, level 2 those with one bit or one run of bits set or cleared. Every tuple of
interesting operands comes as it is, with each choice of its fractions drawn anew, and with each one operand drawn anew.
A case is a function of its number, so that any part of a level can be run by itself.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import ARITY, Op, Words

TWO_OPERANDS = (Op.FADD, Op.FSUB, Op.FMUL, Op.FDIV, Op.FMIN, Op.FMAX, Op.FEQ, Op.FLT, Op.FLE)
ONE_OPERAND = (Op.FSQRT, Op.FNEG, Op.FABS, Op.FRINT, Op.F2I, Op.F2U, Op.F2LHI, Op.F2LLO, Op.RBF16, Op.RF16)
OF_INTEGERS = (Op.I2F, Op.U2F, Op.L2F)
PRIMITIVES = (*TWO_OPERANDS, *ONE_OPERAND, *OF_INTEGERS, Op.FFMA)
"""All primitives that round or compare numbers."""

TESTFLOAT_CASES = {1: 600, 2: 46_464, 3: 6_133_248}
"""How many cases TestFloat's level 1 has for so many operands."""

# Zero and subnormal; least normal; 2^-24; about 1; 2^24; 2^31; 2^63; the greatest; infinity and NaN.
_EXPONENTS = (0, 1, 103, 126, 127, 128, 151, 158, 190, 253, 254, 255)
_FRACTION_BITS = 23
_FRACTION = (1 << _FRACTION_BITS) - 1
_FRACTIONS = {
    1: (0, 1, _FRACTION - 1, _FRACTION),
    2: tuple(
        sorted(
            {
                fraction ^ flip
                for bit in range(24)
                for fraction in (1 << bit & _FRACTION, (1 << bit) - 1)
                for flip in (0, _FRACTION)
            }
        )
    ),
}

Numbers = npt.NDArray[np.int64]


def count(op: Op, level: int) -> int:
    """How many cases a level has for a primitive."""
    if op in OF_INTEGERS:
        return 2 * len(_integers(op))
    return len(_interesting(op, level)) ** ARITY[op] * len(_variants(ARITY[op]))


def plain(op: Op, level: int) -> Numbers:
    """Numbers of the cases in which no operand is drawn."""
    return np.arange(0, count(op, level), 1 if op in OF_INTEGERS else len(_variants(ARITY[op])))


def cases(op: Op, level: int, numbers: Numbers) -> tuple[Words, Words, Words]:
    """Operand words of the cases with these numbers, from 0 on; operands that the primitive lacks are 0."""
    zero = np.zeros(len(numbers), np.uint32)
    if op in OF_INTEGERS:
        wide = _drawn_integers(op, numbers)
        return (
            ((wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32), zero)
            if op == Op.L2F
            else (wide.astype(np.uint32), zero, zero)
        )
    interesting, variants = _interesting(op, level), _variants(ARITY[op])
    rest, variant = np.divmod(numbers, len(variants))
    operands = []
    for place in range(ARITY[op]):
        rest, index = np.divmod(rest, len(interesting))
        word = interesting[index]
        random = _random(numbers, place)
        fraction = _drawn_fraction(random)
        how = np.array([kinds[place] for kinds in variants])[variant]
        with_fraction = word & np.uint32(0xFF800000) | fraction
        drawn = (random >> np.uint64(32)).astype(np.uint32) & np.uint32(0xFF800000) | fraction
        operands.append(np.choose(how, [word, with_fraction, drawn]).astype(np.uint32))
    return (*operands, zero, zero)[:3]


def _interesting(op: Op, level: int) -> Words:
    # One operand makes so few cases that it can have all exponents.
    exponents: Sequence[int] = range(256) if ARITY[op] == 1 else _EXPONENTS
    words = [
        sign | exponent << 23 | fraction
        for sign, exponent, fraction in product((0, 1 << 31), exponents, _FRACTIONS[level])
    ]
    return np.array(words, np.uint32)


def _variants(arity: int) -> list[tuple[int, ...]]:
    """What happens to each operand: 0 nothing, 1 a new fraction, 2 a new number."""
    alone = [tuple(2 if place == one else 0 for place in range(arity)) for one in range(arity)]
    return [*product((0, 1), repeat=arity), *alone]


def _random(numbers: Numbers, place: int) -> npt.NDArray[np.uint64]:
    """A word of 64 bits for each case and operand (the finaliser of SplitMix64)."""
    x = numbers.astype(np.uint64) * np.uint64(4) + np.uint64(place + 1)
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _drawn_fraction(random: npt.NDArray[np.uint64]) -> Words:
    """Fractions of random bits: as they are, cut off below or above, one bit, a run of bits."""
    word = random.astype(np.uint32)
    fraction, shift, kind = word & np.uint32(_FRACTION), word >> np.uint32(23) & np.uint32(31), word >> np.uint32(28)
    shift = np.minimum(shift, np.uint32(_FRACTION_BITS - 1))
    full = np.uint32(_FRACTION)
    shapes = [
        fraction, fraction << shift & full, fraction >> shift, np.uint32(1) << shift, full << shift & full,
        full >> shift, full ^ np.uint32(1) << shift, fraction,
    ]  # fmt: skip
    return np.choose(kind & np.uint32(7), shapes).astype(np.uint32)


def _integers(op: Op) -> npt.NDArray[np.uint64]:
    """Sums and differences of two powers of two, and their complements, of the width that the primitive takes."""
    width = 64 if op == Op.L2F else 32
    powers = [0, *(1 << bit for bit in range(width + 1))]
    values = {x + sign * y for x in powers for y in powers for sign in (1, -1)}
    values |= {~value for value in values}
    return np.array(sorted({value & ((1 << width) - 1) for value in values}), np.uint64)


def _drawn_integers(op: Op, numbers: Numbers) -> npt.NDArray[np.uint64]:
    """The integers above, then as many random ones of all lengths."""
    fixed = _integers(op)
    random = _random(numbers, 0) >> _random(numbers, 1) % np.uint64(64)
    return np.where(numbers < len(fixed), fixed[numbers % len(fixed)], random)
