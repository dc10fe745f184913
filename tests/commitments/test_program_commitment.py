"""The program hash and its branches against a plain reading of docs/spec/commitments.md."""

import pytest
import sha3

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.commitments import merkle
from pol.commitments.program_hash import (
    ProgramCommitment,
    header_hash,
    program_hash,
    program_header,
)
from pol.errors import ProtocolError
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType


def keccak(data: bytes) -> bytes:
    return bytes(sha3.keccak_256(data).digest())


def program() -> StepProgram:
    type_ = TensorType(DType.F32, (4,))
    body = ScalarProgram(1, (0x3F000000,), (Instruction(Op.FMUL, 0, 1),))
    inputs = (Input(InputKind.OPERAND, 0),)
    halves = [Node(type_, (Operand(Source.STATE, i, type_, Affine(0, (0, 1))),), inputs, body) for i in range(2)]
    mixed = Node(type_, (Operand(Source.CONSTANT, 0, type_, Affine(3, (0, -1))),), inputs, body)
    slots = (Slot(Component.PARAMETER, type_, 0), Slot(Component.OPTIMIZER, type_, 2))
    result = StepProgram(slots, (type_,), (halves[0], halves[1], mixed))
    result.validate()
    return result


def test_header_and_hash() -> None:
    steps = program()
    nodes = [keccak(b"\x04" + node.encode()) for node in steps.nodes]
    pair = keccak(b"\x01" + nodes[0] + nodes[1])
    padded = keccak(b"\x01" + nodes[2] + keccak(b"pol/pad/1"))
    slots = [keccak(b"\x05" + slot.encode()) for slot in steps.slots]
    header = bytes.fromhex("00000001000000030000000200000001")
    header += keccak(b"\x01" + pair + padded) + keccak(b"\x01" + slots[0] + slots[1])
    header += keccak(b"\x09" + steps.constants[0].encode())
    assert program_header(steps) == header
    assert len(header) == 112
    assert program_hash(steps) == header_hash(header) == keccak(b"\x06" + header)


def test_branches_lead_to_the_header() -> None:
    steps = program()
    commitment = ProgramCommitment.of(steps)
    nodes_tree, slots_tree = commitment.header[16:48], commitment.header[48:80]
    for i, node in enumerate(steps.nodes):
        branch = commitment.node_branch(i)
        assert merkle.climb(keccak(b"\x04" + node.encode()), i, branch) == nodes_tree
    for q, slot in enumerate(steps.slots):
        branch = commitment.slot_branch(q)
        assert merkle.climb(keccak(b"\x05" + slot.encode()), q, branch) == slots_tree
    with pytest.raises(ProtocolError):
        commitment.node_branch(4)
    with pytest.raises(ProtocolError):
        header_hash(commitment.header[:-1])


def test_every_part_of_a_program_is_covered() -> None:
    steps = program()
    swapped = StepProgram(steps.slots, steps.constants, (steps.nodes[1], steps.nodes[0], steps.nodes[2]))
    component = Slot(Component.BUFFER, steps.slots[0].type, 0)
    relabelled = StepProgram((component, steps.slots[1]), steps.constants, steps.nodes)
    more = StepProgram(steps.slots, (*steps.constants, TensorType(DType.I32, ())), steps.nodes)
    assert len({program_hash(p) for p in (steps, swapped, relabelled, more)}) == 4
