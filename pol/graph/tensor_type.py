"""The type of a tensor: its word type and its shape (docs/spec/commitments.md, "Tensor")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from pol.errors import ProtocolError
from pol.graph.descriptor_encoding import Reader, u8, u32

MAX_RANK = 8
MAX_ELEMENTS = 2**31 - 1
LEAF_WORDS = 64


class DType(IntEnum):
    """The encoding of a tensor's words; booleans are I32 0/1."""

    F32 = 1
    I32 = 2


@dataclass(frozen=True)
class TensorType:
    """Word type and shape; at most rank 8, every dimension >= 1, fewer than 2^31 elements.

    Raises ProtocolError for anything else.
    """

    dtype: DType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, DType):
            raise ProtocolError(f"unknown dtype {self.dtype!r}: use DType.F32 or DType.I32")
        check_dimensions(self.shape, MAX_RANK)
        if self.numel > MAX_ELEMENTS:
            raise ProtocolError(f"a tensor of shape {self.shape} has 2^31 elements or more")

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def leaves(self) -> int:
        """Number of data leaves of 64 words each."""
        return -(-self.numel // LEAF_WORDS)

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides in words."""
        return row_major(self.shape)

    def encode(self) -> bytes:
        """`u8 dtype || u8 rank || u32 dims[rank]`; also the constant descriptor."""
        return u8(self.dtype) + encode_dimensions(self.shape)

    @classmethod
    def read(cls, reader: Reader) -> TensorType:
        """The type at the reader's position."""
        code = reader.u8()
        try:
            dtype = DType(code)
        except ValueError:
            raise ProtocolError(f"unknown dtype code {code}") from None
        return cls(dtype, read_dimensions(reader, MAX_RANK))

    @classmethod
    def decode(cls, data: bytes) -> TensorType:
        """The type that a constant descriptor holds; ProtocolError unless it is exactly one."""
        reader = Reader(data)
        result = cls.read(reader)
        reader.end()
        return result


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense tensor of this shape, in elements."""
    strides = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


def unravel(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Coordinates of a row-major index."""
    coordinates = []
    for size in reversed(shape):
        index, coordinate = divmod(index, size)
        coordinates.append(coordinate)
    return tuple(reversed(coordinates))


def check_dimensions(shape: tuple[int, ...], limit: int) -> None:
    """ProtocolError unless `shape` is a tuple of at most `limit` positive u32 numbers."""
    if not isinstance(shape, tuple):
        raise ProtocolError(f"a shape is a tuple, not {shape!r}")
    if len(shape) > limit:
        raise ProtocolError(f"shape {shape} has more than {limit} dimensions")
    if not all(type(size) is int and 1 <= size < 2**32 for size in shape):
        raise ProtocolError(f"shape {shape} has a dimension that is not in 1 .. 2^32-1")


def encode_dimensions(shape: tuple[int, ...]) -> bytes:
    """`u8 rank || u32 dims[rank]`."""
    return u8(len(shape)) + b"".join(map(u32, shape))


def read_dimensions(reader: Reader, limit: int) -> tuple[int, ...]:
    """The dimensions at the reader's position; ProtocolError if there are more than `limit`."""
    rank = reader.u8()
    if rank > limit:
        raise ProtocolError(f"rank {rank} is above {limit}")
    return tuple(reader.u32() for _ in range(rank))
