"""Powers: short ones as products, the others by the function `power`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic import functions
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType

_SHORT_POWERS = frozenset({0.5, -0.5, -1.0, -2.0, 1.0, 2.0, 3.0, 4.0})


def _power(call: Call) -> Value:
    base, exponent = call.operand(0), call.operand(1)
    if call.dtype is not DType.F32:
        return _integer_power(call)
    if isinstance(exponent, int | float) and float(exponent) == 0:
        return elementwise(call, [1.0], lambda b, regs: b.emit(Op.MOV, *regs))
    if isinstance(exponent, int | float) and float(exponent) in _SHORT_POWERS:
        number = float(exponent)
        return elementwise(call, [base], lambda b, regs: _short_power(b, regs[0], number))
    return elementwise(call, [base, exponent], lambda b, regs: b.call(functions.power(), *regs))


def _short_power(b: Builder, base: int, exponent: float) -> int:
    if exponent in {0.5, -0.5}:
        result = b.emit(Op.FSQRT, base)
    else:
        square = b.emit(Op.FMUL, base, base)
        powers = {1: base, 2: square, 3: b.emit(Op.FMUL, square, base), 4: b.emit(Op.FMUL, square, square)}
        result = powers[int(abs(exponent))]
    return b.emit(Op.FDIV, b.f32(1.0), result) if exponent < 0 else result


def _integer_power(call: Call) -> Value:
    exponent = call.argument(1)
    if type(exponent) is not int or not 1 <= exponent <= 4:
        raise call.unsupported("integers have the powers 1, 2, 3 and 4")
    count = exponent

    def formula(b: Builder, regs: list[int]) -> int:
        result = regs[0]
        for _ in range(count - 1):
            result = b.emit(Op.MUL, result, regs[0])
        return result

    return elementwise(call, [call.tensor(0)], formula)


POWERS: Mapping[str, Callable[[Call], Value]] = {
    "aten.pow.Tensor_Scalar": _power,
    "aten.pow.Tensor_Tensor": _power,
    "aten.pow.Scalar": _power,
}
