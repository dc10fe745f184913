"""Quotients, roots, softmax in rows: the court's program has the same integers, and a hostile prover no others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from pol.arithmetic.interpreter import run
from pol.errors import ProtocolError
from pol.zk import fixed_point, integer_words
from pol.zk.bn254 import R
from pol.zk.circuits import example_vectors, load_circuit
from pol.zk.exact.circuit import constraints, public_inputs
from pol.zk.exact.constraints import Constraints, Sum, number, plus
from pol.zk.network import MAX_SCALE
from pol.zk.step_functions import exponential
from pol.zk.tracing import trace

SOFTMAX = "softmax_stable"
WORD = 1 << 23
DIVISOR = 1 << 30
ROWS = {
    "product": 1, "word": 24, "gate": 25, "rounded by 20 bits": 46, "reciprocal": 116, "square root": 104,
    "hash of 20": 240,
}  # fmt: skip
EXPONENTIAL = {3: 300, 5: 394}
"""Rows by operation, and those of an exponential by its squarings: the table of docs/spec/zk.md, "Exact circuit"."""


class Hostile(Constraints):
    """A prover that gives some variables other values, by their places; all bits after them follow its lies."""

    def __init__(self, lies: dict[int, int]) -> None:
        super().__init__()
        self.lies = lies

    def variable(self, value: int) -> Sum:
        return super().variable(self.lies.get(len(self.values), value))


def solved(system: Constraints, write: Callable[[Constraints, Sum], Sum], value: int) -> int | None:
    """The result of rows on a number; None if they have no solution."""
    result = write(system, system.variable(value))
    try:
        system.check()
    except ProtocolError:
        return None
    return system.value(result)


def drawn(random: Random, scale: int, count: int) -> list[int]:
    """Numbers of all magnitudes up to a divisor's, neighbors of powers of two, and the ends of what is allowed."""
    smallest = (1 << 2 * scale) // WORD
    edges = {1, 2, 3, smallest, smallest + 1, smallest + 2, DIVISOR - 2, DIVISOR - 1}
    edges |= {(1 << bits) + off for bits in range(1, 30) for off in (-1, 0, 1)}
    values = sorted(edges) + [random.randrange(1, 1 << random.randrange(1, 31)) for _ in range(count)]
    return [value for value in values if 1 <= value < DIVISOR]


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64).astype(np.uint32)


