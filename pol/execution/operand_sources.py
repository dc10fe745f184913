"""The tensors that the operands of a node may read, and checks of what callers give an executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.graph.node import MAX_STEP, Affine, InputKind, Node, Operand, Source
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import TensorType


@dataclass(frozen=True)
class Sources:
    """State, constants and outputs of earlier nodes, as dense uint32 arrays of words with the tensors' shapes."""

    state: Sequence[Words]
    constants: Sequence[Words]
    nodes: Sequence[Words]


def source_words(operand: Operand, sources: Sources) -> Words:
    """The tensor that the operand reads, flat; ProtocolError if it is missing or of another shape."""
    tensors = {Source.STATE: sources.state, Source.CONSTANT: sources.constants, Source.NODE: sources.nodes}[
        operand.source
    ]
    if operand.index >= len(tensors):
        raise ProtocolError(f"{operand.source.name} {operand.index} is missing: {len(tensors)} tensors were given")
    tensor = tensors[operand.index]
    if tensor.dtype != np.uint32 or tensor.shape != operand.type.shape:
        raise ProtocolError(
            f"{operand.source.name} {operand.index} is {tensor.dtype} {tensor.shape}, "
            f"the operand needs words of shape {operand.type.shape}"
        )
    return tensor.reshape(-1)


def check_step(step: int) -> None:
    """ProtocolError unless the number of a step is a u32."""
    if not 0 <= step <= MAX_STEP:
        raise ProtocolError(f"step {step} is not in 0 .. 2^32-1")


def check_observed(program: StepProgram, observed: Sequence[int]) -> None:
    """ProtocolError unless the program has all of these nodes."""
    if not all(0 <= node < len(program.nodes) for node in observed):
        raise ProtocolError(f"observed nodes {list(observed)} are not all in 0 .. {len(program.nodes) - 1}")


def check_tensors(what: str, types: Sequence[TensorType], tensors: Sequence[Words]) -> None:
    """ProtocolError unless these are dense arrays of words of the given types."""
    if len(types) != len(tensors):
        raise ProtocolError(f"{len(tensors)} tensors were given for {len(types)} of kind {what}")
    for index, (type_, tensor) in enumerate(zip(types, tensors, strict=True)):
        if tensor.dtype != np.uint32 or tensor.shape != type_.shape or not tensor.flags.c_contiguous:
            raise ProtocolError(
                f"{what} {index} must be a dense uint32 array of shape {type_.shape}, got {tensor.dtype} {tensor.shape}"
            )


Indices = npt.NDArray[np.int64]

FILLED = -1
"""Address of a read that yields the fill word."""


@dataclass(frozen=True)
class Reading:
    """Addresses (FILLED where the fill word is read) and words of one operand, of equal shape."""

    addresses: Indices
    words: Words


def read_operands(node: Node, coordinates: Sequence[Indices], sources: Sources) -> list[Reading]:
    """Every operand of the node at coordinates (step, element..., fold...), arrays that broadcast together."""
    readings: list[Reading] = []
    for operand in node.operands:
        source = source_words(operand, sources)
        address = evaluate(operand.address, coordinates)
        valid = np.asarray(True)
        if operand.gather is not None:
            gather = operand.gather
            index = readings[gather.operand].words.view(np.int32).astype(np.int64)
            valid = (index >= 0) & (index < gather.limit)
            address = address + gather.stride * np.where(valid, index, 0)
        for bound in operand.bounds:
            position = evaluate(bound.affine, coordinates)
            valid = valid & (position >= 0) & (position < bound.limit)
        valid = valid & (address >= 0) & (address < source.size)
        address = np.where(valid, address, FILLED)
        # FILLED is a legal index of NumPy (the last word), so the lookup is safe before it is masked.
        words = np.where(valid, source[address], np.uint32(operand.fill))
        readings.append(Reading(address, words))
    return readings


def registers(
    node: Node, coordinates: Sequence[Indices], readings: Sequence[Reading], accumulator: Words
) -> list[Words]:
    """The input registers of the node's scalar program."""
    inputs: list[Words] = []
    for entry in node.inputs:
        if entry.kind is InputKind.ACCUMULATOR:
            inputs.append(accumulator)
        elif entry.kind is InputKind.OPERAND:
            inputs.append(readings[entry.index].words)
        else:
            inputs.append(np.asarray(coordinates[entry.index]).astype(np.uint32))
    return inputs


def evaluate(affine: Affine, coordinates: Sequence[Indices]) -> Indices:
    """The affine form on arrays of coordinates; node validation excludes overflow."""
    value = np.asarray(affine.base, np.int64)
    for stride, coordinate in zip(affine.strides, coordinates, strict=True):
        if stride:
            value = value + np.int64(stride) * coordinate
    return value
