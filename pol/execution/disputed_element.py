"""One element of one node in the detail of a dispute: accumulators, instruction results, reads with addresses.

The definition, in NumPy. Parties use `pol.execution.cpu.CpuElement`, which is tested against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pol.arithmetic.interpreter import values
from pol.arithmetic.primitives import Words, apply
from pol.errors import ProtocolError
from pol.execution.operand_sources import FILLED, Indices, Sources, read_operands, registers
from pol.graph.node import InputKind, Node
from pol.graph.tensor_type import unravel


@dataclass(frozen=True)
class OperandRead:
    """One read of an operand: an address in its source (None for the fill word), and the word."""

    operand: int
    address: int | None
    word: int


def accumulators(node: Node, step: int, element: int, sources: Sources) -> Words:
    """The accumulator before each term and after the last: K + 1 words, the first is `init`, the last the element.

    A map gives two words, 0 and the element. Sources are read for all terms at once; only what depends on the
    accumulator runs term by term.
    """
    terms = node.terms
    fold: list[Indices] = list(np.unravel_index(np.arange(terms), node.fold)) if node.fold else []
    coordinates = _coordinates(node, step, element, fold)
    readings = read_operands(node, coordinates, sources)
    blank = np.zeros(terms, np.uint32)
    file = [np.array(np.broadcast_to(words, (terms,))) for words in registers(node, coordinates, readings, blank)]
    follows = [entry.kind is InputKind.ACCUMULATOR for entry in node.inputs]
    for word in node.body.constants:
        file.append(np.full(terms, word, np.uint32))
        follows.append(False)
    sequential = []
    for instruction in node.body.instructions:
        follows.append(any(follows[register] for register in instruction.operands))
        if follows[-1]:
            sequential.append((len(file), instruction))
            file.append(np.zeros(terms, np.uint32))
        else:
            file.append(apply(instruction.op, *(file[register] for register in instruction.operands)))
    inputs = [index for index, entry in enumerate(node.inputs) if entry.kind is InputKind.ACCUMULATOR]
    result = np.empty(terms + 1, np.uint32)
    result[0] = node.init
    for term in range(terms):
        here = slice(term, term + 1)
        for register in inputs:
            file[register][term] = result[term]
        for register, instruction in sequential:
            file[register][here] = apply(instruction.op, *(file[operand][here] for operand in instruction.operands))
        result[term + 1] = file[-1][term]
    return result


def body_values(node: Node, step: int, element: int, term: int, accumulator: int, sources: Sources) -> list[int]:
    """The result of every instruction at one term, given the accumulator before it."""
    coordinates = _point(node, step, element, term)
    readings = read_operands(node, coordinates, sources)
    inputs = registers(node, coordinates, readings, np.asarray(accumulator, np.uint32))
    return [int(value) for value in values(node.body, inputs)]


def reads(node: Node, step: int, element: int, term: int, sources: Sources) -> list[OperandRead]:
    """The reads of all operands at one term, in operand order."""
    readings = read_operands(node, _point(node, step, element, term), sources)
    result = []
    for number, reading in enumerate(readings):
        address = int(reading.addresses)
        result.append(OperandRead(number, None if address == FILLED else address, int(reading.words)))
    return result


def _point(node: Node, step: int, element: int, term: int) -> list[Indices]:
    if not 0 <= term < node.terms:
        raise ProtocolError(f"term {term} of a node with {node.terms} terms")
    return _coordinates(node, step, element, [np.asarray(k, np.int64) for k in unravel(term, node.fold)])


def _coordinates(node: Node, step: int, element: int, fold: list[Indices]) -> list[Indices]:
    if not 0 <= element < node.type.numel:
        raise ProtocolError(f"element {element} of a node with {node.type.numel} elements")
    position = [np.asarray(x, np.int64) for x in unravel(element, node.type.shape)]
    return [np.asarray(step, np.int64), *position, *fold]
