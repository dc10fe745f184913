"""The reference primitives against exact rational arithmetic, and against what IEEE-754 says of special words."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.arithmetic.adversarial_words import SPECIALS, cases
from pol.arithmetic.primitives import ARITY, NAN, Op, Words, apply, is_nan

pytestmark = pytest.mark.rules

words = st.integers(0, 2**32 - 1)

INFINITE = 0x7F800000
SIGN = 0x80000000
COUNT = 5000


def is_number(word: int) -> bool:
    return word & 0x7FFFFFFF < INFINITE


def value(word: int) -> Fraction:
    """Exact value of a finite binary32 word."""
    exponent, mantissa = word >> 23 & 0xFF, word & 0x7FFFFF
    size = Fraction(mantissa | (0x800000 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 150)
    return -size if word & SIGN else size


def rounded(exact: Fraction, sign_of_zero: int = 0) -> int:
    """Word nearest to an exact value, ties to even; no floating-point arithmetic is used."""
    if exact == 0:
        return sign_of_zero
    sign, size = (SIGN if exact < 0 else 0), abs(exact)
    # The lengths of numerator and denominator give the exponent up to one.
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent = max(exponent - (size < Fraction(2) ** exponent), -126)
    units = round(size / Fraction(2) ** (exponent - 23))  # Fraction rounds ties to even
    # A carry out of the mantissa moves into the exponent, and from subnormal to normal, by plain addition.
    word = ((exponent + 126) << 23) + units
    return sign | min(word, INFINITE)


def finite_rows(op: Op) -> list[tuple[int, ...]]:
    operands = np.stack(cases(op, COUNT, seed=7)[: ARITY[op]], axis=1)
    rows = [tuple(int(word) for word in row) for row in operands if all(is_number(int(word)) for word in row)]
    assert len(rows) > COUNT // 2
    return rows


def results(op: Op, rows: list[tuple[int, ...]]) -> list[int]:
    columns = [np.array(column, np.uint32) for column in zip(*rows, strict=True)]
    return [int(word) for word in apply(op, *columns)]


def check(op: Op, rows: list[tuple[int, ...]], expected: list[int]) -> None:
    wrong = [
        (" ".join(f"{word:08x}" for word in row), f"{got:08x}", f"{want:08x}")
        for row, got, want in zip(rows, results(op, rows), expected, strict=True)
        if got != want
    ]
    assert not wrong, f"{op.name}: {len(wrong)} of {len(rows)}, first {wrong[:3]}"


def test_addition_and_subtraction_round_the_exact_value() -> None:
    for op, turned in ((Op.FADD, 0), (Op.FSUB, SIGN)):
        rows = finite_rows(op)
        # A sum that is zero is +0, unless both terms are -0.
        check(op, rows, [rounded(value(a) + value(b ^ turned), a & (b ^ turned) & SIGN) for a, b in rows])


def test_multiplication_rounds_the_exact_value() -> None:
    rows = finite_rows(Op.FMUL)
    check(Op.FMUL, rows, [rounded(value(a) * value(b), (a ^ b) & SIGN) | (a ^ b) & SIGN for a, b in rows])


def test_division_rounds_the_exact_value() -> None:
    rows = [(a, b) for a, b in finite_rows(Op.FDIV) if value(b)]
    check(Op.FDIV, rows, [rounded(value(a) / value(b), (a ^ b) & SIGN) | (a ^ b) & SIGN for a, b in rows])


def test_fma_rounds_the_exact_value_once() -> None:
    rows = finite_rows(Op.FFMA)
    expected = []
    for a, b, c in rows:
        multiplied = value(a) * value(b)
        exact = multiplied + value(c)
        zero = (a ^ b) & c & SIGN if multiplied == 0 else 0
        # A value that rounds to zero keeps its sign; only a sum that *is* zero follows the rule for sums.
        expected.append(rounded(exact, zero) | (SIGN if exact < 0 else 0))
    check(Op.FFMA, rows, expected)
    twice = apply(Op.FADD, apply(Op.FMUL, *cases(Op.FFMA, COUNT, 7)[:2]), cases(Op.FFMA, COUNT, 7)[2])
    once = apply(Op.FFMA, *cases(Op.FFMA, COUNT, 7))
    assert np.count_nonzero(twice != once) > COUNT // 20, "the cases cannot tell an fma from a product and a sum"


def test_square_root_rounds_the_exact_value() -> None:
    rows = [(a,) for (a,) in finite_rows_of_roots() if not a & SIGN]
    for (a,), got in zip(rows, results(Op.FSQRT, rows), strict=True):
        if a == 0:
            assert got == 0
            continue
        # Correct iff the square lies between the squares of the two midpoints beside the result.
        below, above = ((value(got) + value(beside)) / 2 for beside in (got - 1, got + 1))
        square = value(a)
        assert below**2 <= square <= above**2, f"{a:08x} -> {got:08x}"
        assert square not in (below**2, above**2) or got % 2 == 0


def finite_rows_of_roots() -> list[tuple[int, ...]]:
    operand = cases(Op.FSQRT, COUNT, seed=7)[0]
    return [(int(word),) for word in operand if is_number(int(word))]


def test_frint_rounds_to_integers_and_keeps_the_sign() -> None:
    rows = finite_rows(Op.FRINT)
    check(Op.FRINT, rows, [rounded(Fraction(round(value(a)))) | a & SIGN for (a,) in rows])


@pytest.mark.parametrize(("op", "least", "most"), [(Op.F2I, -(2**31), 2**31 - 1), (Op.F2U, 0, 2**32 - 1)])
def test_conversions_to_integers_truncate_and_saturate(op: Op, least: int, most: int) -> None:
    rows = finite_rows(op)
    check(op, rows, [min(max(int(value(a)), least), most) & 0xFFFFFFFF for (a,) in rows])
    limits = np.array([INFINITE, INFINITE | SIGN, 0x7FC00000, 0xFF800001, SIGN], np.uint32)
    assert apply(op, limits).tolist() == [most, least & 0xFFFFFFFF, 0, 0, 0]


def test_i2f_rounds_to_nearest_even() -> None:
    rows = [(int(word),) for word in cases(Op.I2F, COUNT, seed=7)[0]]
    check(Op.I2F, rows, [rounded(Fraction(a - (a >> 31 << 32))) for (a,) in rows])


def rounded_to(exact: Fraction, precision: int, least_exponent: int, greatest: Fraction) -> Fraction | None:
    """Nearest number of a format with `precision` bits, ties to even; None if it is infinite."""
    size = abs(exact)
    exponent = least_exponent
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    place = Fraction(2) ** (exponent - precision + 1)
    nearest = round(exact / place) * place
    return nearest if abs(nearest) <= greatest else None


def test_f2l_truncates_and_saturates() -> None:
    rows = finite_rows(Op.F2LHI)
    whole = [min(max(int(value(a)), -(2**63)), 2**63 - 1) for (a,) in rows]
    check(Op.F2LHI, rows, [number >> 32 & 0xFFFFFFFF for number in whole])
    check(Op.F2LLO, rows, [number & 0xFFFFFFFF for number in whole])
    limits = np.array([INFINITE, INFINITE | SIGN, 0x7FC00000, 0xFF800001, 0x5EFFFFFF, 0xDF000000], np.uint32)
    assert apply(Op.F2LHI, limits).tolist() == [0x7FFFFFFF, 0x80000000, 0, 0, 0x7FFFFF80, 0x80000000]
    assert apply(Op.F2LLO, limits).tolist() == [0xFFFFFFFF, 0, 0, 0, 0, 0]


def test_u2f_rounds_to_nearest_even() -> None:
    rows = [(int(word),) for word in cases(Op.U2F, COUNT, seed=7)[0]]
    check(Op.U2F, rows, [rounded(Fraction(a)) for (a,) in rows])


def test_l2f_rounds_once() -> None:
    rows = [(int(high), int(low)) for high, low in zip(*cases(Op.L2F, COUNT, seed=7)[:2], strict=True)]
    check(Op.L2F, rows, [rounded(Fraction((high << 32 | low) - (high >> 31 << 64))) for high, low in rows])
    # Through binary64, which has 53 bits, the first of these would fall on the tie and go down.
    check(Op.L2F, [(0x40000040, 1), (0x40000040, 0), (0xBFFFFFBF, 0xFFFFFFFF)], [0x5E800001, 0x5E800000, 0xDE800001])


@pytest.mark.parametrize(
    ("op", "precision", "least_exponent", "greatest"),
    [(Op.RBF16, 8, -126, (2 - Fraction(2) ** -7) * Fraction(2) ** 127), (Op.RF16, 11, -14, Fraction(65504))],
    ids=lambda parameter: parameter.name if isinstance(parameter, Op) else "",
)
def test_roundings_find_the_nearest_number_of_the_format(
    op: Op, precision: int, least_exponent: int, greatest: Fraction
) -> None:
    rows = finite_rows(op)
    expected = []
    for (a,) in rows:
        nearest = rounded_to(value(a), precision, least_exponent, greatest)
        expected.append(INFINITE | a & SIGN if nearest is None else rounded(nearest) | a & SIGN)
    check(op, rows, expected)
    check(op, [(INFINITE,), (INFINITE | SIGN,)], [INFINITE, INFINITE | SIGN])
    assert len(set(expected)) > COUNT // 20


def test_rounding_to_f16_at_its_limits() -> None:
    table = [
        (0x477FEFFF, 0x477FE000),  # below 65520: 65504
        (0x477FF000, INFINITE),
        (0xC77FF000, INFINITE | SIGN),
        (0x33000000, 0),  # 2^-25, the tie between 0 and the least number
        (0x33000001, 0x33800000),
        (0xB3000000, SIGN),
        (0x33C00000, 0x34000000),  # the tie between 2^-24 and 2^-23
        (0x387FDFFF, 0x387FC000),  # the greatest subnormal, and what rounds up to the least normal number
        (0x387FE000, 0x38800000),
    ]
    check(Op.RF16, [(a,) for a, _ in table], [want for _, want in table])


INTEGER_RULES = {
    Op.ADD: lambda a, b: a + b, Op.SUB: lambda a, b: a - b, Op.MUL: lambda a, b: a * b,
    Op.MULHI: lambda a, b: a * b >> 32, Op.AND: lambda a, b: a & b, Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b, Op.SHL: lambda a, b: a << b if b < 32 else 0, Op.SHR: lambda a, b: a >> b,
    Op.SAR: lambda a, b: signed(a) >> b, Op.EQ: lambda a, b: a == b, Op.LTU: lambda a, b: a < b,
    Op.LTS: lambda a, b: signed(a) < signed(b), Op.SELECT: lambda a, b, c: b if a else c, Op.MOV: lambda a: a,
}  # fmt: skip


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


@pytest.mark.parametrize("op", INTEGER_RULES, ids=lambda op: op.name)
def test_integer_primitives_follow_unbounded_integers(op: Op) -> None:
    operands = cases(op, COUNT, seed=7)[: ARITY[op]]
    rows = [tuple(int(word) for word in row) for row in zip(*operands, strict=True)]
    check(op, rows, [int(INTEGER_RULES[op](*row)) & 0xFFFFFFFF for row in rows])


def order(word: int) -> tuple[Fraction, int]:
    """Key that orders numbers, infinities and the two zeros."""
    huge = Fraction(2) ** 200
    size = value(word) if is_number(word) else (-huge if word & SIGN else huge)
    return size, 0 if word & SIGN else 1


def test_comparisons_minimum_and_maximum_on_all_pairs_of_special_words() -> None:
    pairs = list(product((int(word) for word in SPECIALS), repeat=2))
    numbers = {word: order(word) for word in map(int, SPECIALS) if word & 0x7FFFFFFF <= INFINITE}
    rules = {
        Op.FEQ: lambda a, b: int(numbers[a][0] == numbers[b][0]),
        Op.FLT: lambda a, b: int(numbers[a][0] < numbers[b][0]),
        Op.FLE: lambda a, b: int(numbers[a][0] <= numbers[b][0]),
        Op.FMIN: lambda a, b: min(a, b, key=numbers.__getitem__),
        Op.FMAX: lambda a, b: max(a, b, key=numbers.__getitem__),
    }
    for op, rule in rules.items():
        unordered = int(NAN) if op in (Op.FMIN, Op.FMAX) else 0
        check(op, pairs, [rule(a, b) if a in numbers and b in numbers else unordered for a, b in pairs])


def test_operations_on_infinities() -> None:
    inf, minus, one, zero, nan = INFINITE, INFINITE | SIGN, 0x3F800000, 0, int(NAN)
    table = [
        (Op.FADD, (inf, one), inf), (Op.FADD, (inf, minus), nan), (Op.FSUB, (inf, inf), nan),
        (Op.FSUB, (one, inf), minus), (Op.FMUL, (inf, minus), minus), (Op.FMUL, (inf, zero), nan),
        (Op.FDIV, (one, zero), inf), (Op.FDIV, (one, SIGN), minus), (Op.FDIV, (zero, zero), nan),
        (Op.FDIV, (inf, inf), nan), (Op.FDIV, (one, minus), SIGN), (Op.FFMA, (inf, zero, one), nan),
        (Op.FFMA, (inf, one, minus), nan), (Op.FFMA, (inf, one, inf), inf),
        (Op.FFMA, (0x7F7FFFFF, 0x7F7FFFFF, minus), minus), (Op.FSQRT, (inf,), inf), (Op.FSQRT, (minus,), nan),
        (Op.FSQRT, (SIGN,), SIGN), (Op.FSQRT, (SIGN | 1,), nan), (Op.FRINT, (minus,), minus),
    ]  # fmt: skip
    for op, row, want in table:
        check(op, [row], [want])


FLOATING = [op for op in Op if op < Op.F2I]
YIELDS_FLOAT = [*(op for op in FLOATING if op not in (Op.FEQ, Op.FLT, Op.FLE)), Op.RBF16, Op.RF16]


@pytest.mark.parametrize("op", YIELDS_FLOAT, ids=lambda op: op.name)
def test_every_nan_is_the_canonical_one_and_nan_spreads(op: Op) -> None:
    operands = cases(op, 30_000, seed=11)[: ARITY[op]]
    result = apply(op, *operands)
    assert set(result[is_nan(result)].tolist()) == {int(NAN)}
    spreads = np.logical_or.reduce([is_nan(operand) for operand in operands])
    assert (result[spreads] == NAN).all()


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_position_shape_and_layout_do_not_matter(op: Op) -> None:
    operands = cases(op, 257, seed=3)[: ARITY[op]]
    result = apply(op, *operands)
    assert result.dtype == np.uint32
    assert result.shape == (257,)
    one_by_one = [int(apply(op, *(np.array(operand[i]) for operand in operands))) for i in range(257)]
    assert one_by_one == result.tolist()
    assert np.array_equal(apply(op, *(operand[::-2] for operand in operands)), result[::-2])


def test_operands_broadcast() -> None:
    column = np.arange(3, dtype=np.uint32)[:, None]
    assert apply(Op.ADD, column, np.arange(4, dtype=np.uint32)).tolist() == [
        [i + j for j in range(4)] for i in range(3)
    ]


@given(words, words)
def test_addition_and_multiplication_commute(a: int, b: int) -> None:
    for op in (Op.FADD, Op.FMUL, Op.FMIN, Op.FMAX, Op.FEQ, Op.ADD, Op.MUL, Op.MULHI):
        assert results(op, [(a, b)]) == results(op, [(b, a)])


@given(words, words)
def test_subtraction_is_addition_of_the_negated(a: int, b: int) -> None:
    assert results(Op.FSUB, [(a, b)]) == results(Op.FADD, [(a, results(Op.FNEG, [(b,)])[0])])


@given(words, words, words)
def test_fma_contains_sum_and_product(a: int, b: int, c: int) -> None:
    assert results(Op.FFMA, [(a, 0x3F800000, c)]) == results(Op.FADD, [(a, c)])
    minus_zero_of_product = (a ^ b) & SIGN  # the zero that leaves a product as it is
    assert results(Op.FFMA, [(a, b, minus_zero_of_product)]) == results(Op.FMUL, [(a, b)])


@given(words, words)
def test_multiplication_of_integers_has_64_bits(a: int, b: int) -> None:
    assert results(Op.MULHI, [(a, b)])[0] << 32 | results(Op.MUL, [(a, b)])[0] == a * b


def test_wrong_operands_are_refused() -> None:
    one: Words = np.array([1], np.uint32)
    with pytest.raises(ValueError, match="FADD takes 2 operands, got 1"):
        apply(Op.FADD, one)
    with pytest.raises(ValueError, match="MOV takes 1 operands, got 2"):
        apply(Op.MOV, one, one)
    with pytest.raises(TypeError, match="uint32"):
        apply(Op.MOV, one.view(np.float32))  # type: ignore[arg-type]  # the error under test


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_cases_are_a_function_of_their_name(op: Op) -> None:
    first, again, other = cases(op, 1000, 1), cases(op, 1000, 1), cases(op, 1000, 2)
    assert all(np.array_equal(x, y) for x, y in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert all(x.shape == (1000,) and x.dtype == np.uint32 for x in first)
