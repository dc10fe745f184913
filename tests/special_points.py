"""What functions of one number are at NaN, infinities and beyond the finite numbers: our definition, not torch's.

Torch's kernels differ there between machines: its vectorized gelu gives NaN at +inf where AVX-512 is used and inf where
AVX2 or no vectors are (the argument of its exponential is inf - inf on one way and not on the other). So a comparison
with torch is made where both numbers are finite, and with these formulas everywhere else.
"""

from collections.abc import Callable
from math import erf

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
_phi = np.vectorize(lambda x: 0.5 * (1.0 + erf(x / np.sqrt(2.0))), otypes=[np.float64])

DEFINED: dict[str, Callable[[Doubles], Doubles]] = {
    "abs.default": np.abs,
    "ceil.default": np.ceil,
    "cos.default": np.cos,
    "erf.default": np.vectorize(erf, otypes=[np.float64]),
    "exp.default": np.exp,
    "exp2.default": np.exp2,
    "expm1.default": np.expm1,
    "floor.default": np.floor,
    # x times the share of a normal distribution below x; at -inf that is inf times zero.
    "gelu.default": lambda x: x * _phi(x),
    "log.default": np.log,
    "log1p.default": np.log1p,
    "log2.default": np.log2,
    "reciprocal.default": lambda x: 1.0 / x,
    "relu.default": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0.0)),
    "round.default": np.round,
    "sigmoid.default": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "sign.default": lambda x: np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)),
    # x / (1 + exp(-x)); at -inf that is inf over inf.
    "silu.default": lambda x: x / (1.0 + np.exp(-x)),
    "sin.default": np.sin,
    "sqrt.default": np.sqrt,
    "tanh.default": np.tanh,
    "trunc.default": np.trunc,
}
"""Functions of one number, by operation."""


def expected(operation: str, operand: npt.NDArray[np.float32], native: npt.NDArray[np.float32]) -> Doubles:
    """Torch's numbers where they and the operand are finite, and the definition elsewhere; shapes are equal."""
    numbers = native.astype(np.float64)
    if operation not in DEFINED or operand.shape != native.shape:
        return numbers
    with np.errstate(all="ignore"):
        # The result is float32: what is beyond its range is infinite.
        defined = DEFINED[operation](operand.astype(np.float64)).astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(operand) & np.isfinite(numbers) & np.isfinite(defined), numbers, defined)
