"""A node of the step program and its descriptor (docs/spec/program.md, "Node descriptor")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from pol.arithmetic.scalar_program import ScalarProgram
from pol.errors import ProtocolError
from pol.format_versions import other_version
from pol.graph.descriptor_encoding import Reader, i64, i64s, u8, u32
from pol.graph.tensor_type import TensorType, check_dimensions, encode_dimensions, read_dimensions

VERSION = 1
MAX_FOLD_RANK = 4
MAX_TERMS = 2**32 - 1
MAX_OPERANDS = 16
MAX_BOUNDS = 4
MAX_STEP = 2**32 - 1
MAX_INDEX = 2**31 - 1
I64_MAX = 2**63 - 1

_E = TypeVar("_E", bound=IntEnum)


class Source(IntEnum):
    """The kind of tensor that an operand reads."""

    STATE = 1
    CONSTANT = 2
    NODE = 3


class InputKind(IntEnum):
    """The value in an input register of a node's scalar program."""

    ACCUMULATOR = 1
    OPERAND = 2
    COORDINATE = 3


@dataclass(frozen=True)
class Affine:
    """`base + sum stride_i * coord_i` over the coordinates (step, element..., fold...)."""

    base: int
    strides: tuple[int, ...]

    def at(self, coordinates: Sequence[int]) -> int:
        """The value at one point; coordinates in the order (step, element..., fold...)."""
        if len(coordinates) != len(self.strides):
            raise ProtocolError(f"{len(coordinates)} coordinates for {len(self.strides)} strides")
        return self.base + sum(stride * x for stride, x in zip(self.strides, coordinates, strict=True))

    def encode(self) -> bytes:
        """`i64 base || i64 strides[...]`."""
        return i64(self.base) + i64s(self.strides)

    @classmethod
    def read(cls, reader: Reader, coordinates: int) -> Affine:
        """The affine form over this many coordinates at the reader's position."""
        return cls(reader.i64(), tuple(reader.i64() for _ in range(coordinates)))


@dataclass(frozen=True)
class Bound:
    """A read yields the fill word unless `0 <= affine(coord) < limit`."""

    affine: Affine
    limit: int


@dataclass(frozen=True)
class Gather:
    """An address moved by data: `stride * v`, v the i32 word of an earlier operand; fill unless `0 <= v < limit`."""

    operand: int
    stride: int
    limit: int


@dataclass(frozen=True)
class Operand:
    """A read of one word: which tensor, of which type, at which address (docs/spec/program.md, "Meaning of a node")."""

    source: Source
    index: int
    type: TensorType
    address: Affine
    fill: int = 0
    bounds: tuple[Bound, ...] = ()
    gather: Gather | None = None

    def encode(self) -> bytes:
        """The operand's part of the node descriptor."""
        parts = [u8(self.source), u32(self.index), self.type.encode(), u32(self.fill), self.address.encode()]
        parts.append(u8(len(self.bounds)))
        parts += [bound.affine.encode() + i64(bound.limit) for bound in self.bounds]
        if self.gather is None:
            parts.append(u8(0))
        else:
            parts.append(u8(1) + u8(self.gather.operand) + i64(self.gather.stride) + i64(self.gather.limit))
        return b"".join(parts)

    @classmethod
    def read(cls, reader: Reader, coordinates: int) -> Operand:
        """The operand at the reader's position, its affine forms over this many coordinates."""
        source = _member(Source, reader.u8())
        index = reader.u32()
        type_ = TensorType.read(reader)
        fill = reader.u32()
        address = Affine.read(reader, coordinates)
        bounds = tuple(
            Bound(Affine.read(reader, coordinates), reader.i64()) for _ in range(_count(reader, MAX_BOUNDS, "bounds"))
        )
        gather = Gather(reader.u8(), reader.i64(), reader.i64()) if _count(reader, 1, "gathers") else None
        return cls(source, index, type_, address, fill, bounds, gather)


@dataclass(frozen=True)
class Input:
    """One input register: the accumulator (index 0), an operand, or a coordinate."""

    kind: InputKind
    index: int = 0


