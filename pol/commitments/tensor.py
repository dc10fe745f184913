"""Roots of tensors and lists of tensors (docs/spec/commitments.md, "Tensor" and "State, trace, constants")."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments import _hashing, merkle
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.graph.tensor_type import TensorType


class ListTag(IntEnum):
    """Domain of a list of tensors."""

    STATE = 0x03
    TRACE = 0x07
    CONSTANTS = 0x08


TENSOR_TAG = b"\x02"


def tensor_leaves(words: Words) -> bytes:
    """The joined leaf hashes of a tensor: 32 bytes for every 64 words, the last leaf filled with zeros."""
    return _hashing.hash_leaves(_dense(words))


def tensor_tree(words: Words) -> bytes:
    """The tree over the leaf hashes of a tensor."""
    return _hashing.data_tree(_dense(words))


def root_over_tree(type_: TensorType, tree: bytes) -> bytes:
    """The tensor root that follows from a type and a tree."""
    return keccak256(TENSOR_TAG + type_.encode() + tree)


def tensor_root(type_: TensorType, words: Words) -> bytes:
    """The root of a tensor; ProtocolError if the array has another shape than the type."""
    if words.shape != type_.shape:
        raise ProtocolError(f"an array of shape {words.shape} was given for a tensor of shape {type_.shape}")
    return root_over_tree(type_, tensor_tree(words))


def list_root(tag: ListTag, roots: Sequence[bytes]) -> bytes:
    """The root of an ordered list of at least one tensor."""
    return list_root_over_tree(tag, len(roots), merkle.tree(roots))


def list_root_over_tree(tag: ListTag, count: int, tree: bytes) -> bytes:
    """The list root that follows from a count and a tree."""
    return keccak256(bytes([tag]) + count.to_bytes(4, "big") + tree)


def tensor_roots(types: Sequence[TensorType], tensors: Sequence[Words]) -> list[bytes]:
    """The roots of several tensors; ProtocolError if their number or a shape is wrong."""
    if len(types) != len(tensors):
        raise ProtocolError(f"{len(tensors)} tensors were given for {len(types)} types")
    return [tensor_root(type_, words) for type_, words in zip(types, tensors, strict=True)]


def state_root(types: Sequence[TensorType], tensors: Sequence[Words]) -> bytes:
    """The root of a state: the tensors of all slots in program order."""
    return list_root(ListTag.STATE, tensor_roots(types, tensors))


def constants_root(types: Sequence[TensorType], tensors: Sequence[Words]) -> bytes:
    """The root of the constant tensors of a task."""
    return list_root(ListTag.CONSTANTS, tensor_roots(types, tensors))


def _dense(words: Words) -> Words:
    if words.dtype != np.dtype("<u4") or words.size == 0:
        raise ProtocolError(f"a tensor is at least one little-endian uint32 word, not {words.size} of {words.dtype}")
    return np.ascontiguousarray(words)
