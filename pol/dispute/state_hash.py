"""The state hash of a dispute: the one word by which the chain remembers where it stands.

docs/spec/dispute.md#position calls it the *head*. Every move repeats the position and so reproduces the hash: a move
names the content that it answers, whatever a reorganization of the chain puts in its place.
"""

from __future__ import annotations

from pol.commitments.keccak import keccak256
from pol.dispute.position import Position


def packed_position(position: Position) -> bytes:
    """The 52 bytes that every move repeats: `frame || u32 count || u64 lo || u64 hi`."""
    return position.facts.frame + _numbers(position)


def state_hash(position: Position, on_turn: bytes) -> bytes:
    """The hash that the chain stores; ``on_turn`` is the 20-byte address of the side on turn."""
    level_and_height = bytes((position.level, position.height))
    return keccak256(position.facts.frame + position.opening + on_turn + level_and_height + _numbers(position))


def _numbers(position: Position) -> bytes:
    return position.count.to_bytes(4, "big") + position.lo.to_bytes(8, "big") + position.hi.to_bytes(8, "big")
