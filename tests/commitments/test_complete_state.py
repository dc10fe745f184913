"""Roots of arrays and complete states, and proofs of one chunk."""

import dataclasses

import numpy as np
import pytest

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
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import tensor_root
from pol.errors import ProtocolError
from pol.graph.tensor_type import DType, TensorType

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