@pytest.mark.parametrize("scale", range(1, MAX_SCALE + 1))
def test_the_courts_quotients_and_roots_are_the_nearest(scale: int) -> None:
    """Wherever the result has 23 bits; elsewhere there is no proof. NumPy's long division agrees where it is exact."""
    values = drawn(Random(scale), scale, 4000)
    nearest = [(2 * (1 << 2 * scale) + x) // (2 * x) for x in values]
    kept = [place for place, quotient in enumerate(nearest) if quotient < WORD]
    found = run(integer_words.reciprocal(scale), [words(values)]).astype(np.int64)
    assert all(found[place] == nearest[place] for place in kept)
    numerators = np.full(len(values), 1 << (2 * scale), np.int64) + np.array(values, np.int64) // 2
    assert np.array_equal(numerators // np.array(values, np.int64), nearest)

    roots = run(integer_words.square_root(scale), [words([0, *values])]).astype(np.int64)
    assert roots[0] == 0
    for x, root in zip(values, roots[1:], strict=True):
        exact = Fraction(x << scale)
        if exact < (WORD - Fraction(1, 2)) ** 2:
            assert (root - Fraction(1, 2)) ** 2 < exact < (root + Fraction(1, 2)) ** 2


@pytest.mark.parametrize("scale", [1, 12, 20, MAX_SCALE])
def test_rows_have_the_courts_quotient_or_no_solution(scale: int) -> None:
    values = [0, -1, -5, -DIVISOR, DIVISOR + 1, R // 2, *drawn(Random(scale), scale, 40)]
    for x in values:
        exact = (2 * (1 << 2 * scale) + x) // (2 * x) if 0 < x <= DIVISOR else WORD
        expected = exact if exact < WORD else None
        assert solved(Constraints(), lambda system, terms: system.reciprocal(terms, scale), x) == expected
        if expected is not None:
            assert int(run(integer_words.reciprocal(scale), [words([x])])[0]) == expected
        root = fixed_point.square_root(x, scale) if 0 <= x < DIVISOR else WORD
        expected = root if root < WORD else None
        assert solved(Constraints(), lambda system, terms: system.square_root(terms, scale), x) == expected
        if expected is not None:
            assert int(run(integer_words.square_root(scale), [words([x])])[0]) == expected


def places(write: Callable[[Constraints, Sum], Sum], value: int) -> tuple[int, list[int]]:
    """Where the result of rows is kept, and all places of variables that the rows make."""
    system = Constraints()
    (result,) = write(system, system.variable(value))
    return result, list(range(2, len(system.values)))


@pytest.mark.parametrize("operation", ["reciprocal", "square_root"])
def test_no_other_quotient_or_root(operation: str) -> None:
    """Whatever is claimed, every bit that follows is chosen to fit it; the claim alone determines them."""
    scale, random = 20, Random(7)

    def write(system: Constraints, terms: Sum) -> Sum:
        result: Sum = getattr(system, operation)(terms, scale)
        return result

    least, most = 1 << 18, 1 << 26
    for x in [least, least + 1, (1 << 20) - 1, 1 << 20, 3 << 19, random.randrange(least, most), most - 50]:
        honest = solved(Constraints(), write, x)
        assert honest is not None
        place, _ = places(write, x)
        lies = {honest + off for off in (-3, -2, -1, 1, 2, 3)} | {0, -honest, WORD - 1, WORD, 2 * WORD, R - 1}
        # The quotient in the field: q x = 2**(2 scale) without any rounding.
        lies |= {(1 << 2 * scale) * pow(x, -1, R) % R, random.randrange(R), *range(honest // 2, honest // 2 + 4)}
        for lie in lies - {honest}:
            assert solved(Hostile({place: lie}), write, x) is None


def test_zero_has_no_quotient_and_one_root() -> None:
    for lie in (0, 1, 2, WORD - 1, R - 1, R // 2):
        place, _ = places(lambda system, terms: system.reciprocal(terms, 20), 1 << 20)
        for divisor in (0, -1):
            assert solved(Hostile({place: lie}), lambda system, terms: system.reciprocal(terms, 20), divisor) is None
    root, made = places(lambda system, terms: system.square_root(terms, 20), 0)
    zero = root + 23  # 22 upper bits of the root, then the bit that says zero
    assert zero in made
    for x in (0, 1, 5, 1 << 20):
        for flag in (0, 1, 2):
            for lie in (0, 1, 2, fixed_point.square_root(x, 20), fixed_point.square_root(x, 20) + 1):
                found = solved(Hostile({root: lie, zero: flag}), lambda s, terms: s.square_root(terms, 20), x)
                right = lie == fixed_point.square_root(x, 20) and flag == (x == 0)
                assert found == (lie if right else None)


@pytest.mark.parametrize("shift", [1, 6, 20])
def test_no_other_rounding(shift: int) -> None:
    """Ties, both signs, zero: with either sign claimed, there is the nearest integer or no solution."""
    half = 1 << (shift - 1)
    for x in {0, 1, half - 1, half, half + 1, 3 * half, 5 * half - 1, (WORD - 2) << shift, (123 << shift) + half}:
        for value in (x, -x):
            (expected,) = fixed_point.rescale(fixed_point.integers([value], (1,)), shift)
            # The first variable of a rounding is the sign.
            for sign in (0, 1, 2, R - 1):
                found = solved(Hostile({2: sign}), lambda system, terms: system.rounded(terms, shift), value)
                assert found in {None, expected}
            assert solved(Constraints(), lambda system, terms: system.rounded(terms, shift), value) == expected


@contextmanager
def lying(function: str, lie: Callable[[int], int]) -> Iterator[None]:
    """A prover whose rule has other results: its whole step, and the hash that it publishes, follow from them."""
    honest = getattr(fixed_point, function)
    with patch.object(fixed_point, function, lambda *given: lie(honest(*given))):
        yield


@pytest.mark.parametrize("off", [-1, 1, WORD >> 3])
def test_a_softmax_step_with_another_quotient_has_no_proof(off: int) -> None:
    """The other step is consistent from that quotient on: other weights, their hash, and all their bits."""
    circuit = load_circuit(SOFTMAX)
    inputs = example_vectors(circuit, 3)
    with lying("reciprocal", lambda quotient: quotient + off):
        system = constraints(circuit.network, inputs, context=7)
        with pytest.raises(ProtocolError, match="no solution"):
            system.check()
    assert system.rows == constraints(circuit.network).rows


def test_logits_of_any_size_have_a_proof() -> None:
    """Up to what 24 bits hold; beyond, and for other data, the error says so before a key is read."""
    circuit = load_circuit(SOFTMAX)
    theta, x, y = example_vectors(circuit, 1)
    one = 1 << circuit.network.scale
    # Two of the classes are equal everywhere, and all weights are; then one class wins by far.
    same, far = theta * 0 + one // 2, theta * 0
    far[0, :32:4] = one // 2
    for weights in (theta * 0, same, far, -far):
        constraints(circuit.network, [weights, x * 0 + one, y], context=7).check()
    with pytest.raises(ProtocolError, match=r"leaves the range of 24 bits.*scale the data down"):
        public_inputs(circuit.network, [theta * 0 + 4 * one, x * 0 + one, y], 7)


def test_words_that_are_no_numbers_of_fixed_point_have_no_integer() -> None:
    """NaN, infinities, subnormal numbers, -0 and finer fractions: no vector stands for them, so no proof is of them."""
    scale = 20
    bad = np.array([np.nan, np.inf, -np.inf, 1e-42, -1e-42, -0.0, 2.0**-21, 8.0, -8.0], np.float32).view(np.uint32)
    for word in [*bad, np.uint32(0xFFC00001)]:
        assert not fixed_point.is_fixed_point(np.array([word], np.uint32), scale)
    good = np.array([0.0, 2.0**-20, -(2.0**-20), 8 - 2.0**-20, -8 + 2.0**-20], np.float32).view(np.uint32)
    assert fixed_point.is_fixed_point(good, scale)
    found = run(integer_words.from_float(scale), [good])
    assert list(found.astype(np.int32)) == [0, 1, -1, WORD - 1, -WORD + 1]
    assert np.array_equal(run(integer_words.to_float(scale), [found]), good)


def test_rows_of_each_operation() -> None:
    def rows(write: Callable[[Constraints, Sum], object]) -> int:
        system = Constraints()
        write(system, system.variable(1 << 20))
        return len(system.rows)

    assert {
        "product": rows(lambda system, terms: system.product(terms, terms)),
        "word": rows(lambda system, terms: system.word(terms)),
        "gate": rows(lambda system, terms: system.product(terms, system.is_positive(terms))),
        "rounded by 20 bits": rows(lambda system, terms: system.rounded(terms, 20)),
        "reciprocal": rows(lambda system, terms: system.reciprocal(terms, 20)),
        "square root": rows(lambda system, terms: system.square_root(terms, 20)),
        "hash of 20": rows(lambda system, terms: system.hash([plus(terms, number(place)) for place in range(20)])),
    } == ROWS
    assert rows(lambda system, terms: system.product(terms, number(5))) == 0
    # The context, and words and hashes of one number that is given and of one that results.
    frame = 1 + 2 * (ROWS["word"] + ROWS["hash of 20"] + 1)
    for squarings, expected in EXPONENTIAL.items():
        network = trace(partial(exponential, squarings=squarings), {"z": (1, 1)}, 20)
        assert len(constraints(network).rows) - frame == expected
