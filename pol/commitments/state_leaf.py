"""One leaf of a state and its branches up to the state root (docs/spec/market.md, "Data on demand")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.commitments import merkle
from pol.commitments.array import LEAF_SIZE
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import tensor_leaves, tensor_roots
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import LEAF_WORDS


@dataclass(frozen=True)
class StatePiece:
    """The content of one place of a state: padding past the end of a list. Fields that aren't needed are empty."""

    header: bytes
    slot: bytes
    slot_branch: tuple[bytes, ...]
    leaf: bytes
    branch: tuple[bytes, ...]
    tensor_branch: tuple[bytes, ...]


def prove(program: StepProgram, state: Sequence[Words], position: int, leaf: int) -> StatePiece:
    """The piece of a state at slot ``position``, leaf ``leaf``; both count on from 0 past the width of their trees."""
    commitment = ProgramCommitment.of(program)
    types = [slot.type for slot in program.slots]
    roots = tensor_roots(types, state)
    slot = position % (1 << merkle.depth(len(roots)))
    way = tuple(merkle.branch(roots, slot))
    if slot >= len(roots):
        return StatePiece(commitment.header, b"", (), b"", (), way)
    place = leaf % (1 << merkle.depth(types[slot].leaves))
    data = b""
    if place < types[slot].leaves:
        data = state[slot].reshape(-1)[place * LEAF_WORDS : (place + 1) * LEAF_WORDS].tobytes().ljust(LEAF_SIZE, b"\0")
    return StatePiece(
        commitment.header,
        program.slots[slot].encode(),
        tuple(commitment.slot_branch(slot)),
        data,
        tuple(merkle.branch(tensor_leaves(state[slot]), place)),
        way,
    )
