"""Announcements of evidence, so that nobody can copy it when it is shown (contracts/market/Announcements.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.incentives.abi import abi_hash


class Announcements(Binding):
    """A contract that pays for evidence which was announced in an earlier block."""

    def announced_at(self, digest: bytes) -> int:
        """The block in which a digest was announced; zero if it wasn't. Its evidence can be shown in later blocks."""
        return int(self.read("announcedAt", digest))

    def announce(self, wallet: Wallet, digest: bytes) -> TxReceipt:
        """Announce a digest (`announcement`), for whichever party it binds; the first announcement of it stays."""
        return self.transact(wallet, "announce", digest)

    def announce_evidence(self, wallet: Wallet, task_id: bytes, evidence: bytes) -> None:
        """Announce evidence of the wallet's party unless that is done, and return in a later block.

        Raises:
            Reverted, OperationalError: try again; the first announcement stays.
        """
        digest = announcement(wallet.address, task_id, evidence)
        if not self.announced_at(digest):
            self.announce(wallet, digest)
        self.connection.wait_for_block(self.announced_at(digest) + 1)


def announcement(party: ChecksumAddress, task_id: bytes, evidence: bytes) -> bytes:
    """The digest by which a party announces evidence.

    ``evidence`` is a hash: `verdicts.leak_evidence`, `profiles.conviction_evidence`, `profiles.charge_evidence` or
    `challenges.charge_evidence`.
    """
    return abi_hash(bytes.fromhex(party[2:]), task_id, evidence)
