"""Progress, the learning proof and the draw of segments (contracts/market/IProofRegistry.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.beacon_rounds import BeaconRounds


@dataclass(frozen=True)
class ProofOfTask:
    """The checkpoint log of a task's solver, as posted."""

    size: int
    round: int
    """The beacon round that draws segments; zero until the log is complete."""
    committed: int
    began: int
    root: bytes


class ProofRegistry(BeaconRounds):
    """The desk of solvers' checkpoint logs."""

    def post(
        self, wallet: Wallet, task_id: bytes, size: int, log_root: bytes, consistency: Sequence[bytes]
    ) -> TxReceipt:
        """Publish a longer checkpoint log."""
        return self.transact(wallet, "post", task_id, size, log_root, list(consistency))

    def commit(
        self,
        wallet: Wallet,
        task_id: bytes,
        size: int,
        log_root: bytes,
        consistency: Sequence[bytes],
        digest: bytes,
        inclusion_of_start: Sequence[bytes],
    ) -> TxReceipt:
        """Commit the complete log and the learning proof."""
        arguments = (task_id, size, log_root, list(consistency), digest, list(inclusion_of_start))
        return self.transact(wallet, "commit", *arguments)

    def proof(self, task_id: bytes) -> ProofOfTask:
        """The log of a task."""
        return self.read_as(ProofOfTask, "proof", task_id, about=task_id)

    def is_drawn(self, task_id: bytes) -> bool:
        """Whether the round that draws segments is on chain."""
        return bool(self.read("isDrawn", task_id))

    def receipt_seed(self, task_id: bytes, segment: int) -> bytes:
        """What draws the nodes of a segment's receipt. Raises Reverted: the round has no seed yet."""
        return bytes(self.read("receiptSeed", task_id, segment))

    def drawn_segments(self, task_id: bytes) -> list[int]:
        """The drawn segments in the order of the draw. Raises Reverted: the round has no seed yet."""
        return list(self.read("drawnSegments", task_id))
