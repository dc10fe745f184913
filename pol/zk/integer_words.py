"""Scalar programs of the integer rule: 64-bit arithmetic out of 32-bit words (docs/spec/zk.md, "The program")."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, or_

from pol.arithmetic import registers
from pol.arithmetic.registers import Float, Word, below, high_product, nearest, program_of, select, shifted_with_sign
from pol.arithmetic.scalar_program import ScalarProgram

LIMB_BITS = 9
LIMBS = 3
SUMS = 2 * LIMBS - 1
"""Partial sums of a product of two numbers of three limbs."""


Pair = tuple[Word, Word]
"""The lower and the upper word of 64 bits."""


def from_float(scale: int) -> ScalarProgram:
    """The integer nearest to a float32 times 2**scale; ties to even, which numbers of fixed point have none of."""
    return program_of(lambda x: registers.to_word(nearest(x * 2.0**scale)), Float)


def to_float(scale: int) -> ScalarProgram:
    """An integer over 2**scale as a float32: exact up to 24 bits."""
    return program_of(lambda word: registers.to_float(word) * 2.0**-scale, Word)


def copied() -> ScalarProgram:
    """The word itself."""
    return program_of(lambda word: word, Word)


def joined(parts: int) -> ScalarProgram:
    """Bitwise or: of several words at most one isn't the fill word, zero."""
    return program_of(lambda *words: reduce(or_, words), *[Word] * parts)


def combined(operation: Callable[[Word, Word], Word], left: int, right: int, shift: int) -> ScalarProgram:
    """Sum or difference of two integers, each shifted to a common scale first, and rounded back."""

    def formula(a: Word, b: Word) -> Word:
        a, b = a << left, b << right
        return _rounded_word(operation(a, b), shift)

    return program_of(formula, Word, Word)


def rounded(shift: int) -> ScalarProgram:
    """An integer over 2**shift, to the nearest, ties away from zero."""
    return program_of(lambda word: _rounded_word(word, shift), Word)


def gated() -> ScalarProgram:
    """The first integer where the second is above zero, else zero."""
    return program_of(lambda word, gate: select(gate > 0, word, 0), Word, Word)


def added() -> ScalarProgram:
    """Accumulator plus an integer: the body of a sum."""
    return program_of(add, Word, Word)


def product(shift: int) -> ScalarProgram:
    """Product of two integers over 2**shift, to the nearest, ties away from zero."""

    def formula(*factors: Word) -> Word:
        signs = [shifted_with_sign(factor, 31) for factor in factors]
        a, b = (_negated_if(factor, sign) for factor, sign in zip(factors, signs, strict=True))
        low, high = a * b, high_product(a, b)
        sign = signs[0] ^ signs[1]
        return _negated_if(_shifted((low, high), shift), sign)

    return program_of(formula, Word, Word)


def reciprocal(scale: int) -> ScalarProgram:
    """The integer nearest to 2**(2 * scale) over a divisor of 1 .. 2**30, ties away from zero, if it has 23 bits.

    The quotient of binary32 numbers is at most one too large or too small, which the rest of the division tells.
    """

    def formula(divisor: Word) -> Word:
        quotient = registers.to_word(nearest(2.0 ** (2 * scale) / registers.to_float(divisor)))
        rest = divisor.pattern((1 << (2 * scale)) & 0xFFFFFFFF) + (divisor >> 1) - quotient * divisor
        return quotient + (rest >= divisor) - (rest < 0)

    return program_of(formula, Word)


def square_root(scale: int) -> ScalarProgram:
    """The integer nearest to the root of 2**scale times a number of 0 .. 2**30 - 1, if it has 23 bits.

    The root of the binary32 number is at most one too large or too small, which the rest tells; zero's is right.
    """

    def formula(number: Word) -> Word:
        root = registers.to_word(nearest(registers.sqrt(registers.to_float(number) * 2.0**scale)))
        beyond = (number << scale) - root * root
        return root + (beyond > root) - ((beyond + root <= 0) & (root > 0))

    return program_of(formula, Word)


def partial_sum(order: int) -> ScalarProgram:
    """Accumulator plus all products of limbs i and j of two integers with i + j = order."""

    def formula(total: Word, a: Word, b: Word) -> Word:
        for i in range(LIMBS):
            if 0 <= order - i < LIMBS:
                total += _limb(a, i) * _limb(b, order - i)
        return total

    return program_of(formula, Word, Word, Word)


def assembled(shift: int) -> ScalarProgram:
    """Partial sums put together to 64 bits, over 2**shift, to the nearest, ties away from zero."""

    def formula(*sums: Word) -> Word:
        zero = sums[0].word(0)
        total = zero, zero
        for order, word in enumerate(sums):
            total = _sum(total, _at_bit(word, LIMB_BITS * order))
        low, high = total
        sign = shifted_with_sign(high, 31)
        one = 0 - sign
        magnitude = _sum((low ^ sign, high ^ sign), (one, zero))
        return _negated_if(_shifted(magnitude, shift), sign)

    return program_of(formula, *[Word] * SUMS)


def _at_bit(word: Word, bits: int) -> Pair:
    """A signed word times 2**bits."""
    if bits == 0:
        return word, shifted_with_sign(word, 31)
    if bits < 32:
        return word << bits, shifted_with_sign(word, 32 - bits)
    return word.word(0), word << (bits - 32)


def _limb(word: Word, place: int) -> Word:
    """Limb of a signed number: the lower ones without a sign, the highest with it."""
    moved = shifted_with_sign(word, LIMB_BITS * place) if place else word
    return moved if place == LIMBS - 1 else moved & ((1 << LIMB_BITS) - 1)


def _sum(left: Pair, right: Pair) -> Pair:
    low = left[0] + right[0]
    carry = below(low, right[0])
    return low, left[1] + right[1] + carry


def _negated_if(word: Word, sign: Word) -> Word:
    """Minus a word where `sign` is -1, the word where it is 0."""
    return (word ^ sign) - sign


def _shifted(number: Pair, shift: int) -> Word:
    """Two words without a sign over 2**shift, rounded; one word remains."""
    low, high = number
    if shift == 0:
        return low
    half = 1 << (shift - 1)
    low, high = _sum(number, (low.pattern(half & 0xFFFFFFFF), low.pattern(half >> 32)))
    if shift >= 32:
        return high >> (shift - 32) if shift > 32 else high
    return (high << (32 - shift)) | (low >> shift)


def _rounded_word(word: Word, shift: int) -> Word:
    if shift == 0:
        return word
    sign = shifted_with_sign(word, 31)
    magnitude = _negated_if(word, sign) + (1 << (shift - 1))
    return _negated_if(magnitude >> shift, sign)
