"""One optimizer step as slots, constants and nodes, and its file (docs/spec/program.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.errors import ProtocolError
from pol.graph.descriptor_encoding import Reader, u8, u32
from pol.graph.node import Affine, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

MAGIC = b"polstep2"
MAX_SCALE = 23
MAX_LIST = 2**31
"""The most slots, constants or nodes: trees of the court have at most 31 levels (contracts/dispute/Descriptor.sol)."""
MAX_STEPS = 2**32 - 1
"""The most steps of a training: addresses count the step in 32 bits (docs/spec/program.md, "Limits")."""


class Component(IntEnum):
    """Which part of the state a slot belongs to; verdicts weigh the parts separately."""

    PARAMETER = 1
    BUFFER = 2
    OPTIMIZER = 3


@dataclass(frozen=True)
class Slot:
    """A tensor of the state; `producer` is the node whose output is its next value.

    `scale` is for numbers that are small by nature (averages of squares): distances see them times 2^scale.
    """

    component: Component
    type: TensorType
    producer: int
    scale: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.component, Component):
            raise ProtocolError(f"unknown component {self.component!r}")
        if not 0 <= self.producer < 2**32:
            raise ProtocolError(f"producer {self.producer} is not a u32")
        if not 0 <= self.scale <= MAX_SCALE:
            raise ProtocolError(f"scale {self.scale} is not in 0 .. {MAX_SCALE}")

    def encode(self) -> bytes:
        """The slot descriptor."""
        return u8(self.component) + self.type.encode() + u32(self.producer) + u8(self.scale)

    @classmethod
    def decode(cls, data: bytes) -> Slot:
        """The slot that a descriptor holds; ProtocolError unless the bytes are exactly one descriptor."""
        reader = Reader(data)
        code = reader.u8()
        if code not in {int(component) for component in Component}:
            raise ProtocolError(f"unknown component code {code}")
        type_ = TensorType.read(reader)
        producer, scale = reader.u32(), reader.u8()
        reader.end()
        return cls(Component(code), type_, producer, scale)


RANGE_BITS = 23
"""Numbers that change and are 2^23 or more, less the scale of their slot, have no distance."""
_MOVE = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))


@dataclass(frozen=True)
class StepProgram:
    """Forward, backward and update as a static graph in topological order; at least one slot, constant and node."""

    slots: tuple[Slot, ...]
    constants: tuple[TensorType, ...]
    nodes: tuple[Node, ...]

    def validate(self) -> None:
        """ProtocolError unless indices are topological, types agree with sources and every slot has a producer."""
        for what, items in (("slot", self.slots), ("constant", self.constants), ("node", self.nodes)):
            if not 1 <= len(items) <= MAX_LIST:
                raise ProtocolError(
                    f"a step program has at least one {what} and at most {MAX_LIST}; this one has {len(items)}"
                )
        available: dict[Source, list[TensorType]] = {
            Source.STATE: [slot.type for slot in self.slots],
            Source.CONSTANT: list(self.constants),
            Source.NODE: [],
        }
        for position, node in enumerate(self.nodes):
            for number, operand in enumerate(node.operands):
                _check_operand(f"node {position}, operand {number}", operand, available[operand.source])
            available[Source.NODE].append(node.type)
        for position, slot in enumerate(self.slots):
            if slot.producer >= len(self.nodes):
                raise ProtocolError(f"slot {position}: there is no node {slot.producer}")
            produced = self.nodes[slot.producer].type
            if produced != slot.type:
                raise ProtocolError(f"slot {position} is {slot.type}, its producer {slot.producer} gives {produced}")

    def keeps(self, position: int) -> bool:
        """Whether no step changes a slot: a mask, a table."""
        slot = self.slots[position]
        node = self.nodes[slot.producer]
        address = Affine(0, (0, *slot.type.strides))
        moved = (Operand(Source.STATE, position, slot.type, address),)
        return (node.operands, node.body, node.fold) == (moved, _MOVE, ())

    def has_distances(self, position: int, words: Words) -> bool:
        """Whether all words of a slot have a distance from what may follow (docs/spec/verdict.md, "Distance")."""
        slot = self.slots[position]
        if slot.type.dtype is not DType.F32:
            return True
        numbers = words.view(np.float32)
        if self.keeps(position):
            return not np.isnan(numbers).any()
        return bool((np.abs(numbers) < 2.0 ** (RANGE_BITS - slot.scale)).all())

    def to_bytes(self) -> bytes:
        """The content of `program.bin`."""
        descriptors = [slot.encode() for slot in self.slots]
        descriptors += [type_.encode() for type_ in self.constants]
        descriptors += [node.encode() for node in self.nodes]
        head = MAGIC + u32(len(self.slots)) + u32(len(self.constants)) + u32(len(self.nodes))
        return head + b"".join(u32(len(descriptor)) + descriptor for descriptor in descriptors)

    @classmethod
    def from_bytes(cls, data: bytes) -> StepProgram:
        """The validated program in a file; ProtocolError for anything that `to_bytes` would not write."""
        reader = Reader(data)
        if reader.take(len(MAGIC)) != MAGIC:
            raise ProtocolError(f"not a step program: the file does not begin with {MAGIC.decode()}")
        slots, constants, nodes = reader.u32(), reader.u32(), reader.u32()
        program = cls(
            tuple(Slot.decode(_piece(reader)) for _ in range(slots)),
            tuple(TensorType.decode(_piece(reader)) for _ in range(constants)),
            tuple(Node.decode(_piece(reader)) for _ in range(nodes)),
        )
        reader.end()
        program.validate()
        return program


def _piece(reader: Reader) -> bytes:
    return reader.take(reader.u32())


def _check_operand(where: str, operand: Operand, types: list[TensorType]) -> None:
    if operand.index >= len(types):
        raise ProtocolError(f"{where}: {operand.source.name} {operand.index} is not available here")
    actual = types[operand.index]
    if actual != operand.type:
        raise ProtocolError(f"{where} says {operand.type}, but {operand.source.name} {operand.index} is {actual}")
