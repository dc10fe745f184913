"""How far from the integer rule a proof of EZKL's can be: it takes floor or ceiling of every rounding.

docs/spec/zk.md, "What a proof of EZKL's says". The bound is of a step on given inputs, by intervals: no estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pol.errors import ProtocolError
from pol.zk.fixed_point import ALIGNED, Integers, integers
from pol.zk.network import Kind, Network, Node, exact_scale

Interval = tuple[Integers, Integers]
"""The least and the greatest integer of every element."""


def reach(network: Network, inputs: Sequence[Integers]) -> Interval:
    """Between which integers a proof can have each element of the vector after the step.

    Raises ProtocolError if it could have divided by zero.
    """
    values: list[Interval] = [(value, value) for value in inputs]
    for number in range(len(inputs), len(network.nodes)):
        node = network.nodes[number]
        scales = [network.scales[operand] for operand in node.operands]
        exact = exact_scale(node, network.scale, scales)
        operands = [values[operand] for operand in node.operands]
        if node.kind in ALIGNED:
            shifts = [exact - scale for scale in scales]
            operands = [(low << s, high << s) for (low, high), s in zip(operands, shifts, strict=True)]
        low, high = _apply(node, operands, network.scale)
        bits = exact - network.scales[number]
        values.append((low >> bits, -(-high >> bits)) if bits else (low, high))
    return values[-1]


def bound(network: Network, inputs: Sequence[Integers], after: Integers) -> int:
    """By how many units at most an element can differ from ``after``, the vector by the integer rule."""
    low, high = reach(network, inputs)
    return int(max((after - low).max(), (high - after).max()))


def is_within(network: Network, inputs: Sequence[Integers], claimed: Integers) -> bool:
    """Whether a claimed vector is one that a proof of this step could have: what a verdict resting on a proof asks."""
    low, high = reach(network, inputs)
    return bool(((low <= claimed) & (claimed <= high)).all())


def _apply(node: Node, operands: Sequence[Interval], scale: int) -> Interval:
    match node.kind:
        case Kind.CONSTANT:
            value = integers(node.values, node.shape)
            return value, value
        case Kind.ADD:
            (a, b), (c, d) = operands
            return np.asarray(a + c), np.asarray(b + d)
        case Kind.SUB:
            (a, b), (c, d) = operands
            return np.asarray(a - d), np.asarray(b - c)
        case Kind.MUL:
            return _products(*operands)
        case Kind.GATE:
            return _gated(*operands)
        case Kind.MATMUL:
            (a, b), (c, d) = operands
            rows, columns = (a[:, :, None], b[:, :, None]), (c[None, :, :], d[None, :, :])
            low, high = _products(rows, columns)
            return np.asarray(low.sum(axis=1)), np.asarray(high.sum(axis=1))
        case Kind.RECIPROCAL:
            low, high = operands[0]
            if (low <= 0).any():
                raise ProtocolError("the proof could have divided by zero")
            return _each(lambda x: (1 << 2 * scale) // x, high), _each(lambda x: -(-(1 << 2 * scale) // x), low)
        case Kind.SQRT:
            low, high = operands[0]
            return _each(lambda x: math.isqrt(max(x, 0) << scale), low), _each(
                lambda x: math.isqrt(x << scale) + 1, high
            )
        case _:
            return _moved(node, [low for low, _ in operands]), _moved(node, [high for _, high in operands])


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


def _moved(node: Node, operands: Sequence[Integers]) -> Integers:
    match node.kind:
        case Kind.SUM:
            return np.asarray(operands[0].sum(axis=node.axis, keepdims=True))
        case Kind.RESHAPE:
            return operands[0].reshape(node.shape)
        case Kind.TRANSPOSE:
            return operands[0].T
        case Kind.SLICE:
            return operands[0][..., node.begin : node.begin + node.shape[-1]]
        case Kind.CONCAT:
            return np.concatenate(list(operands), axis=-1)
        case _:
            return operands[0]


def _each(apply: Any, array: Integers) -> Integers:
    return integers([apply(int(x)) for x in array.ravel()], array.shape)
