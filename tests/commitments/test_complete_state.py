"""Roots of arrays, of complete states and of programs, proofs of one chunk, and arrays that lie in several places."""

import dataclasses
import itertools

import numpy as np
import pytest
import sha3
from hypothesis import given
from hypothesis import strategies as st

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.commitments import merkle
from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.commitments.complete_state import (
    CompleteState,
    DocumentType,
    StateEntry,
    complete_root,
    compute_entries,
    prove_chunk,
)
from pol.commitments.distributed_array import ArrayPart, describe_part, root_of_parts
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment, header_hash, program_hash, program_header
from pol.commitments.tensor import tensor_root
from pol.errors import ProtocolError
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.rules

RANDOM = np.random.default_rng(5)


def array(element: ElementType, *shape: int) -> Array:
    type_ = ArrayType(element, shape)
    high = 2 if element is ElementType.BOOL else 256
    return Array(type_, RANDOM.integers(0, high, type_.nbytes, dtype=np.uint8))


@pytest.mark.parametrize("shape", [(), (1,), (64,), (65,), (3, 5, 7), (1000, 33)])
def test_a_float32_array_has_the_root_of_the_tensor(shape: tuple[int, ...]) -> None:
    found = array(ElementType.F32, *shape)
    assert array_root(found) == tensor_root(TensorType(DType.F32, shape), found.data.view(np.uint32).reshape(shape))


def test_an_array_without_bytes() -> None:
    expected = keccak256(b"\x02\x09\x02" + bytes(4) + (3).to_bytes(4, "big") + merkle.PAD)
    assert array_root(array(ElementType.U8, 0, 3)) == expected


def test_the_root_as_the_specification_says() -> None:
    arrays = {"b/x": array(ElementType.BF16, 7)}
    document = b'{"value":1}'
    leaf = keccak256(b"\x00" + document.ljust(256, b"\x00"))
    content = keccak256(b"\x0e" + len(document).to_bytes(8, "big") + leaf)
    first = keccak256(b"\x0d" + (1).to_bytes(2, "big") + b"b" + content)
    second = keccak256(b"\x0d" + (3).to_bytes(2, "big") + b"b/x" + array_root(arrays["b/x"]))
    expected = keccak256(b"\x0c" + (2).to_bytes(4, "big") + keccak256(b"\x01" + first + second))
    assert complete_root(compute_entries(arrays, {"b": document})) == expected


def test_every_chunk_has_a_proof_and_no_changed_one() -> None:
    arrays = {f"p/{i}": array(element, 5, 41) for i, element in enumerate(ElementType)}
    entries = compute_entries(arrays, {"p": b"{}"})
    root = complete_root(entries)
    for name, found in arrays.items():
        for index in range(found.type.leaves):
            proof = prove_chunk(entries, name, found.data, index)
            assert proof.root() == root
            leaf = bytes([proof.leaf[0] ^ 1]) + proof.leaf[1:]
            assert dataclasses.replace(proof, leaf=leaf).root() != root
            assert dataclasses.replace(proof, entry="p/other").root() != root
        with pytest.raises(ProtocolError, match="no leaf"):
            prove_chunk(entries, name, found.data, found.type.leaves)
    with pytest.raises(ProtocolError, match="wrong length"):
        dataclasses.replace(proof, state_branch=proof.state_branch[:-1]).root()


