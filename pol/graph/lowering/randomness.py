"""Random numbers: draws from Philox4x32-10 at the counter (element, step, ordinal, 0); docs/spec/randomness.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic import philox
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Coordinate, Emitter
from pol.graph.lowering.values import Fill, Value, View, expand, float_word, integer_word, reshape, select
from pol.graph.tensor_type import DType

Shaping = Callable[[Builder, int], int]
"""From the register of a drawn word to the register of the result."""

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
    places = [step, ordinal, select(seed, 0, 0), select(seed, 0, 1)]

    arguments = [Coordinate(0), *(expand(value, (count,)) for value in places)]
    words = emitter.map((count,), DType.I32, arguments, lambda b, regs: b.call(philox.philox(), *regs), "words")
    return emitter.map((count,), dtype, [words], lambda b, regs: shaping(b, *regs))


def uniform(low: float, high: float) -> Shaping:
    """low + (high - low) * u with one rounding; u itself for 0 and 1."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"no numbers lie from {low} to {high}")

    def shaping(b: Builder, word: int) -> int:
        u = b.call(philox.uniform(), word)
        return _scaled(b, u, high - low, low)

    return shaping


def normal(mean: float, std: float) -> Shaping:
    """mean + std * z with one rounding; z itself for 0 and 1."""
    if not (math.isfinite(mean) and math.isfinite(std) and std >= 0):
        raise ValueError(f"there is no normal distribution of mean {mean} and standard deviation {std}")
    return lambda b, word: _scaled(b, b.call(philox.normal(), word), std, mean)


def bernoulli(p: float) -> Shaping:
    """1 where the word is below p * 2^32, rounded to an integer."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{p} is not a probability")
    threshold = round(p * WORDS)

    def shaping(b: Builder, word: int) -> int:
        # No word holds 2^32; all are below it.
        return b.const(1) if threshold == WORDS else b.emit(Op.LTU, word, b.const(threshold))

    return shaping


def integers(low: int, high: int) -> Shaping:
    """low + floor(word * (high - low) / 2^32)."""
    if not 0 < high - low < WORDS:
        raise ValueError(f"there are no 1 to 2^32 - 1 integers from {low} to {high - 1}")
    first, _ = integer_word(low), integer_word(high - 1)
    return lambda b, word: b.emit(Op.ADD, b.emit(Op.MULHI, word, b.const(high - low)), b.const(first))


def _scaled(b: Builder, number: int, factor: float, offset: float) -> int:
    if (factor, offset) == (1.0, 0.0):
        return number
    return b.emit(Op.FFMA, number, b.const(float_word(factor)), b.const(float_word(offset)))


SHAPINGS: Mapping[str, Callable[..., Shaping]] = {
    "uniform": uniform,
    "normal": normal,
    "bernoulli": bernoulli,
    "integers": integers,
}
"""The distributions by name; each takes its parameters."""


def _rule(name: str, parameters: Sequence[str]) -> Callable[[Call], Value]:
    def rule(call: Call) -> Value:
        read = call.integer if name == "integers" else call.number
        shaping = SHAPINGS[name](*(read(4 + place, parameter) for place, parameter in enumerate(parameters)))
        shape = call.integers(3, "shape")
        ordinal = Fill(integer_word(call.integer(2, "ordinal")), DType.I32, ())
        numbers = draw(call.emitter, math.prod(shape), call.dtype, call.tensor(0), call.tensor(1), ordinal, shaping)
        result = reshape(numbers, shape)
        if result is None:
            raise AssertionError("a stored tensor can have any shape")
        return result

    return rule


RANDOM: Mapping[str, Callable[[Call], Value]] = {
    "pol.uniform.default": _rule("uniform", ("low", "high")),
    "pol.normal.default": _rule("normal", ("mean", "std")),
    "pol.bernoulli.default": _rule("bernoulli", ("p",)),
    "pol.integers.default": _rule("integers", ("low", "high")),
}
