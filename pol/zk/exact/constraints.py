"""Rank-one constraints, written and solved in one walk: a * b = c over sums (docs/spec/zk.md, "Exact circuit")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pol.errors import ProtocolError
from pol.zk import fixed_point
from pol.zk.bn254 import R, from_field
from pol.zk.poseidon import FULL_ROUNDS, PACKED, WORD_BITS, poseidon

Sum = dict[int, int]
"""Coefficients of variables; variable 0 is the number one."""
Row = tuple[Sum, Sum, Sum]

DIVISOR_BITS = 30
"""Bits of a divisor, and of a number whose root is taken, at most."""
_OFFSET = 1 << (WORD_BITS - 1)


@dataclass
class Constraints:
    """Variables with their values, the public ones first, and the rows that constrain them.

    The rows depend on nothing but the order of calls, never on a value.
    """

    values: list[int] = field(default_factory=lambda: [1])
    rows: list[Row] = field(default_factory=list)
    public: int = 1

    def publish(self, values: Sequence[int]) -> list[Sum]:
        """The public variables: before any other."""
        if len(self.values) != 1:
            raise ValueError("public variables come first")
        self.values += [value % R for value in values]
        self.public = len(self.values)
        return [{place: 1} for place in range(1, self.public)]

    def variable(self, value: int) -> Sum:
        """A new variable; it is free until rows constrain it."""
        self.values.append(value % R)
        return {len(self.values) - 1: 1}

    def value(self, terms: Sum) -> int:
        """The value of a sum, as the integer nearest to zero."""
        return from_field(sum(factor * self.values[place] for place, factor in terms.items()) % R)

    def require(self, a: Sum, b: Sum, c: Sum) -> None:
        """The row a * b = c."""
        self.rows.append((a, b, c))

    def product(self, a: Sum, b: Sum) -> Sum:
        """A variable for a * b, or a scaled sum where one of them is a number."""
        for one, other in ((a, b), (b, a)):
            if not set(one) - {0}:
                return scaled(other, one.get(0, 0))
        result = self.variable(self.value(a) * self.value(b))
        self.require(a, b, result)
        return result

    def bits(self, terms: Sum, count: int) -> list[Sum]:
        """The bits of a sum, the lowest first: no solution unless it is in 0 .. 2**count - 1."""
        value = self.value(terms)
        upper = [self.variable(value >> place & 1) for place in range(1, count)]
        # The lowest bit is the rest of the sum.
        lowest = plus(terms, scaled(weighted(upper), -2))
        result = [lowest, *upper]
        for bit in result:
            self.require(bit, plus(bit, number(-1)), {})
        return result

    def word(self, terms: Sum) -> None:
        """No solution unless a sum is an integer of 24 bits with a sign."""
        self.bits(plus(terms, number(_OFFSET)), WORD_BITS)

    def is_positive(self, terms: Sum) -> Sum:
        """1 if an integer of 24 bits with a sign is above zero, else 0."""
        return self.bits(plus(terms, number(_OFFSET - 1)), WORD_BITS)[-1]

    def rounded(self, terms: Sum, shift: int) -> Sum:
        """A sum over 2**shift, to the nearest integer of 24 bits with a sign, ties away from zero.

        The magnitude is rounded: a negative one has no solution. For zero both signs are solutions, and give zero.
        """
        if shift == 0:
            return terms
        negative = self.variable(int(self.value(terms) < 0))
        self.require(negative, plus(negative, number(-1)), {})
        sign = plus(number(1), scaled(negative, -2))
        magnitude = self.product(sign, terms)
        bits = self.bits(magnitude, WORD_BITS - 1 + shift)
        return self.product(sign, plus(weighted(bits[shift:]), bits[shift - 1]))

    def reciprocal(self, terms: Sum, scale: int) -> Sum:
        """The integer nearest to 2**(2 * scale) over a divisor of 1 .. 2**DIVISOR_BITS, ties away from zero.

        2**(2 * scale + 1) + x = 2 x q + r with 0 <= r < 2 x has one solution, of which 23 bits of q are allowed: none
        for zero, for a negative divisor, and for another quotient.
        """
        self.bits(plus(terms, number(-1)), DIVISOR_BITS)
        divisor, numerator = self.value(terms), 1 << (2 * scale + 1)
        quotient = self.variable(fixed_point.reciprocal(divisor, scale) if divisor > 0 else 0)
        self.bits(quotient, WORD_BITS - 1)
        rest = plus(plus(terms, number(numerator)), scaled(self.product(quotient, terms), -2))
        self.bits(rest, DIVISOR_BITS + 1)
        self.bits(plus(plus(scaled(terms, 2), number(-1)), scaled(rest, -1)), DIVISOR_BITS + 1)
        return quotient

    def square_root(self, terms: Sum, scale: int) -> Sum:
        """The integer nearest to the root of 2**scale times a number x of 0 .. 2**DIVISOR_BITS - 1.

        y^2 - y < 2**scale x <= y^2 + y has one solution above zero, of which 23 bits are allowed. Zero is the root of
        zero alone, which a bit of its own says.
        """
        self.bits(terms, DIVISOR_BITS)
        radicand, square = self.value(terms), scaled(terms, 1 << scale)
        root = self.variable(fixed_point.square_root(radicand, scale) if radicand > 0 else 0)
        self.bits(root, WORD_BITS - 1)
        zero = self.variable(int(radicand == 0))
        self.require(zero, plus(zero, number(-1)), {})
        self.require(zero, root, {})
        beyond = plus(square, scaled(self.product(root, root), -1))
        self.bits(plus(root, scaled(beyond, -1)), WORD_BITS)
        self.bits(plus(plus(beyond, root), plus(zero, number(-1))), WORD_BITS)
        return root

    def hash(self, integers: Sequence[Sum]) -> Sum:
        """`pol.zk.poseidon.vector_hash` of integers of 24 bits with a sign, which the caller has checked."""
        words = [plus(integer, number(_OFFSET)) for integer in integers]
        elements = [weighted(words[begin : begin + PACKED], WORD_BITS) for begin in range(0, len(words), PACKED)]
        state: list[Sum] = [{}, {}, number(len(words))]
        for begin in range(0, len(elements), 2):
            for place, element in enumerate(elements[begin : begin + 2]):
                state[place] = plus(state[place], element)
            state = self._permuted(state)
        return state[0]

    def _permuted(self, state: list[Sum]) -> list[Sum]:
        permutation = poseidon(3, 57)
        half = FULL_ROUNDS // 2
        for round_, constants in enumerate(permutation.constants):
            state = [plus(terms, number(constant)) for terms, constant in zip(state, constants, strict=True)]
            full = round_ < half or round_ >= half + permutation.partial_rounds
            state = [self._fifth(terms) if full or place == 0 else terms for place, terms in enumerate(state)]
            state = [
                summed([scaled(terms, factor) for terms, factor in zip(state, row, strict=True)])
                for row in permutation.matrix
            ]
        return state

    def _fifth(self, terms: Sum) -> Sum:
        square = self.product(terms, terms)
        return self.product(self.product(square, square), terms)

    def check(self) -> tuple[list[int], list[int], list[int]]:
        """The values of a, b and c in every row; ProtocolError, naming the first row, unless they solve all rows."""
        a, b, c = ([self.value(row[part]) for row in self.rows] for part in range(3))
        for place, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
            if (x * y - z) % R:
                raise ProtocolError(f"no solution: row {place} of {len(self.rows)} doesn't hold; a number is too large")
        return a, b, c


def number(value: int) -> Sum:
    """A sum that is always this number."""
    return {0: value % R} if value % R else {}


def plus(a: Sum, b: Sum) -> Sum:
    """The sum of two."""
    if len(a) < len(b):
        a, b = b, a
    result = dict(a)
    for place, factor in b.items():
        total = (result.get(place, 0) + factor) % R
        if total:
            result[place] = total
        else:
            result.pop(place, None)
    return result


def scaled(terms: Sum, factor: int) -> Sum:
    """A sum times a number."""
    factor %= R
    return {place: old * factor % R for place, old in terms.items()} if factor else {}


def summed(sums: Sequence[Sum]) -> Sum:
    """The sum of many."""
    result: Sum = {}
    for terms in sums:
        for place, factor in terms.items():
            result[place] = (result.get(place, 0) + factor) % R
    return {place: factor for place, factor in result.items() if factor}


def weighted(sums: Sequence[Sum], step: int = 1) -> Sum:
    """The sum of digits, the lowest first, each with 2**step times the weight of the one before."""
    return summed([scaled(terms, 1 << (step * place)) for place, terms in enumerate(sums)])
