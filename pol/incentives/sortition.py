"""Draws of tickets for duties: mirror of `contracts/incentives/Sortition.sol` and `Ranks.sol`.

Rules: docs/spec/incentives.md, "Weights and draws". Seeds and task ids have 32 bytes, accounts 20.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pol.incentives.abi import abi_hash

RANKS = 1 << 256


class DrawnDuty(StrEnum):
    """The duty that tickets are drawn for."""

    SEAT = "seat"
    WATCH = "watch"


@dataclass(frozen=True)
class TicketDraw:
    """One draw: its round was fixed at the second ``since``, and then gave ``seed``."""

    duty: DrawnDuty
    task_id: bytes
    seating: int
    since: int
    seed: bytes

    @property
    def purpose(self) -> bytes:
        """The purpose of the draw, which its ranks hash: 32 bytes."""
        return abi_hash(str(self.duty), self.task_id, self.seating)

    def rank(self, account: bytes, ticket: int) -> int:
        """Rank of one ticket, below 2^256."""
        return int.from_bytes(abi_hash(self.seed, self.purpose, account, ticket), "big")


def watch_limit(total: int, watchers: int) -> int:
    """Tickets ranked below this watch: ``watchers`` of ``total`` on average; all if there are no more."""
    return RANKS if total <= watchers else RANKS // total * watchers
