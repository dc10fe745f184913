"""The integer rule: the exact result of every operation of a network (docs/spec/zk.md, "The integer rule")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork
from pol.zk.poseidon import WORD_BITS

Integers = npt.NDArray[np.object_]
"""Python integers of any size, in an array."""
_GREATEST = 2.0 ** (WORD_BITS - 1)
_MINUS_ZERO = np.uint32(1 << 31)


def quantize(values: npt.ArrayLike, scale: int) -> Integers:
    """Nearest multiples of 2**-scale, as integers; ties go away from zero.

    Raises ProtocolError for a number that isn't finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ProtocolError("a number that isn't finite has no fixed-point form")
    flat = [round_fraction(Fraction(float(x)) * 2**scale) for x in array.ravel()]
    return integers(flat, array.shape)


def dequantize(values: Integers, scale: int) -> npt.NDArray[np.float64]:
    """The numbers that integers stand for; exact below 2**53."""
    return np.asarray(values, dtype=np.float64) * 2.0**-scale


def is_fixed_point(words: Words, scale: int) -> bool:
    """Whether words of float32 are integers of 24 bits over 2**scale, each in its one form: 0 has no sign."""
    with np.errstate(invalid="ignore"):
        numbers = words.view(np.float32).astype(np.float64) * 2.0**scale
    return bool(((np.abs(numbers) < _GREATEST) & (np.trunc(numbers) == numbers) & (words != _MINUS_ZERO)).all())


def integers(values: Sequence[int], shape: tuple[int, ...]) -> Integers:
    """An array of Python integers."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def round_fraction(value: Fraction) -> int:
    """Nearest integer, ties away from zero."""
    magnitude = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return magnitude if value >= 0 else -magnitude


def rescale(exact: Integers, bits: int) -> Integers:
    """Integers over 2**bits, to the nearest, ties away from zero."""
    if bits == 0:
        return exact
    magnitude = (np.abs(exact) + (1 << (bits - 1))) >> bits
    return np.asarray(np.where(exact < 0, -magnitude, magnitude), dtype=object)


def reciprocal(value: int, scale: int) -> int:
    """2**(2 * scale) over a positive value, rounded. Raises ProtocolError for zero or less."""
    if value <= 0:
        raise ProtocolError(
            "the step divides by zero or by a negative number: it has no proof; lower the learning rate"
        )
    return round_fraction(Fraction(1 << (2 * scale), value))


def square_root(value: int, scale: int) -> int:
    """Root of value * 2**scale, rounded to nearest. Raises ProtocolError for a negative value."""
    if value < 0:
        raise ProtocolError("the step takes the root of a negative number: it has no proof")
    # No root lies half-way between two integers: the square of such a number is no integer.
    return (math.isqrt(4 * (value << scale)) + 1) // 2


def evaluate(network: StepNetwork, inputs: Sequence[Integers]) -> list[Integers]:
    """Every node of the network by the integer rule, its inputs included.

    Raises ProtocolError if an input has another shape, or a division or root isn't defined.
    """
    given = network.nodes[: len(network.inputs)]
    if len(inputs) != len(given):
        raise ProtocolError(f"the network has the inputs {', '.join(network.inputs)}; {len(inputs)} were given")
    for name, node, value in zip(network.inputs, given, inputs, strict=True):
        if value.shape != node.shape:
            raise ProtocolError(f"input {name} has shape {value.shape}, the network wants {node.shape}")
    values: list[Integers] = list(inputs)
    for number in range(len(inputs), len(network.nodes)):
        node = network.nodes[number]
        left, right = network.shifts(number)
        operands = [values[operand] << bits for operand, bits in zip(node.operands, left, strict=True)]
        values.append(rescale(_apply(node, operands, network.scale), right))
    return values


def integer_step(network: StepNetwork, inputs: Sequence[Integers]) -> Integers:
    """The vector after the step, by the integer rule."""
    return evaluate(network, inputs)[-1]


def _apply(node: NetworkNode, operands: list[Integers], scale: int) -> Integers:
    match node.kind:
        case NetworkOp.CONSTANT:
            return integers(node.values, node.shape)
        case NetworkOp.ADD:
            return np.asarray(operands[0] + operands[1])
        case NetworkOp.SUB:
            return np.asarray(operands[0] - operands[1])
        case NetworkOp.MUL:
            return np.asarray(operands[0] * operands[1])
        case NetworkOp.GATE:
            return np.asarray(operands[0] * (operands[1] > 0).astype(object))
        case NetworkOp.MATMUL:
            return np.asarray(operands[0] @ operands[1])
        case NetworkOp.SUM:
            return np.asarray(operands[0].sum(axis=node.axis, keepdims=True))
        case NetworkOp.RECIPROCAL:
            return integers([reciprocal(x, scale) for x in operands[0].ravel()], node.shape)
        case NetworkOp.SQRT:
            return integers([square_root(x, scale) for x in operands[0].ravel()], node.shape)
        case NetworkOp.INPUT:
            raise ProtocolError("an input has no operands")
        case _:
            return rearranged(node, operands)


def rearranged(node: NetworkNode, operands: Sequence[Integers]) -> Integers:
    """The result of an operation that only moves elements, of any type.

    Raises AssertionError for one that computes.
    """
    match node.kind:
        case NetworkOp.SHIFT:
            return operands[0]
        case NetworkOp.RESHAPE:
            return operands[0].reshape(node.shape)
        case NetworkOp.TRANSPOSE:
            return operands[0].T
        case NetworkOp.SLICE:
            return operands[0][..., node.begin : node.begin + node.shape[-1]]
        case NetworkOp.CONCAT:
            return np.concatenate(list(operands), axis=-1)
        case _:
            raise AssertionError(f"{node.kind} computes")
