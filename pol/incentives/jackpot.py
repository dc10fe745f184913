"""Watch rewards, and the tax that pays for them: mirror of `contracts/incentives/Jackpot.sol`.

Rules: docs/spec/incentives.md, "The jackpot". Amounts are integers in the smallest unit of the asset.
"""

from __future__ import annotations

from dataclasses import dataclass

from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash
from pol.incentives.forced_errors import ONE, check_rate


@dataclass(frozen=True)
class JackpotRules:
    """The jackpot's rules, fixed by a deployment. Raises ProtocolError: the numbers are out of bounds."""

    watchers: int
    """Average number of tickets that watch a seating."""
    shares: int
    """Most watch rewards of a task."""
    rate: int
    """Rate of forced errors, times 2^32."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if not 1 <= self.watchers <= self.shares // 2 < 1 << 31:
            raise ProtocolError(f"{self.watchers} watchers need at least {2 * self.watchers} shares, not {self.shares}")

    def share(self, reserved: int) -> int:
        """One watch reward from the jackpot reserved for a task, independent of other rewards."""
        if not self.shares <= reserved < 1 << 128:
            raise ProtocolError(f"a reserve of {reserved} has no shares: name at least {self.shares}, below 2^128")
        return reserved // self.shares

    def paid(self, reserved: int, catches: int) -> int:
        """All watch rewards of a task together."""
        return self.share(reserved) * min(catches, self.shares)

    def tax(self, reserved: int) -> int:
        """Tax of a task with a verdict: five quarters of its highest average cost to the fund."""
        return -(-reserved * self.watchers * self.rate * 5 // (self.shares * ONE * 4))


def watch_commitment(account: bytes, task_id: bytes, seating: int, index: int, entry: bytes, salt: bytes) -> bytes:
    """A watcher's commitment to the true ``entry`` of the false claim ``index``: 32 bytes.

    ``entry`` is the hash of the true claim and of the second look at it (docs/spec/market.md, "Identifiers").
    """
    return abi_hash(account, task_id, seating, index, entry, salt)
