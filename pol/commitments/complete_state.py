"""The root of the complete state: everything that a training needs to continue (docs/spec/complete_state.md, "Root").

A complete state is a list of entries with names: arrays, and documents for what isn't a tensor. The root is a tree over
the entries in the order of their names, so that one entry, or one chunk of one array, can be shown to stand in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pol.commitments import _hashing, merkle
from pol.commitments.array import LEAF_SIZE, Array, ArrayType, Bytes, array_root, array_tree, root_over_tree
from pol.commitments.keccak import HASH_SIZE, keccak256
from pol.errors import ProtocolError

STATE_TAG = b"\x0c"
ENTRY_TAG = b"\x0d"
DOCUMENT_TAG = b"\x0e"
MAX_NAME = 1 << 10
MAX_ENTRIES = 1 << 24


@dataclass(frozen=True)
class StateEntry:
    """A name and the root of what stands under it: an array of a type, or a document if there is no type.

    Raises ProtocolError for an empty name, one of more than 1,024 bytes, or one with control characters.
    """

    name: str
    type: ArrayType | None
    content: bytes

    def __post_init__(self) -> None:
        encode_name(self.name)
        if len(self.content) != HASH_SIZE:
            raise ProtocolError(f"the root of entry {self.name} has {len(self.content)} bytes, not 32")

    @property
    def hash(self) -> bytes:
        """The leaf of the state's tree."""
        name = encode_name(self.name)
        return keccak256(ENTRY_TAG + len(name).to_bytes(2, "big") + name + self.content)


