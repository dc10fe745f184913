"""Random numbers as scalar programs: the counter-based generator Philox4x32-10 and what is made of its words.

The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A
number depends on its counter and its key alone: there is no state, so any element of any step is drawn by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pol.arithmetic.logarithm import log_in_range
from pol.arithmetic.primitives import SIGN
from pol.arithmetic.registers import (
    Float,
    Function,
    Word,
    high_product,
    polynomial,
    select,
    shifted_with_sign,
    sqrt,
    to_float,
)
from pol.arithmetic.scalar_program import ScalarProgram

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD_BITS = 32

# Half of what lies outside of (-z, z) is p. z / x for x = 1 - 2p <= 0.8, a polynomial in x^2, and z for x >= 0.8, one
# in sqrt(-log(2p)) - 2.75; from the highest power down, with the least greatest relative error: 5e-8 and 9e-8.
_CENTER = (
    *(0x400B7860, 0xC0976529, 0x4096E8E2, 0xC01D0E19, 0x3F5FC74E),
    *(0xBD72CAB0, 0x3E0DD3B7, 0x3E37D6E4, 0x3EA80142, 0x3FA06C98),
)
_TAIL = (
    *(0x3656B79C, 0xB78B752E, 0x380D6847, 0xB88B5A34, 0x396064DE, 0xBA12512B),
    *(0x3A855DC5, 0xBA23184E, 0xBBF6B9B6, 0x3FBD1132, 0x405E1BF6),
)


@Function
def philox(element: Word, step: Word, ordinal: Word, low: Word, high: Word) -> Word:
    """Word 0 of Philox4x32-10 at the counter (element, step, ordinal, 0); the last two inputs are the key."""
    return block([element, step, ordinal, element.word(0)], [low, high])[0]


def block(counter: Sequence[Word], key: Sequence[Word]) -> tuple[Word, Word, Word, Word]:
    """All four words from those of the counter (4) and of the key (2)."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for number in range(ROUNDS):
        if number:
            k0, k1 = (k + k.pattern(step) for k, step in zip((k0, k1), KEY_STEPS, strict=True))
        m0, m1 = (x0.pattern(word) for word in MULTIPLIERS)
        high0, low0 = high_product(x0, m0), x0 * m0
        high1, low1 = high_product(x2, m1), x2 * m1
        x0, x1 = high1 ^ x1 ^ k0, low1
        x2, x3 = high0 ^ x3 ^ k1, low0
    return x0, x1, x2, x3


@Function
def uniform(word: Word) -> Float:
    """The upper 24 bits of a word, times 2^-24: exact, and in [0, 1)."""
    return to_float(word >> 8) * 2.0**-24


@Function
def normal(w: Word) -> Float:
    """The standard normal quantile of (w + 1/2) / 2^32 for a word w; w and 2^32 - 1 - w give opposite numbers."""
    half = w.real(0.5)
    # Distances of w from the nearer end and from the middle, as fractions: 2p and x = 1 - 2p, each to its last bit.
    end = w ^ shifted_with_sign(w, _WORD_BITS - 1)
    middle = (2**31 - 1) - end
    outside, x = ((to_float(count) + half) * 2.0**-31 for count in (end, middle))
    near = x * polynomial(x * x, _CENTER)
    zero = w.real(0.0)
    root = sqrt(zero - log_in_range(outside))
    far = polynomial(root - 2.75, _TAIL)
    size = select(x < 0.8, near, far)
    # The lower half of all words is the lower half of the numbers.
    sign = (w ^ int(SIGN)) & int(SIGN)
    return (size.bits ^ sign).number


GENERATORS: Mapping[str, Callable[[], ScalarProgram]] = MappingProxyType(
    {function.__name__: function for function in (normal, philox, uniform)}
)
"""Every program of this module by its name; they stand in the vectors beside the functions."""