def test_any_two_numbers_name_a_leaf() -> None:
    """Documents of several leaves and arrays without bytes included."""
    long = b'{"value":"' + b"x" * 600 + b'"}'
    state = CompleteState({"a/x": array(ElementType.F32, 200), "a/empty": array(ElementType.F32, 0, 7)}, {"a": long})
    found = [state.prove(position, index) for position in range(3) for index in range(8)]
    assert {proof.root() for proof in found} == {state.root}
    assert b"".join(proof.leaf for proof in found[:3]).rstrip(b"\0") == long
    assert [proof.index for proof in found[:8]] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [(proof.entry, proof.leaf) for proof in found[8:16]] == [("a/empty", b"")] * 8
    assert state.prove(3 * 7 + 2, 5) == state.prove(2, 1)
    for wrong in (b"", b"x" * 256):
        proof = found[8] if wrong else found[0]
        with pytest.raises(ProtocolError, match="a leaf has 256 bytes"):
            dataclasses.replace(proof, leaf=wrong).root()
    other = dataclasses.replace(found[0], type=DocumentType(len(long) + 1))
    assert other.root() != state.root


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "x" * 1025])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ProtocolError):
        StateEntry(name, None, bytes(32))


def test_entries_out_of_order_or_twice() -> None:
    one, two = StateEntry("a", None, bytes(32)), StateEntry("b", None, bytes(32))
    for entries in ([two, one], [one, one], []):
        with pytest.raises(ProtocolError):
            complete_root(entries)


@pytest.mark.parametrize(
    ("shape", "count"), [((2,), 7), ((1 << 32,), 0), ((1,) * 33, 4), ((1 << 31, 1 << 31, 0), 0), ((-1,), 0)]
)
def test_types_and_sizes_that_are_refused(shape: tuple[int, ...], count: int) -> None:
    with pytest.raises(ProtocolError):
        Array(ArrayType(ElementType.F32, shape), np.zeros(count, np.uint8))


def test_a_boolean_is_zero_or_one() -> None:
    with pytest.raises(ProtocolError, match="boolean"):
        Array(ArrayType(ElementType.BOOL, (3,)), np.array([0, 1, 2], np.uint8))


def cut(data: np.ndarray, borders: list[int]) -> list[ArrayPart]:
    edges = [0, *sorted(borders), data.size]
    return [describe_part(a, data[a:b]) for a, b in itertools.pairwise(edges)]


@given(st.data())
def test_any_cut_gives_the_root_of_the_whole(source: st.DataObject) -> None:
    size = source.draw(st.integers(0, 20 * 256) | st.sampled_from([256, 512, 4096, 8192]))
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    near = st.builds(lambda leaf, by: leaf * 256 + by, st.integers(0, size // 256), st.integers(-3, 3))
    borders = source.draw(st.lists(st.integers(0, size) | near.filter(lambda b: 0 <= b <= size), max_size=12))
    type_ = ArrayType(ElementType.U8, (size,))
    parts = cut(data, borders)
    again = source.draw(st.lists(st.sampled_from(parts), max_size=3))  # replicas tell the same again
    shuffled = source.draw(st.permutations(parts + again))
    assert root_of_parts(type_, shuffled) == array_root(Array(type_, data))


def test_a_part_says_little() -> None:
    """A hundred thousand leaves in three parts: a subtree for each power of two on the way up and down."""
    data = np.zeros(25_600_001, np.uint8)
    parts = cut(data, [10_000_001, 20_000_003])
    assert max(len(part.nodes) for part in parts) <= 2 * 17
    assert all(len(part.head) + len(part.tail) < 512 for part in parts)
    type_ = ArrayType(ElementType.U8, (data.size,))
    assert root_of_parts(type_, parts) == array_root(Array(type_, data))


@pytest.mark.parametrize("kept", [[0], [1], [0, 2], []])
def test_a_gap_is_no_array(kept: list[int]) -> None:
    parts = cut(np.ones(1000, np.uint8), [300, 600])
    with pytest.raises(ProtocolError, match="parts of an array"):
        root_of_parts(ArrayType(ElementType.U8, (1000,)), [parts[i] for i in kept])


def test_parts_that_overlap_are_no_array() -> None:
    data = np.ones(1000, np.uint8)
    with pytest.raises(ProtocolError, match="overlap at byte 500"):
        root_of_parts(
            ArrayType(ElementType.U8, (1000,)), [describe_part(0, data[:600]), describe_part(500, data[500:])]
        )


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