@dataclass(frozen=True)
class DocumentType:
    """The type of a document, which its root covers: its number of bytes."""

    nbytes: int

    @property
    def leaves(self) -> int:
        """Number of 256-byte leaves."""
        return -(-self.nbytes // LEAF_SIZE)


@dataclass(frozen=True)
class CompleteState:
    """The arrays and documents of a state under their names. Arrays may share memory with live tensors."""

    arrays: Mapping[str, Array]
    documents: Mapping[str, bytes]
    threads: int = field(default=0, compare=False)

    @cached_property
    def entries(self) -> list[StateEntry]:
        """All entries in order; the arrays are hashed at the first use."""
        return compute_entries(self.arrays, self.documents, self.threads)

    @cached_property
    def root(self) -> bytes:
        """The complete root."""
        return complete_root(self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.type.nbytes for array in self.arrays.values())

    def prove(self, position: int, index: int) -> ChunkProof:
        """The proof of one leaf of the entry at a position; both count on from 0 when they are past the end.

        So every pair of numbers names a leaf, and nobody needs to know the content of the state. An array without
        bytes has the leaf 0, which is empty.
        """
        return prove_at(self.entries, self.documents, self.arrays, position, index)


@dataclass(frozen=True)
class ChunkProof:
    """One leaf of one entry of a complete state, and the branches that lead to the root.

    ``leaf`` has 256 bytes, zeros past the end of the array or document; if there are no bytes, it is empty.
    """

    entry: str
    type: ArrayType | DocumentType
    index: int
    leaf: bytes
    array_branch: tuple[bytes, ...]
    position: int
    count: int
    state_branch: tuple[bytes, ...]

    def root(self) -> bytes:
        """The root of the complete state that follows; the caller compares it."""
        leaves = self.type.leaves
        if len(self.leaf) != (LEAF_SIZE if leaves else 0):
            raise ProtocolError(f"a leaf has {LEAF_SIZE} bytes, not {len(self.leaf)}; none if {self.entry} has none")
        if not 0 <= self.index < max(leaves, 1):
            raise ProtocolError(f"{self.entry} has {leaves} leaves: there is no leaf {self.index}")
        if not 0 <= self.position < self.count or self.count > MAX_ENTRIES:
            raise ProtocolError(f"a state of {self.count} entries has no entry {self.position}")
        if len(self.array_branch) != merkle.depth(max(leaves, 1)):
            raise ProtocolError(f"the branch of a leaf of {self.entry} has the wrong length")
        if len(self.state_branch) != merkle.depth(self.count):
            raise ProtocolError(f"the branch of entry {self.entry} has the wrong length")
        leaf = merkle.leaf_hash(self.leaf) if leaves else merkle.PAD
        content = root_of_content(self.type, merkle.climb(leaf, self.index, self.array_branch))
        entry = StateEntry(self.entry, self.type if isinstance(self.type, ArrayType) else None, content)
        return root_over_entries(self.count, merkle.climb(entry.hash, self.position, self.state_branch))


def encode_name(name: str) -> bytes:
    """The bytes of an entry's name. Raises ProtocolError: empty, too long, not printable, or not UTF-8."""
    try:
        data = name.encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(f"the name {name!r} isn't valid Unicode: rename the tensor") from error
    if not 1 <= len(data) <= MAX_NAME:
        raise ProtocolError(f"the name {name[:40]!r} has {len(data)} bytes, expected 1 to {MAX_NAME}: rename it")
    if not name.isprintable():
        raise ProtocolError(f"the name {name!r} holds a character that can't be printed: rename it")
    return data


def document_root(document: bytes) -> bytes:
    """The root of a document, over the leaves of its canonical JSON bytes."""
    return root_of_content(DocumentType(len(document)), array_tree(_bytes_of(document)))


def root_of_content(type_: ArrayType | DocumentType, tree: bytes) -> bytes:
    """The root of an array or document that follows from what it is and the tree over its leaves."""
    if isinstance(type_, ArrayType):
        return root_over_tree(type_, tree)
    return keccak256(DOCUMENT_TAG + type_.nbytes.to_bytes(8, "big") + tree)


def compute_entries(arrays: Mapping[str, Array], documents: Mapping[str, bytes], threads: int = 0) -> list[StateEntry]:
    """The entries of a complete state in order; all cores if ``threads`` is 0."""
    if twice := arrays.keys() & documents.keys():
        raise ProtocolError(f"{sorted(twice)[0]!r} names an array and a document: rename one of the two")
    entries = [StateEntry(name, array.type, array_root(array, threads)) for name, array in arrays.items()]
    entries += [StateEntry(name, None, document_root(data)) for name, data in documents.items()]
    return sorted(entries, key=lambda entry: entry.name.encode())


def complete_root(entries: Sequence[StateEntry]) -> bytes:
    """The root over entries. Raises ProtocolError: no entries, too many, or names that repeat or aren't in order."""
    require_order(entries)
    return root_over_entries(len(entries), merkle.tree([entry.hash for entry in entries]))


def root_over_entries(count: int, tree: bytes) -> bytes:
    """The root that follows from a number of entries and the tree over them."""
    return keccak256(STATE_TAG + count.to_bytes(4, "big") + tree)


def require_order(entries: Sequence[StateEntry]) -> None:
    """ProtocolError unless there are 1 to 2^24 entries whose names increase as bytes."""
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise ProtocolError(f"a complete state has 1 to 2^24 entries, not {len(entries)}")
    names = [entry.name.encode() for entry in entries]
    for before, after in itertools.pairwise(names):
        if before >= after:
            raise ProtocolError(f"entry {after.decode()!r} comes after {before.decode()!r}: names increase")


def prove_chunk(entries: Sequence[StateEntry], name: str, data: Bytes, index: int) -> ChunkProof:
    """The proof of one leaf of the array or document ``name``, whose bytes are ``data``."""
    position = next((i for i, entry in enumerate(entries) if entry.name == name), None)
    if position is None:
        raise ProtocolError(f"the state has no entry {name!r}")
    type_ = entries[position].type or DocumentType(data.size)
    if not 0 <= index < max(type_.leaves, 1) or data.size != type_.nbytes:
        raise ProtocolError(f"{name} has {type_.leaves} leaves: there is no leaf {index}")
    leaf = data[index * LEAF_SIZE : (index + 1) * LEAF_SIZE].tobytes()
    return ChunkProof(
        entry=name,
        type=type_,
        index=index,
        leaf=leaf.ljust(LEAF_SIZE, b"\0") if type_.leaves else b"",
        array_branch=tuple(merkle.branch(_hashing.hash_leaves(data), index)) if type_.leaves else (),
        position=position,
        count=len(entries),
        state_branch=tuple(merkle.branch([entry.hash for entry in entries], position)),
    )


def prove_at(
    entries: Sequence[StateEntry],
    documents: Mapping[str, bytes],
    arrays: Mapping[str, Array],
    position: int,
    index: int,
) -> ChunkProof:
    """As `CompleteState.prove`, of a state whose entries are known; one array is looked up."""
    entry = entries[position % len(entries)]
    data = _bytes_of(documents[entry.name]) if entry.type is None else arrays[entry.name].data
    leaves = -(-data.size // LEAF_SIZE)
    return prove_chunk(entries, entry.name, data, index % leaves if leaves else 0)


def _bytes_of(document: bytes) -> Bytes:
    return np.frombuffer(document, np.uint8)
