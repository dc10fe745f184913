"""Matrix products: a fold with one fused multiply-add per term, k ascending, beginning with +0; of integers, one MUL
and one ADD, where no order matters.
"""

from __future__ import annotations

from pol.arithmetic.registers import Float, Register, Word, fma, select
from pol.errors import ProtocolError
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Argument, Coordinate, NodeRead
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.rules.elements.elementwise import elementwise
from pol.graph.lowering.values import Value, View, at_index, expand, permute, unsqueeze, view_of
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


@lowers(
    "aten._grouped_mm.default",
    defines="as mm, each row (column, term) with the matrix of its group: the number of ends that are not behind it; "
    "rows behind the last end are +0; float32 only, no bias",
)
def _grouped(call: Call) -> Value:
    left, right = call.floats(0), call.floats(1)
    if call.argument(3, "bias") is not None:
        raise call.unsupported("a bias; add it to the result")
    if len(left.shape) == len(right.shape) == 3:  # matrices of all groups
        return product(call, left, right)
    ends = call.emitter.view(call.tensor(2))
    if len(left.shape) == len(right.shape):
        return _products_of_parts(call, left, right, ends)
    if len(left.shape) > len(right.shape):
        # (left @ right)^T = right^T @ left^T
        turned = _rows_by_group(call, permute(right, (1, 0)), permute(left, (0, 2, 1)), ends)
        return permute(turned, (1, 0))
    return _rows_by_group(call, left, right, ends)


def _groups(call: Call, ends: View, count: int) -> View:
    """The group of each of `count` positions."""
    over = (count, ends.shape[0])

    def add(total: Word, end: Word, here: Word) -> Word:
        return total + (end <= here)

    arguments: list[Argument] = [view_of(expand(ends, over)), Coordinate(0)]
    return call.emitter.fold(TensorType(DType.I32, over[:1]), over[1:], 0, arguments, add, "groups")


def _rows_by_group(call: Call, left: Value, right: Value, ends: View) -> View:
    """Row s of (rows, terms) times the matrix of its group in (groups, terms, columns)."""
    rows, terms = left.shape
    groups, inner, columns = right.shape
    if inner != terms:
        raise ProtocolError(f"matrices of shapes {left.shape} and {right.shape} cannot be multiplied")
    over = (rows, columns, terms)
    group = expand(unsqueeze(unsqueeze(_groups(call, ends, rows), 1), 2), over)
    matrices = view_of(permute(right, (0, 2, 1)))
    first = view_of(expand(unsqueeze(at_index(matrices, 0, 0), 0), over))
    read = NodeRead(first, gather=(0, matrices.strides[0], groups))

    def add(total: Float, _: Word, a: Float, b: Float) -> Float:
        return fma(a, b, total)

    arguments: list[Argument] = [view_of(group), view_of(expand(unsqueeze(left, 1), over)), read]
    return call.emitter.fold(TensorType(DType.F32, over[:2]), (terms,), 0, arguments, add)


def _products_of_parts(call: Call, left: View, right: View, ends: View) -> View:
    """Of (rows, terms) and (terms, columns) the products over the terms of each group."""
    rows, terms = left.shape
    inner, columns = right.shape
    if inner != terms:
        raise ProtocolError(f"matrices of shapes {left.shape} and {right.shape} cannot be multiplied")
    over = (ends.shape[0], rows, columns, terms)

    def add(total: Float, group: Word, own: Word, a: Float, b: Float) -> Float:
        return select(group == own, fma(a, b, total), total)

    arguments: list[Argument] = [
        view_of(expand(_groups(call, ends, terms), over)),
        Coordinate(0),
        view_of(expand(unsqueeze(left, 1), over)),
        view_of(expand(permute(right, (1, 0)), over)),
    ]
    return call.emitter.fold(TensorType(DType.F32, over[:3]), (terms,), 0, arguments, add)
