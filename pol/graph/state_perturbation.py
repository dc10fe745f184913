"""Perturbs the state by about its last bits where it enters a sum, to measure the effect of other kernels.

Reordering moves a sum by its own rounding. Other kernels move it further, and then a branch that depends on its sign (a
ReLU) may flip. A relative error of each factor is a relative error of every term: like rounding, it doesn't shrink
where terms cancel. The next state itself isn't perturbed: the update of an optimizer is no fold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from pol.arithmetic import philox
from pol.arithmetic.registers import Float, Word, fma, program_of, to_float
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType, TensorType

DOMAIN = b"pol/perturb/1"
BITS = 16
"""Numbers move by up to 2^-16 of themselves, as Winograd's transforms move a convolution (docs/adr/0021)."""
_WORD_BITS = 31


def perturb(program: StepProgram, seed: int) -> StepProgram:
    """A valid program with the same slots and constants whose folds read moved f32 state; `seed` is below 2^256.

    Everything but folds reads the state as it is. Draws are those of Philox at (element, step, slot, 0): equal seeds
    give equal bytes.
    """
    drawn = hashlib.sha256(DOMAIN + seed.to_bytes(32, "big")).digest()
    key = int.from_bytes(drawn[:4], "big"), int.from_bytes(drawn[4:8], "big")
    nodes: list[Node] = []
    copies: dict[int, int] = {}
    for slot in sorted(_summed(program)):
        nodes.append(_words(program.slots[slot].type, slot, key))
        nodes.append(_moved(program.slots[slot].type, slot, len(nodes) - 1))
        copies[slot] = len(nodes) - 1
    before = len(nodes)
    for node in program.nodes:
        sources = copies if node.fold else {}
        operands = tuple(_redirected(operand, before, sources) for operand in node.operands)
        nodes.append(replace(node, operands=operands))
    slots = tuple(replace(slot, producer=slot.producer + before) for slot in program.slots)
    result = StepProgram(slots, program.constants, tuple(nodes))
    result.validate()
    return result


def _summed(program: StepProgram) -> set[int]:
    """The f32 slots that folds read."""
    return {
        operand.index
        for node in program.nodes
        for operand in node.operands
        if node.fold and operand.source is Source.STATE and operand.type.dtype is DType.F32
    }


def _redirected(operand: Operand, before: int, copies: Mapping[int, int]) -> Operand:
    if operand.source is Source.NODE:
        return replace(operand, index=operand.index + before)
    if operand.source is Source.STATE and operand.index in copies:
        return replace(operand, source=Source.NODE, index=copies[operand.index])
    return operand


def _words(type_: TensorType, slot: int, key: tuple[int, int]) -> Node:
    """A drawn word for each element, in one row."""

    def word(step: Word, element: Word) -> Word:
        return philox.philox(element, step, *(step.pattern(bits) for bits in (slot, *key)))

    inputs = (Input(InputKind.COORDINATE, 0), Input(InputKind.COORDINATE, 1))
    return Node(TensorType(DType.I32, (type_.numel,)), (), inputs, program_of(word, Word, Word))


def _moved(type_: TensorType, slot: int, words: int) -> Node:
    """x + x * u * 2^-BITS with one rounding, u in [-1, 1] from the word."""

    def moved(x: Float, word: Word) -> Float:
        return fma(x, to_float(word) * 2.0 ** -(_WORD_BITS + BITS), x)

    # A dimension of size 1 has one coordinate, 0; its stride says nothing, and zero is the canonical nothing.
    strides = (0 if size == 1 else stride for size, stride in zip(type_.shape, type_.strides, strict=True))
    address = Affine(0, (0, *strides))
    operands = (
        Operand(Source.STATE, slot, type_, address),
        Operand(Source.NODE, words, TensorType(DType.I32, (type_.numel,)), address),
    )
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
    return Node(type_, operands, inputs, program_of(moved, Float, Word))
