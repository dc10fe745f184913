"""bfloat16: a tensor of it is binary32 words that are bfloat16 numbers, so what computes one rounds at its end.

An operation computes in binary32, a matrix product in its defined order, whatever its operands are; then each element
is rounded once. Operations that only move words need no rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Op, apply
from pol.arithmetic.registers import rounded_to_bfloat16
from pol.graph.aten_graph import AtenType, references
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import RULES
from pol.graph.lowering.values import Fill, Value

BFLOAT16 = "bfloat16"


def rounded(call: Call, value: Value, type_: AtenType) -> Value:
    """The result of an operation, as its type needs it."""
    if type_.dtype != BFLOAT16 or _is_exact(call):
        return value
    if isinstance(value, Fill):
        return replace(value, word=int(apply(Op.RBF16, np.array(value.word, np.uint32))))
    return call.emitter.map(value.shape, value.dtype, [value], rounded_to_bfloat16, BFLOAT16)


def _is_exact(call: Call) -> bool:
    operands = [call.types[reference].dtype for reference in references(call.node.arguments)]
    # Indices are integers; an operation without any operand makes its numbers itself.
    return RULES[call.node.operation].is_exact and BFLOAT16 in operands and "float32" not in operands
