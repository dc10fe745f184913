"""Scalar programs of the integer rule: 64-bit arithmetic out of 32-bit words (docs/spec/zk.md, "The program")."""

from __future__ import annotations

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram

LIMB_BITS = 9
LIMBS = 3
SUMS = 2 * LIMBS - 1
"""Partial sums of a product of two numbers of three limbs."""


def from_float(scale: int) -> ScalarProgram:
    """The integer nearest to a float32 times 2**scale; ties to even, which numbers of fixed point have none of."""
    b = Builder(1)
    return b.build(b.emit(Op.F2I, b.emit(Op.FRINT, b.emit(Op.FMUL, b.input(0), b.f32(2.0**scale)))))


def to_float(scale: int) -> ScalarProgram:
    """An integer over 2**scale as a float32: exact up to 24 bits."""
    b = Builder(1)
    return b.build(b.emit(Op.FMUL, b.emit(Op.I2F, b.input(0)), b.f32(2.0**-scale)))


def copied() -> ScalarProgram:
    """The word itself."""
    b = Builder(1)
    return b.build(b.input(0))


def joined(parts: int) -> ScalarProgram:
    """The one of several words that isn't filled with zero."""
    b = Builder(parts)
    result = b.input(0)
    for part in range(1, parts):
        result = b.emit(Op.OR, result, b.input(part))
    return b.build(result)


def combined(op: Op, left: int, right: int, shift: int) -> ScalarProgram:
    """Sum or difference of two integers, each shifted to a common scale first, and rounded back."""
    b = Builder(2)
    a, c = (b.emit(Op.SHL, b.input(place), b.const(bits)) for place, bits in enumerate((left, right)))
    return b.build(_rounded_word(b, b.emit(op, a, c), shift))


def rounded(shift: int) -> ScalarProgram:
    """An integer over 2**shift, to the nearest, ties away from zero."""
    b = Builder(1)
    return b.build(_rounded_word(b, b.input(0), shift))


def gated() -> ScalarProgram:
    """The first integer where the second is above zero, else zero."""
    b = Builder(2)
    above = b.emit(Op.LTS, b.const(0), b.input(1))
    return b.build(b.emit(Op.SELECT, above, b.input(0), b.const(0)))


def added() -> ScalarProgram:
    """Accumulator plus an integer: the body of a sum."""
    b = Builder(2)
    return b.build(b.emit(Op.ADD, b.input(0), b.input(1)))


def product(shift: int) -> ScalarProgram:
    """Product of two integers over 2**shift, to the nearest, ties away from zero."""
    b = Builder(2)
    signs = [b.emit(Op.SAR, b.input(place), b.const(31)) for place in range(2)]
    magnitudes = [_negated_if(b, b.input(place), sign) for place, sign in enumerate(signs)]
    low, high = b.emit(Op.MUL, *magnitudes), b.emit(Op.MULHI, *magnitudes)
    sign = b.emit(Op.XOR, *signs)
    return b.build(_negated_if(b, _shifted(b, low, high, shift), sign))


def partial_sum(order: int) -> ScalarProgram:
    """Accumulator plus all products of limbs i and j of two integers with i + j = order."""
    b = Builder(3)
    result = b.input(0)
    for i in range(LIMBS):
        if 0 <= order - i < LIMBS:
            limbs = _limb(b, b.input(1), i), _limb(b, b.input(2), order - i)
            result = b.emit(Op.ADD, result, b.emit(Op.MUL, *limbs))
    return b.build(result)


def assembled(shift: int) -> ScalarProgram:
    """Partial sums put together to 64 bits, over 2**shift, to the nearest, ties away from zero."""
    b = Builder(SUMS)
    low, high = b.const(0), b.const(0)
    for order in range(SUMS):
        bits, word = LIMB_BITS * order, b.input(order)
        if bits == 0:
            part_low, part_high = word, b.emit(Op.SAR, word, b.const(31))
        elif bits < 32:
            part_low = b.emit(Op.SHL, word, b.const(bits))
            part_high = b.emit(Op.SAR, word, b.const(32 - bits))
        else:
            part_low, part_high = b.const(0), b.emit(Op.SHL, word, b.const(bits - 32))
        low, high = _sum(b, (low, high), (part_low, part_high))
    sign = b.emit(Op.SAR, high, b.const(31))
    one = b.emit(Op.SUB, b.const(0), sign)
    magnitude = _sum(b, (b.emit(Op.XOR, low, sign), b.emit(Op.XOR, high, sign)), (one, b.const(0)))
    return b.build(_negated_if(b, _shifted(b, *magnitude, shift), sign))


def _limb(b: Builder, word: int, place: int) -> int:
    """Limb of a signed number: the lower ones without a sign, the highest with it."""
    moved = b.emit(Op.SAR, word, b.const(LIMB_BITS * place)) if place else word
    return moved if place == LIMBS - 1 else b.emit(Op.AND, moved, b.const((1 << LIMB_BITS) - 1))


def _sum(b: Builder, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    low = b.emit(Op.ADD, left[0], right[0])
    carry = b.emit(Op.LTU, low, right[0])
    return low, b.emit(Op.ADD, b.emit(Op.ADD, left[1], right[1]), carry)


def _negated_if(b: Builder, word: int, sign: int) -> int:
    """Minus a word where `sign` is -1, the word where it is 0."""
    return b.emit(Op.SUB, b.emit(Op.XOR, word, sign), sign)


def _shifted(b: Builder, low: int, high: int, shift: int) -> int:
    """Two words without a sign over 2**shift, rounded; one word remains."""
    if shift == 0:
        return low
    half = 1 << (shift - 1)
    low, high = _sum(b, (low, high), (b.const(half & 0xFFFFFFFF), b.const(half >> 32)))
    if shift >= 32:
        return b.emit(Op.SHR, high, b.const(shift - 32)) if shift > 32 else high
    return b.emit(Op.OR, b.emit(Op.SHL, high, b.const(32 - shift)), b.emit(Op.SHR, low, b.const(shift)))


def _rounded_word(b: Builder, word: int, shift: int) -> int:
    if shift == 0:
        return word
    sign = b.emit(Op.SAR, word, b.const(31))
    magnitude = b.emit(Op.ADD, _negated_if(b, word, sign), b.const(1 << (shift - 1)))
    return _negated_if(b, b.emit(Op.SHR, magnitude, b.const(shift)), sign)
