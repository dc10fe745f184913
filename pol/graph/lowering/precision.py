"""bfloat16: a tensor of it is binary32 words that are bfloat16 numbers, so what computes one rounds at its end.

An operation computes in binary32, a matrix product in its defined order, whatever its operands are; then each element
is rounded once. Operations that only move words need no rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Op, apply
from pol.graph.aten_graph import AtenType, references
from pol.graph.lowering.call import Call
from pol.graph.lowering.values import Fill, Value
from pol.graph.lowering.views import VIEWS

BFLOAT16 = "bfloat16"
_EXACT = frozenset(
    {
        *VIEWS,
        *(
            f"aten.{name}.default"
            for name in (
                "neg",
                "abs",
                "relu",
                "maximum",
                "minimum",
                "amax",
                "amin",
                "index_select",
                "embedding",
                "gather",
            )
        ),
    }
)
"""Operations whose results are words of their operands, but for the sign."""


def rounded(call: Call, value: Value, type_: AtenType) -> Value:
    """The result of an operation, as its type needs it."""
    if type_.dtype != BFLOAT16 or _is_exact(call):
        return value
    if isinstance(value, Fill):
        return replace(value, word=int(apply(Op.RBF16, np.array(value.word, np.uint32))))
    return call.emitter.map(value.shape, value.dtype, [value], lambda b, regs: b.emit(Op.RBF16, *regs), BFLOAT16)


def _is_exact(call: Call) -> bool:
    operands = [call.types[reference].dtype for reference in references(call.node.arguments)]
    # Indices are integers; an operation without any operand makes its numbers itself.
    return call.node.operation in _EXACT and BFLOAT16 in operands and "float32" not in operands
