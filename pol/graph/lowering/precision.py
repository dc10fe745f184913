"""Types narrower than a word: what computes one rounds or wraps at its end.

A tensor of bfloat16 is binary32 words that are bfloat16 numbers. An operation computes in binary32, a matrix product in
its defined order, whatever its operands are; then each element is rounded once. Integers of 8 and 16 bits are words in
their range; sums and products modulo 2^32 wrap into it. Operations that only move words need neither.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pol.arithmetic.primitives import Op, apply
from pol.arithmetic.registers import rounded_to_bfloat16
from pol.graph.aten_graph import NARROW, AtenType, references
from pol.graph.lowering.call import Call
from pol.graph.lowering.rule_table import RULES
from pol.graph.lowering.values import Fill, Value

BFLOAT16 = "bfloat16"
_SIGNS = frozenset({"aten.neg.default", "aten.abs.default"})
"""Operations that only change signs: the least integer has no negative."""


def rounded(call: Call, value: Value, type_: AtenType) -> Value:
    """The result of an operation, as its type needs it."""
    if type_.dtype in NARROW:
        return _wrapped(call, value, type_.dtype)
    if type_.dtype != BFLOAT16 or _is_exact(call):
        return value
    if isinstance(value, Fill):
        return replace(value, word=int(apply(Op.RBF16, np.array(value.word, np.uint32))))
    return call.emitter.map(value.shape, value.dtype, [value], rounded_to_bfloat16, BFLOAT16)


def _wrapped(call: Call, value: Value, dtype: str) -> Value:
    """The integers modulo the count of numbers that the type has."""
    least, greatest = NARROW[dtype]
    if isinstance(value, Fill):
        return replace(value, word=((value.word - least) % (greatest - least + 1) + least) % 2**32)
    operands = {call.types[reference].dtype for reference in references(call.node.arguments)}
    if RULES[call.node.operation].is_exact and operands <= {dtype, "bool"} and call.node.operation not in _SIGNS:
        return value
    return call.emitter.map(
        value.shape, value.dtype, [value], lambda x: ((x - least) & (greatest - least)) + least, dtype
    )


def _is_exact(call: Call) -> bool:
    operands = [call.types[reference].dtype for reference in references(call.node.arguments)]
    # Indices are integers; an operation without any operand makes its numbers itself.
    return RULES[call.node.operation].is_exact and BFLOAT16 in operands and "float32" not in operands
