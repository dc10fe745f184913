"""How far an EZKL proof can be from the integer rule: EZKL rounds every number down or up.

docs/spec/zk.md, "What a proof of EZKL's says". The bound is proved by interval arithmetic for a step on given inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pol.errors import ProtocolError
from pol.zk.fixed_point import Integers, integers, rearranged
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork

Interval = tuple[Integers, Integers]
"""The least and the greatest integer of every element."""


def reach(network: StepNetwork, inputs: Sequence[Integers]) -> Interval:
    """The least and the greatest integer that a proof can have for each element of the vector after the step.

    Raises ProtocolError if it could have divided by zero.
    """
    values: list[Interval] = [(value, value) for value in inputs]
    for number in range(len(inputs), len(network.nodes)):
        node = network.nodes[number]
        left, right = network.shifts(number)
        operands = [(values[o][0] << bits, values[o][1] << bits) for o, bits in zip(node.operands, left, strict=True)]
        low, high = _apply(node, operands, network.scale)
        values.append((low >> right, -(-high >> right)) if right else (low, high))
    return values[-1]


def bound(network: StepNetwork, inputs: Sequence[Integers], after: Integers) -> int:
    """By how many units at most an element can differ from ``after``, the vector by the integer rule."""
    low, high = reach(network, inputs)
    return int(max((after - low).max(), (high - after).max()))


def is_within(network: StepNetwork, inputs: Sequence[Integers], claimed: Integers) -> bool:
    """Whether a proof of this step could have a claimed vector."""
    low, high = reach(network, inputs)
    return bool(((low <= claimed) & (claimed <= high)).all())


def _apply(node: NetworkNode, operands: Sequence[Interval], scale: int) -> Interval:
    match node.kind:
        case NetworkOp.CONSTANT:
            value = integers(node.values, node.shape)
            return value, value
        case NetworkOp.ADD:
            (a, b), (c, d) = operands
            return np.asarray(a + c), np.asarray(b + d)
        case NetworkOp.SUB:
            (a, b), (c, d) = operands
            return np.asarray(a - d), np.asarray(b - c)
        case NetworkOp.MUL:
            return _products(*operands)
        case NetworkOp.GATE:
            return _gated(*operands)
        case NetworkOp.MATMUL:
            (a, b), (c, d) = operands
            rows, columns = (a[:, :, None], b[:, :, None]), (c[None, :, :], d[None, :, :])
            low, high = _products(rows, columns)
            return np.asarray(low.sum(axis=1)), np.asarray(high.sum(axis=1))
        case NetworkOp.RECIPROCAL:
            low, high = operands[0]
            if (low <= 0).any():
                raise ProtocolError("the proof could have divided by zero")
            return _each(lambda x: (1 << 2 * scale) // x, high), _each(lambda x: -(-(1 << 2 * scale) // x), low)
        case NetworkOp.SQRT:
            low, high = operands[0]
            return _each(lambda x: math.isqrt(max(x, 0) << scale), low), _each(
                lambda x: math.isqrt(x << scale) + 1, high
            )
        case NetworkOp.SUM:
            low, high = operands[0]
            return low.sum(axis=node.axis, keepdims=True), high.sum(axis=node.axis, keepdims=True)
        case _:
            return rearranged(node, [low for low, _ in operands]), rearranged(node, [high for _, high in operands])


def _products(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    return np.asarray(low), np.asarray(high)


def _gated(kept: Interval, by: Interval) -> Interval:
    (low, high), (least, most) = kept, by
    shut = np.where(most <= 0, 0, np.minimum(low, 0))
    return np.where(least > 0, low, shut), np.where(least > 0, high, np.where(most <= 0, 0, np.maximum(high, 0)))


def _each(apply: Any, array: Integers) -> Integers:
    return integers([apply(int(x)) for x in array.ravel()], array.shape)
