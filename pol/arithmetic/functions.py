"""Elementary functions as scalar programs; their greatest errors stand in docs/spec/functions.md.

Every program is total: it gives the limits at infinities and zeros, NaN outside the domain, and subnormal results
rounded like all others.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pol.arithmetic.exponential import erf, exp, exp2, expm1, sigmoid, tanh
from pol.arithmetic.logarithm import log, log1p, log2
from pol.arithmetic.power import power
from pol.arithmetic.registers import Float, Function, sqrt
from pol.arithmetic.scalar_program import ScalarProgram
from pol.arithmetic.trigonometric import cos, sin

__all__ = [
    "CATALOGUE",
    "cos",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "power",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "tanh",
]


@Function
def rsqrt(x: Float) -> Float:
    """1 / sqrt(x)."""
    return 1.0 / sqrt(x)


@Function
def reciprocal(x: Float) -> Float:
    """1 / x, correctly rounded."""
    return 1.0 / x


_FUNCTIONS = (cos, erf, exp, exp2, expm1, log, log1p, log2, power, reciprocal, rsqrt, sigmoid, sin, tanh)

CATALOGUE: Mapping[str, Callable[[], ScalarProgram]] = MappingProxyType(
    {function.__name__: function for function in _FUNCTIONS}
)
"""Every function by its name; what is measured and put into vectors."""
