"""Random numbers: draws from Philox4x32-10 at the counter (element, step, ordinal, 0); docs/spec/randomness.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pol.arithmetic import philox
from pol.arithmetic.registers import Float, Register, Word, below, fma, high_product
from pol.errors import ProtocolError
from pol.graph.lowering.emitter import Coordinate, Emitter
from pol.graph.lowering.values import Value, View, at_index, expand, integer_word
from pol.graph.tensor_type import DType

Shaping = Callable[[Word], Register]
"""From a drawn word to the result."""

WORDS = 2**32


def draw(
    emitter: Emitter, count: int, dtype: DType, step: Value, seed: Value, ordinal: Value, shaping: Shaping
) -> View:
    """`count` numbers; step and ordinal are scalars, the seed has two words.

    Words and their shaping are maps of their own, which the lowering joins where the program stays short.
    """
    if step.shape or ordinal.shape or seed.shape != (2,):
        raise ProtocolError("a draw needs a scalar step and ordinal, and two words of a seed")
    if any(value.dtype is not DType.I32 for value in (step, seed, ordinal)):
        raise ProtocolError("the counter and the key of a draw are integers")
    places = [step, ordinal, at_index(seed, 0, 0), at_index(seed, 0, 1)]

    arguments = [Coordinate(0), *(expand(value, (count,)) for value in places)]
    words = emitter.map((count,), DType.I32, arguments, philox.philox, "words")
    return emitter.map((count,), dtype, [words], shaping)


def uniform(low: float, high: float) -> Shaping:
    """low + (high - low) * u with one rounding; u itself for 0 and 1."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"no numbers lie from {low} to {high}")

    return lambda word: _scaled(philox.uniform(word), high - low, low)


def normal(mean: float, std: float) -> Shaping:
    """mean + std * z with one rounding; z itself for 0 and 1."""
    if not (math.isfinite(mean) and math.isfinite(std) and std >= 0):
        raise ValueError(f"there is no normal distribution of mean {mean} and standard deviation {std}")
    return lambda word: _scaled(philox.normal(word), std, mean)


def bernoulli(p: float) -> Shaping:
    """1 where the word is below p * 2^32, rounded to an integer."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{p} is not a probability")
    threshold = round(p * WORDS)

    # No word holds 2^32; all are below it.
    return lambda word: word.word(1) if threshold == WORDS else below(word, threshold)


def integers(low: int, high: int) -> Shaping:
    """low + floor(word * (high - low) / 2^32)."""
    if not 0 < high - low < WORDS:
        raise ValueError(f"there are no 1 to 2^32 - 1 integers from {low} to {high - 1}")
    integer_word(low), integer_word(high - 1)
    return lambda word: high_product(word, high - low) + low


def _scaled(number: Float, factor: float, offset: float) -> Float:
    return number if (factor, offset) == (1.0, 0.0) else fma(number, factor, offset)


SHAPINGS: Mapping[str, Callable[..., Shaping]] = {
    "uniform": uniform,
    "normal": normal,
    "bernoulli": bernoulli,
    "integers": integers,
}
"""The distributions by name; each takes its parameters."""
