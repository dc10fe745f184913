"""An upper bound of the gas of a move, from its calldata.

The coefficients bound what the contracts take on an EVM by the rules of Osaka; `tests/dispute/test_dispute_needs.py`
plays disputes on one, and says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping

from pol.dispute.encoding.move_sizes import MoveSize

TRANSACTION = 21_000
CALLDATA = 16
"""A byte that isn't zero."""
FLOOR = 40
"""Least for a byte of calldata that isn't zero (EIP-7623)."""
BYTE = 12
"""To copy, hash and log a byte of calldata, and to hash the padding of a tree."""
TERM = 820
"""To execute a fused multiply-add of a chunk, or to add a squared difference."""
EXECUTION: Mapping[str, int] = {
    "Answer": 20_000,
    "Describe": 22_000,
    "OpenState": 20_000,
    "Show": 24_000,
    "Unfold": 19_000,
    "OpenBody": 20_000,
    "DescribeSlot": 24_000,
    "ProveStep": 45_000,
    "ProveSlot": 45_000,
    "ProveSum": 26_000,
}
"""Whatever a move's calldata: two words of storage, the rules, one instruction, the market's call at the end."""
BLOCK_GAS = 1 << 24
"""The most gas of a transaction (EIP-7825)."""


def gas_of(move: MoveSize) -> int:
    """The most gas of a transaction with this move."""
    executed = EXECUTION[move.move] + BYTE * move.calldata + (TERM * move.terms if move.terms > 1 else 0)
    return TRANSACTION + max(CALLDATA * move.calldata + executed, FLOOR * move.calldata)
