"""What a watch pays and what a task pays for it: mirror of `contracts/incentives/Jackpot.sol`.

Rules: docs/spec/incentives.md, "The jackpot". Amounts are integers in the smallest unit of the asset.
"""

from __future__ import annotations

from dataclasses import dataclass

from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash
from pol.incentives.forced_errors import ONE, check_rate


@dataclass(frozen=True)
class JackpotRules:
    """What a deployment has fixed.

    Raises:
        ProtocolError: there is no such deployment.
    """

    watchers: int
    """Tickets that watch a seating, on average."""
    shares: int
    """Catches of a task that are paid, at most."""
    rate: int
    """How often verdicts are wrong on purpose, times 2^32."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if not 1 <= self.watchers <= self.shares // 2 < 1 << 31:
            raise ProtocolError(f"{self.watchers} watchers need at least {2 * self.watchers} shares, not {self.shares}")

    def share(self, reserved: int) -> int:
        """What a catch is paid of what is reserved for its task, whoever else has caught the error.

        Raises:
            ProtocolError: nothing that the contract reserves.
        """
        if not self.shares <= reserved < 1 << 128:
            raise ProtocolError(f"a reserve of {reserved} has no shares: name at least {self.shares}, below 2^128")
        return reserved // self.shares

    def paid(self, reserved: int, catches: int) -> int:
        """What all catches of a task are paid together."""
        return self.share(reserved) * min(catches, self.shares)

    def tax(self, reserved: int) -> int:
        """What a task that got a verdict pays the fund: five quarters of the most that it costs on average."""
        return -(-reserved * self.watchers * self.rate * 5 // (self.shares * ONE * 4))


def watch_commitment(account: bytes, task_id: bytes, seating: int, index: int, entry: bytes, salt: bytes) -> bytes:
    """What a watcher posts that has found the claim ``index`` wrong and computed its whole ``entry``: 32 bytes.

    ``entry`` is the hash of the true claim and of the second look at it (docs/spec/market.md, "Identifiers").
    """
    return abi_hash(account, task_id, seating, index, entry, salt)
