"""Matrix products: a fold with one fused multiply-add per term, k ascending, beginning with +0."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.elementwise import elementwise
from pol.graph.lowering.values import Value, View, expand, permute, unsqueeze
from pol.graph.tensor_type import DType, TensorType


def product(call: Call, left: Value, right: Value, part: str = "") -> View:
    """`left @ right` over the last two dimensions; both have the same leading dimensions."""
    if left.dtype is not DType.F32 or right.dtype is not DType.F32:
        raise call.unsupported("only products of float32 matrices are defined")
    *batch, rows, terms = left.shape
    *others, inner, columns = right.shape
    if batch != others or terms != inner:
        raise ProtocolError(f"matrices of shapes {left.shape} and {right.shape} cannot be multiplied")
    rank = len(left.shape)
    over = (*batch, rows, columns, terms)
    by_row = expand(unsqueeze(left, rank - 1), over)
    by_column = expand(unsqueeze(permute(right, [*range(rank - 2), rank - 1, rank - 2]), rank - 2), over)
    return call.emitter.fold(
        TensorType(DType.F32, over[:-1]),
        (terms,),
        0,
        [by_row, by_column],
        lambda b, accumulator, regs: b.emit(Op.FFMA, *regs, accumulator),
        part,
    )


def _matmul(call: Call) -> Value:
    return product(call, call.tensor(0), call.tensor(1))


def _addmm(call: Call) -> Value:
    """alpha * (a @ b) + beta * bias; the bias is added to the finished product."""
    alpha, beta = call.number(4, "alpha", 1), call.number(3, "beta", 1)
    matrix = product(call, call.tensor(1), call.tensor(2), "product")

    def formula(b: Builder, regs: list[int]) -> int:
        scaled = regs[0] if alpha == 1 else b.emit(Op.FMUL, regs[0], b.f32(alpha))
        bias = regs[1] if beta == 1 else b.emit(Op.FMUL, regs[1], b.f32(beta))
        return b.emit(Op.FADD, scaled, bias)

    return elementwise(call, [matrix, call.tensor(0)], formula)


CONTRACTIONS: Mapping[str, Callable[[Call], Value]] = {
    "aten.mm.default": _matmul,
    "aten.bmm.default": _matmul,
    "aten.addmm.default": _addmm,
}
