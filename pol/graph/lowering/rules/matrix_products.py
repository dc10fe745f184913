"""Matrix products: a fold with one fused multiply-add per term, k ascending, beginning with +0; of integers, one MUL
and one ADD, where no order matters.
"""

from __future__ import annotations

from pol.arithmetic.registers import Float, Register, Word, fma
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elementwise import elementwise
from pol.graph.lowering.values import Value, View, expand, permute, unsqueeze
from pol.graph.tensor_type import DType, TensorType


def product(call: Call, left: Value, right: Value, part: str = "") -> View:
    """`left @ right` over the last two dimensions; both have the same leading dimensions."""
    if left.dtype is not call.dtype or right.dtype is not call.dtype:
        raise call.unsupported("both matrices and their product are floats, or all are integers: convert one")
    *batch, rows, terms = left.shape
    *others, inner, columns = right.shape
    if batch != others or terms != inner:
        raise ProtocolError(f"matrices of shapes {left.shape} and {right.shape} cannot be multiplied")
    rank = len(left.shape)
    over = (*batch, rows, columns, terms)
    by_row = expand(unsqueeze(left, rank - 1), over)
    by_column = expand(unsqueeze(permute(right, [*range(rank - 2), rank - 1, rank - 2]), rank - 2), over)

    def add(total: Float, a: Float, b: Float) -> Register:
        return fma(a, b, total)

    def add_integers(total: Word, a: Word, b: Word) -> Register:
        return total + a * b

    formula = add if call.dtype is DType.F32 else add_integers
    return call.emitter.fold(TensorType(call.dtype, over[:-1]), (terms,), 0, [by_row, by_column], formula, part)


@lowers(
    *("aten.mm.default", "aten.bmm.default", "aten._int_mm.default"),
    defines="acc = FFMA(a, b, acc) from +0, k ascending; integers: acc = ADD(acc, MUL(a, b))",
)
def _matmul(call: Call) -> Value:
    return product(call, call.tensor(0), call.tensor(1))


@lowers("aten.addmm.default", defines="the product as in mm, times alpha, plus bias times beta; float32 only")
def _addmm(call: Call) -> Value:
    if call.dtype is not DType.F32:
        raise call.unsupported("of integers write the product and the sum apart: a @ b + c")
    alpha, beta = call.number(4, "alpha", 1), call.number(3, "beta", 1)
    matrix = product(call, call.tensor(1), call.tensor(2), "product")

    def formula(product: Float, bias: Float) -> Float:
        scaled = product if alpha == 1 else product * alpha
        return scaled + (bias if beta == 1 else bias * beta)

    return elementwise(call, [matrix, call.tensor(0)], formula)
