"""Operand reads of a node at given coordinates (docs/spec/program.md, "Meaning of a node"), vectorized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import Words
from pol.execution.operand_sources import Sources, source_words
from pol.graph.node import Affine, InputKind, Node

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
