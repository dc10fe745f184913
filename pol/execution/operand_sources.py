"""The tensors that the operands of a node may read, and checks of what callers give an executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.graph.node import MAX_STEP, Operand, Source
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
