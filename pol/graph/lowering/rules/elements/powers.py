"""Powers: one map."""

from __future__ import annotations

from pol.arithmetic.functions import power
from pol.arithmetic.registers import Float, Word, sqrt
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType

_SHORT = frozenset({0.5, -0.5, -1.0, -2.0, 1.0, 2.0, 3.0, 4.0})


@lowers(
    *("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar"),
    defines="exponents 1, 2, 3, 4, -1, -2, 0.5, -0.5 as products, FSQRT, FDIV; others: the function `power`; "
    "integers: exponents 1 to 4",
)
def _power(call: Call) -> Value:
    base, exponent = call.operand(0), call.operand(1)
    if call.dtype is not DType.F32:
        return _integer_power(call)
    if isinstance(exponent, int | float) and float(exponent) == 0:
        return elementwise(call, [1.0], lambda one: one)
    if isinstance(exponent, int | float) and float(exponent) in _SHORT:
        number = float(exponent)
        return elementwise(call, [base], lambda x: _short_power(x, number))
    return elementwise(call, [base, exponent], power)


def _short_power(x: Float, exponent: float) -> Float:
    if exponent in {0.5, -0.5}:
        result = sqrt(x)
    else:
        square = x * x
        result = {1: x, 2: square, 3: square * x, 4: square * square}[int(abs(exponent))]
    return 1.0 / result if exponent < 0 else result


def _integer_power(call: Call) -> Value:
    exponent = call.argument(1)
    if type(exponent) is not int or not 1 <= exponent <= 4:
        raise call.unsupported("integers have the powers 1, 2, 3 and 4")
    factors = exponent - 1

    def formula(x: Word) -> Word:
        result = x
        for _ in range(factors):
            result *= x
        return result

    return elementwise(call, [call.tensor(0)], formula)