@dataclass(frozen=True)
class Node:
    """One tensor, defined element by element: a map (no fold shape) or a fold over `fold` in row-major order.

    Raises ProtocolError when a rule of docs/spec/program.md is broken that concerns this node alone.
    """

    type: TensorType
    operands: tuple[Operand, ...]
    inputs: tuple[Input, ...]
    body: ScalarProgram
    fold: tuple[int, ...] = ()
    init: int = 0

    def __post_init__(self) -> None:
        check_dimensions(self.fold, MAX_FOLD_RANK)
        if self.terms > MAX_TERMS:
            raise ProtocolError(f"a fold over {self.fold} has 2^32 terms or more")
        if not 0 <= self.init < 2**32:
            raise ProtocolError(f"init {self.init} is not a word")
        if not self.fold and self.init:
            raise ProtocolError("a map has init 0")
        if len(self.operands) > MAX_OPERANDS:
            raise ProtocolError(f"{len(self.operands)} operands: at most {MAX_OPERANDS} are possible")
        for position, operand in enumerate(self.operands):
            self._check_operand(position, operand)
        if len(self.inputs) != self.body.inputs:
            raise ProtocolError(f"{len(self.inputs)} inputs for a scalar program of {self.body.inputs}")
        for entry in self.inputs:
            self._check_input(entry)

    @property
    def terms(self) -> int:
        """K: how often the scalar program runs for one element."""
        return math.prod(self.fold)

    @property
    def extents(self) -> tuple[int, ...]:
        """The number of values of each coordinate (step, element..., fold...)."""
        return (MAX_STEP + 1, *self.type.shape, *self.fold)

    def encode(self) -> bytes:
        """The node descriptor."""
        parts = [u8(VERSION), self.type.encode(), encode_dimensions(self.fold), u32(self.init)]
        parts.append(u8(len(self.operands)))
        parts += [operand.encode() for operand in self.operands]
        parts.append(u8(len(self.inputs)))
        parts += [u8(entry.kind) + u8(entry.index) for entry in self.inputs]
        parts.append(self.body.encode())
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Node:
        """The node that a descriptor holds; ProtocolError unless the bytes are exactly one descriptor."""
        reader = Reader(data)
        version = reader.u8()
        if version != VERSION:
            raise ProtocolError(other_version("the node descriptor", version, VERSION))
        type_ = TensorType.read(reader)
        fold = read_dimensions(reader, MAX_FOLD_RANK)
        init = reader.u32()
        coordinates = 1 + len(type_.shape) + len(fold)
        operands = tuple(Operand.read(reader, coordinates) for _ in range(_count(reader, MAX_OPERANDS, "operands")))
        inputs = tuple(Input(_member(InputKind, reader.u8()), reader.u8()) for _ in range(reader.u8()))
        return cls(type_, operands, inputs, ScalarProgram.decode(reader.rest()), fold, init)

    def _check_operand(self, position: int, operand: Operand) -> None:
        where = f"operand {position}"
        if not isinstance(operand.source, Source):
            raise ProtocolError(f"{where}: unknown source {operand.source!r}")
        if not 0 <= operand.index < 2**32:
            raise ProtocolError(f"{where}: index {operand.index} is not a u32")
        if not 0 <= operand.fill < 2**32:
            raise ProtocolError(f"{where}: fill {operand.fill} is not a word")
        if len(operand.bounds) > MAX_BOUNDS:
            raise ProtocolError(f"{where}: {len(operand.bounds)} bounds: at most {MAX_BOUNDS} are possible")
        reach = 0
        if operand.gather is not None:
            gather = operand.gather
            if not 0 <= gather.operand < position or self.operands[gather.operand].gather is not None:
                raise ProtocolError(f"{where} gathers through operand {gather.operand}: an earlier plain one is needed")
            i64(gather.stride), i64(gather.limit)
            reach = abs(gather.stride) * min(max(gather.limit - 1, 0), MAX_INDEX)
        self._check_affine(where, operand.address, reach)
        for bound in operand.bounds:
            self._check_affine(f"{where}, bound", bound.affine, 0)
            i64(bound.limit)

    def _check_affine(self, where: str, affine: Affine, reach: int) -> None:
        extents = self.extents
        if len(affine.strides) != len(extents):
            raise ProtocolError(f"{where}: {len(affine.strides)} strides for {len(extents)} coordinates")
        i64s((affine.base, *affine.strides))
        reach += abs(affine.base)
        reach += sum(abs(stride) * (size - 1) for stride, size in zip(affine.strides, extents, strict=True))
        if reach > I64_MAX:
            raise ProtocolError(f"{where}: the address can leave the range of i64")

    def _check_input(self, entry: Input) -> None:
        limits = {
            InputKind.ACCUMULATOR: 1 if self.fold else 0,
            InputKind.OPERAND: len(self.operands),
            InputKind.COORDINATE: len(self.extents),
        }
        if entry.kind not in limits or not isinstance(entry.kind, InputKind):
            raise ProtocolError(f"unknown input kind {entry.kind!r}")
        if not 0 <= entry.index < limits[entry.kind]:
            raise ProtocolError(f"input {entry.kind.name} {entry.index}: this node has {limits[entry.kind]} of these")


def _member(enum: type[_E], code: int) -> _E:
    try:
        return enum(code)
    except ValueError:
        raise ProtocolError(f"unknown {enum.__name__} code {code}") from None


def _count(reader: Reader, limit: int, what: str) -> int:
    count = reader.u8()
    if count > limit:
        raise ProtocolError(f"{count} {what}: at most {limit} are possible")
    return count
