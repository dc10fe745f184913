"""Whole numbers: rounding of binary32, and bits, quotients and rests of i32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.rests import MOST_ROUNDS, exact_rest, floor_quotient, floor_rest, rounds_for
from pol.graph.lowering.values import Value
from pol.graph.tensor_type import DType


def quotient_and_rest(b: Builder, x: int, divisor: int) -> tuple[int, int]:
    """Registers of x // divisor and x % divisor, for 0 <= x < 2^31 and a positive divisor below 2^31."""
    if divisor == 1:
        return b.emit(Op.MOV, x), b.const(0)
    # The high half of x * ceil(2^32 / d) is the quotient or one more.
    estimate = b.emit(Op.MULHI, x, b.const(-(-(2**32) // divisor)))
    rest = b.emit(Op.SUB, x, b.emit(Op.MUL, estimate, b.const(divisor)))
    over = b.emit(Op.LTS, rest, b.const(0))
    quotient = b.emit(Op.SUB, estimate, over)
    return quotient, b.emit(Op.SELECT, over, b.emit(Op.ADD, rest, b.const(divisor)), rest)


def floored(b: Builder, x: int, divisor: int) -> tuple[int, int]:
    """Quotient rounded down and its rest (not negative), for any i32 except -2^31 and a positive divisor."""
    negative = b.emit(Op.LTS, x, b.const(0))
    # Of a negative x: -((-x + d - 1) // d) rounds down; -x - 1 keeps the argument in range.
    size = b.emit(Op.SELECT, negative, b.emit(Op.XOR, x, b.const(2**32 - 1)), x)
    quotient, _ = quotient_and_rest(b, size, divisor)
    result = b.emit(Op.SELECT, negative, b.emit(Op.XOR, quotient, b.const(2**32 - 1)), quotient)
    return result, b.emit(Op.SUB, x, b.emit(Op.MUL, result, b.const(divisor)))


def _floor_register(b: Builder, x: int) -> int:
    """x rounded down; infinities and NaN stay."""
    nearest = b.emit(Op.FRINT, x)
    return b.emit(Op.SELECT, b.emit(Op.FLT, x, nearest), b.emit(Op.FSUB, nearest, b.f32(1.0)), nearest)


def _ceiling_register(b: Builder, x: int) -> int:
    """x rounded up; infinities and NaN stay."""
    return b.emit(Op.FNEG, _floor_register(b, b.emit(Op.FNEG, x)))


def _truncated_register(b: Builder, x: int) -> int:
    """x rounded towards zero."""
    return b.emit(Op.SELECT, b.emit(Op.FLT, x, b.f32(0.0)), _ceiling_register(b, x), _floor_register(b, x))


def _rounding(formula: Callable[[Builder, int], int]) -> Callable[[Call], Value]:
    def lower(call: Call) -> Value:
        if call.dtype is not DType.F32:
            return call.tensor(0)
        return elementwise(call, [call.tensor(0)], lambda b, regs: formula(b, regs[0]))

    return lower


def _floor_parts(part: int) -> Callable[[Call], Value]:
    """Quotient (0) or rest (1) of a division that rounds down."""

    def lower(call: Call) -> Value:
        divisor = call.argument(1)
        if call.dtype is DType.F32:
            return _float_parts(call, part)
        if type(divisor) is not int or not 0 < divisor < 2**31:
            raise call.unsupported("integers are divided only by a positive integer number")
        number = divisor
        return elementwise(call, [call.tensor(0)], lambda b, regs: floored(b, regs[0], number)[part])

    return lower


def _float_parts(call: Call, part: int) -> Value:
    """Quotient rounded down, or the rest with the sign of the divisor, both from the exact rest."""
    rounds = _rounds(call)

    def formula(b: Builder, regs: list[int]) -> int:
        return (floor_quotient if part == 0 else floor_rest)(b, regs[0], regs[1], rounds)

    return elementwise(call, [call.operand(0), call.operand(1)], formula)


def _rest_to_zero(call: Call) -> Value:
    """The rest of a division that rounds towards zero."""
    if call.dtype is not DType.F32:
        raise call.unsupported("only float32 results are defined; of integers write torch.remainder")
    rounds = _rounds(call)
    return elementwise(
        call, [call.operand(0), call.operand(1)], lambda b, regs: exact_rest(b, regs[0], regs[1], rounds)
    )


def _rounds(call: Call) -> int:
    """How many rounds the rest takes: fewer for a divisor that is known."""
    divisor = call.argument(1)
    return rounds_for(float(divisor)) if isinstance(divisor, int | float) else MOST_ROUNDS


def _division_mode(call: Call) -> Value:
    """A division with a rounding mode."""
    mode = call.argument(2, "rounding_mode")
    if mode == "floor":
        return _floor_parts(0)(call)
    if call.dtype is not DType.F32 or mode not in {"trunc", None}:
        raise call.unsupported("integers are divided with rounding_mode='floor'")

    def formula(b: Builder, regs: list[int]) -> int:
        quotient = b.emit(Op.FDIV, *regs)
        return quotient if mode is None else _truncated_register(b, quotient)

    return elementwise(call, [call.operand(0), call.operand(1)], formula)


def _bits(op: Op) -> Callable[[Call], Value]:
    """Bit by bit; of booleans that is the logical operation."""

    def lower(call: Call) -> Value:
        if call.dtype is DType.F32:
            raise call.unsupported("the operands must be booleans or integers; compare with zero first")
        return elementwise(call, [call.operand(0), call.operand(1)], lambda b, regs: b.emit(op, *regs))

    return lower


def _bitwise_not(call: Call) -> Value:
    if call.dtype is DType.F32:
        raise call.unsupported("the operand must be boolean or an integer; compare with zero first")
    mask = 1 if call.torch_dtype(0) == "bool" else 2**32 - 1
    return elementwise(call, [call.tensor(0)], lambda b, regs: b.emit(Op.XOR, regs[0], b.const(mask)))


INTEGERS: Mapping[str, Callable[[Call], Value]] = {
    "aten.floor.default": _rounding(_floor_register),
    "aten.ceil.default": _rounding(_ceiling_register),
    "aten.trunc.default": _rounding(_truncated_register),
    "aten.round.default": _rounding(lambda b, x: b.emit(Op.FRINT, x)),
    "aten.floor_divide.default": _floor_parts(0),
    "aten.remainder.Scalar": _floor_parts(1),
    "aten.remainder.Tensor": _floor_parts(1),
    "aten.fmod.Scalar": _rest_to_zero,
    "aten.fmod.Tensor": _rest_to_zero,
    "aten.div.Tensor_mode": _division_mode,
    "aten.div.Scalar_mode": _division_mode,
    "aten.bitwise_and.Tensor": _bits(Op.AND),
    "aten.bitwise_or.Tensor": _bits(Op.OR),
    "aten.bitwise_xor.Tensor": _bits(Op.XOR),
    "aten.bitwise_and.Scalar": _bits(Op.AND),
    "aten.bitwise_or.Scalar": _bits(Op.OR),
    "aten.bitwise_not.default": _bitwise_not,
}
