"""The generator against published known answers and a plain implementation; uniform and normal numbers of its words."""

from statistics import NormalDist

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import GENERATORS, block, normal, philox, uniform
from pol.arithmetic.primitives import Words
from pol.arithmetic.registers import Word, program_of

pytestmark = pytest.mark.rules

# Random123, kat_vectors: "philox4x32 10", counter (4), key (2), answer (4).
KNOWN_ANSWERS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
MASK = 2**32 - 1


def plain(counter: list[int], key: list[int]) -> list[int]:
    x, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [b >> 32 ^ x[1] ^ k[0], b & MASK, a >> 32 ^ x[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return x


def words(*numbers: int) -> list[Words]:
    return [np.array([number], np.uint32) for number in numbers]


@pytest.mark.parametrize("row", KNOWN_ANSWERS.strip().splitlines())
def test_known_answers(row: str) -> None:
    numbers = [int(word, 16) for word in row.split()]
    assert plain(numbers[:4], numbers[4:6]) == numbers[6:]
    for place in range(4):
        program = program_of(lambda *words, place=place: block(words[:4], words[4:])[place], *[Word] * 6)
        assert int(run(program, words(*numbers[:6]))[0]) == numbers[6 + place]


def test_the_program_is_word_0_with_a_last_counter_of_0() -> None:
    rng = np.random.default_rng(3)
    inputs = rng.integers(0, 2**32, (5, 200), dtype=np.uint64).astype(np.uint32)
    inputs[:, :100] = rng.choice(SPECIALS, (5, 100))
    found = run(philox(), list(inputs))
    for i in range(200):
        element, step, ordinal, low, high = (int(word) for word in inputs[:, i])
        assert int(found[i]) == plain([element, step, ordinal, 0], [low, high])[0]


def test_uniform_numbers_are_exact_fractions_of_24_bits() -> None:
    given = np.array([0, 0xFF, 0x100, 0x80000000, 0xFFFFFFFF], np.uint32)
    found = run(uniform(), [given]).view(np.float32).astype(float)
    assert found.tolist() == [int(word) // 256 / 2**24 for word in given]
    assert found.max() < 1


def edges() -> Words:
    """Words about both ends, the middle, powers of two and the seam of the two polynomials, and many drawn ones."""
    seam = round(0.9 * 2**32)
    around = [np.arange(-300, 300) + centre for centre in (300, 2**31, 2**32 - 301, seam, 2**32 - seam)]
    powers = [np.array([2**i + d for i in range(2, 31)]) for d in (-1, 0, 1)]
    drawn = np.random.default_rng(5).integers(0, 2**32, 40_000)
    return np.concatenate([*around, *powers, drawn]).astype(np.uint32)


def test_normal_numbers_are_quantiles() -> None:
    given = edges()
    found = run(normal(), [given]).view(np.float32).astype(float)
    exact = np.array([NormalDist().inv_cdf((int(word) + 0.5) / 2**32) for word in given])
    assert np.max(np.abs(found - exact) / np.abs(exact)) < 3.5e-7
    assert np.abs(found).max() < 6.3380


def test_normal_numbers_of_opposite_words_are_opposite() -> None:
    given = edges()
    assert np.array_equal(run(normal(), [~given]), run(normal(), [given]) ^ np.uint32(0x80000000))


def test_programs_are_small() -> None:
    assert {name: len(function().instructions) for name, function in GENERATORS.items()} == {
        "normal": 60,
        "philox": 87,
        "uniform": 3,
    }


def test_drawn_numbers_look_independent() -> None:
    """Means, variances and correlations along each counter word, each within 5 standard errors."""
    count = 60_000
    step = np.arange(count, dtype=np.uint32)
    zero = np.zeros(1, np.uint32)
    key = words(77, 0)
    columns = [
        run(philox(), [step, zero, zero, *key]),
        run(philox(), [zero, step, zero, *key]),
        run(philox(), [zero, zero, step, *key]),
        run(philox(), [step, zero, zero, *words(78, 0)]),
        run(philox(), [step, zero, zero, *words(77, 1)]),
    ]
    numbers = np.array([run(normal(), [column]).view(np.float32) for column in columns], np.float64)
    bound = 5 / np.sqrt(count)
    assert np.abs(numbers.mean(axis=1)).max() < bound
    assert np.abs((numbers**2).mean(axis=1) - 1).max() < bound * np.sqrt(2)
    assert np.abs((numbers[:, 1:] * numbers[:, :-1]).mean(axis=1)).max() < bound
    correlations = numbers @ numbers.T / count - np.eye(len(columns))
    assert np.abs(correlations - np.diag(np.diag(correlations)))[1:, 1:].max() < bound
    counts = np.bincount(columns[0] >> np.uint32(24), minlength=256)
    assert ((counts - count / 256) ** 2 / (count / 256)).sum() < 255 + 5 * np.sqrt(2 * 255)
