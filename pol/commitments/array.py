"""Arrays of any element type and their roots (docs/spec/complete_state.md, "Arrays").

A task's tensors are words (`pol.graph.tensor_type`); a trainer's own tensors are anything that torch or NumPy holds.
Both have the same root where both can hold a value: float32 and int32 tensors of at least one element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pol.commitments import _hashing, merkle
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import TENSOR_TAG
from pol.errors import ProtocolError

Bytes: TypeAlias = npt.NDArray[np.uint8]
"""The bytes of an array, one-dimensional: little-endian elements in row-major order."""

MAX_RANK = 32
MAX_BYTES = 1 << 40
LEAF_SIZE = 256


class ElementType(IntEnum):
    """The type of an element; the number stands in the root, the name in documents and files."""

    F32 = 1
    I32 = 2
    F64 = 3
    BF16 = 4
    F16 = 5
    I64 = 6
    I16 = 7
    I8 = 8
    U8 = 9
    BOOL = 10
    U16 = 11
    U32 = 12
    U64 = 13
    C64 = 14
    F8_E4M3 = 15
    F8_E5M2 = 16
    F8_E8M0 = 17

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]

    @classmethod
    def of_name(cls, name: str) -> ElementType:
        """The type of this name; ProtocolError if there is none."""
        try:
            return cls[name]
        except KeyError:
            known = ", ".join(t.name for t in cls)
            raise ProtocolError(f"unknown element type {name!r}: expected one of {known}") from None


_SIZES = {
    **dict.fromkeys((ElementType.F64, ElementType.I64, ElementType.U64, ElementType.C64), 8),
    **dict.fromkeys((ElementType.F32, ElementType.I32, ElementType.U32), 4),
    **dict.fromkeys((ElementType.BF16, ElementType.F16, ElementType.I16, ElementType.U16), 2),
    **dict.fromkeys((ElementType.I8, ElementType.U8, ElementType.BOOL), 1),
    **dict.fromkeys((ElementType.F8_E4M3, ElementType.F8_E5M2, ElementType.F8_E8M0), 1),
}


@dataclass(frozen=True)
class ArrayType:
    """Element type and shape; any dimension may be 0.

    Raises ProtocolError for more than 32 dimensions, a dimension of 2^32 or more, or more than 2^40 bytes.
    """

    element: ElementType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) > MAX_RANK:
            raise ProtocolError(f"an array has more than {MAX_RANK} dimensions: {len(self.shape)}")
        if not all(type(size) is int and 0 <= size < 1 << 32 for size in self.shape):
            raise ProtocolError(f"shape {self.shape} has a dimension that is not in 0 .. 2^32-1")
        # Zeros must not hide sizes that overflow: the product of the others is bounded too.
        if math.prod(size for size in self.shape if size) * self.element.size > MAX_BYTES:
            raise ProtocolError(f"an array of shape {self.shape} has more than 2^40 bytes")

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.element.size

    @property
    def leaves(self) -> int:
        """Number of 256-byte leaves; 0 for an empty array."""
        return -(-self.nbytes // LEAF_SIZE)

    def encode(self) -> bytes:
        """`u8 element type || u8 rank || u32 dims[rank]`."""
        return bytes([self.element, len(self.shape)]) + b"".join(size.to_bytes(4, "big") for size in self.shape)


@dataclass(frozen=True)
class Array:
    """An array as bytes. Nothing is copied: the bytes must not change while they are used.

    ``tree`` is the tree over its leaves, if it's known; whoever gives it vouches for it.

    Raises ProtocolError if the number of bytes isn't that of the type, or a boolean is neither 0 nor 1.
    """

    type: ArrayType
    data: Bytes
    tree: bytes | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        data = self.data
        if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
            raise ProtocolError(f"the bytes of an array are a dense vector of uint8, not {data.dtype} {data.shape}")
        if data.size != self.type.nbytes:
            raise ProtocolError(
                f"an array of type {self.type.element.name} {self.type.shape} has {self.type.nbytes} bytes, "
                f"{data.size} were given"
            )
        require_elements(self.type.element, data)


def require_elements(element: ElementType, data: Bytes) -> None:
    """ProtocolError if a boolean among these bytes of an array is neither 0 nor 1."""
    if element is ElementType.BOOL and data.size and int(data.max()) > 1:
        raise ProtocolError("a boolean is the byte 0 or 1")


def array_root(array: Array, threads: int = 0) -> bytes:
    """The root of an array; all cores if ``threads`` is 0."""
    return root_over_tree(array.type, array.tree or array_tree(array.data, threads))


def array_tree(data: Bytes, threads: int = 0) -> bytes:
    """The tree over the leaves of an array; the padding leaf if it has no bytes."""
    return _hashing.data_tree(data, threads) if data.size else merkle.PAD


def root_over_tree(type_: ArrayType, tree: bytes) -> bytes:
    """The root that follows from a type and a tree."""
    return keccak256(TENSOR_TAG + type_.encode() + tree)
