"""Progress, the learning proof and the draw of segments (contracts/market/IProofRegistry.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.chain.node.connection import Connection


@dataclass(frozen=True)
class ProofOfTask:
    """The checkpoint log of a task's solver, as far as it is on chain."""

    size: int
    round: int
    """Of the beacon, that draws segments; zero until the log is complete."""
    committed: int
    began: int
    root: bytes


class ProofRegistry(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "ProofRegistry", address)

    def post(
        self, wallet: Wallet, task_id: bytes, size: int, log_root: bytes, consistency: Sequence[bytes]
    ) -> TxReceipt:
        """Publish a longer checkpoint log."""
        return wallet.send(self.function("post", task_id, size, log_root, list(consistency)))

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
        return wallet.send(self.function("commit", *arguments))

    def proof(self, task_id: bytes) -> ProofOfTask:
        """The log of a task."""
        return ProofOfTask(*self.read("proof", task_id))

    def drawn_segments(self, task_id: bytes) -> list[int]:
        """The drawn segments in the order of the draw.

        Raises:
            Reverted: the round has no seed yet.
        """
        return list(self.read("drawnSegments", task_id))

    def replace_round(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """A round that the beacon hasn't given for a week is replaced."""
        return wallet.send(self.function("replaceRound", task_id))

    def patient_until(self, task_id: bytes) -> int:
        """Last second of a wait for a round before the task may be abandoned; 0 if nothing waits."""
        return int(self.read("patientUntil", task_id))
