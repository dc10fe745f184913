"""Random numbers: draws that stand for torch's random operations.

A draw reads Philox4x32-10 at the counter (element, step, ordinal, 0): docs/spec/randomness.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pol.graph.lowering.call import Call
from pol.graph.lowering.philox_nodes import SHAPINGS, draw
from pol.graph.lowering.rule_table import lowers
from pol.graph.lowering.values import Fill, Value, integer_word, reshape
from pol.graph.tensor_type import DType


def _drawn(call: Call, name: str, parameters: Sequence[float]) -> Value:
    """The draw whose distribution has this name."""
    shape = call.integers(3, "shape")
    ordinal = Fill(integer_word(call.integer(2, "ordinal")), DType.I32, ())
    step, seed, shaping = call.tensor(0), call.tensor(1), SHAPINGS[name](*parameters)
    result = reshape(draw(call.emitter, math.prod(shape), call.dtype, step, seed, ordinal, shaping), shape)
    if result is None:
        raise AssertionError("a stored tensor can have any shape")
    return result


@lowers("pol.uniform.default", defines="24 bits of a Philox word u; FFMA(u, high - low, low)")
def _uniform(call: Call) -> Value:
    return _drawn(call, "uniform", [call.number(4, "low"), call.number(5, "high")])


@lowers("pol.normal.default", defines="the function `normal` of a Philox word z; FFMA(z, std, mean)")
def _normal(call: Call) -> Value:
    return _drawn(call, "normal", [call.number(4, "mean"), call.number(5, "std")])


@lowers("pol.bernoulli.default", defines="1 where a Philox word is below p * 2^32")
def _bernoulli(call: Call) -> Value:
    return _drawn(call, "bernoulli", [call.number(4, "p")])


@lowers("pol.integers.default", defines="low + MULHI(a Philox word, high - low)")
def _integers(call: Call) -> Value:
    return _drawn(call, "integers", [call.integer(4, "low"), call.integer(5, "high")])
