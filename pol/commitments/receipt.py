"""Receipts of execution: the outputs of drawn nodes of one step (docs/spec/commitments.md)."""

from __future__ import annotations

from collections.abc import Sequence

from pol.commitments.keccak import keccak256

RECEIPT_TAG = b"\x0f"
RECEIPT_NODES = 4
"""Nodes that a receipt names."""


def receipt_seed(seed: bytes, segment: int) -> bytes:
    """The seed of a segment's receipt, from that of the beacon's draw."""
    return keccak256(seed + segment.to_bytes(4, "big"))


def receipt_nodes(seed: bytes, nodes: int) -> list[int]:
    """The nodes that a segment's seed draws of ``nodes``; one may come twice."""
    drawn = (keccak256(seed + place.to_bytes(1, "big")) for place in range(RECEIPT_NODES))
    return [int.from_bytes(value, "big") % nodes for value in drawn]


def receipt_of(roots: Sequence[bytes]) -> bytes:
    """The receipt of the roots of the drawn outputs, in the order of the draw."""
    return keccak256(RECEIPT_TAG + b"".join(roots))
