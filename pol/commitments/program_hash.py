"""The hash of a step program and branches to its descriptors (docs/spec/commitments.md, "Step program")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pol.commitments import merkle
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.graph.step_program import StepProgram

VERSION = 1
HEADER_SIZE = 112
NODE_TAG = b"\x04"
SLOT_TAG = b"\x05"
PROGRAM_TAG = b"\x06"
CONSTANT_TAG = b"\x09"


@dataclass(frozen=True)
class ProgramCommitment:
    """The three trees under a program's header. Build it once per program: it hashes every descriptor."""

    nodes: tuple[bytes, ...]
    slots: tuple[bytes, ...]
    constants: tuple[bytes, ...]

    @classmethod
    def of(cls, program: StepProgram) -> ProgramCommitment:
        """The commitment of a validated program."""
        return cls(
            _hashes(NODE_TAG, (node.encode() for node in program.nodes)),
            _hashes(SLOT_TAG, (slot.encode() for slot in program.slots)),
            _hashes(CONSTANT_TAG, (type_.encode() for type_ in program.constants)),
        )

    @cached_property
    def header(self) -> bytes:
        """The 112 bytes that are hashed into the program hash."""
        counts = (VERSION, len(self.nodes), len(self.slots), len(self.constants))
        trees = (merkle.tree(self.nodes), merkle.tree(self.slots), merkle.tree(self.constants))
        return b"".join(count.to_bytes(4, "big") for count in counts) + b"".join(trees)

    @cached_property
    def hash(self) -> bytes:
        """The program hash."""
        return header_hash(self.header)

    def node_branch(self, node: int) -> list[bytes]:
        """The branch of a node's descriptor hash under the header's nodesTree."""
        return merkle.branch_from_levels(self._node_levels, node)

    def slot_branch(self, slot: int) -> list[bytes]:
        """The branch of a slot's descriptor hash under the header's slotsTree."""
        return merkle.branch_from_levels(self._slot_levels, slot)

    @cached_property
    def _node_levels(self) -> list[bytes]:
        return merkle.levels(self.nodes)

    @cached_property
    def _slot_levels(self) -> list[bytes]:
        return merkle.levels(self.slots)


def header_hash(header: bytes) -> bytes:
    """The program hash that follows from a header; ProtocolError if it has not 112 bytes."""
    if len(header) != HEADER_SIZE:
        raise ProtocolError(f"a program header has {HEADER_SIZE} bytes, not {len(header)}")
    return keccak256(PROGRAM_TAG + header)


def program_header(program: StepProgram) -> bytes:
    """The header of a validated program."""
    return ProgramCommitment.of(program).header


def program_hash(program: StepProgram) -> bytes:
    """The hash of a validated program."""
    return ProgramCommitment.of(program).hash


def _hashes(tag: bytes, descriptors: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(keccak256(tag + descriptor) for descriptor in descriptors)
