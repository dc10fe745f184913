"""What is announced before it is shown, so that nobody can copy it (contracts/market/Announcements.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.incentives.abi import abi_hash


class Announcements(Binding):
    """A desk that pays whoever has announced first."""

    def announce(self, wallet: Wallet, digest: bytes) -> TxReceipt:
        """Announce a digest (`announcement`), for whichever party it binds; the first announcement of it stays."""
        return wallet.send(self.function("announce", digest))

    def announced_at(self, digest: bytes) -> int:
        """The block in which a digest was announced; zero if it wasn't. What it binds can be shown in later ones."""
        return int(self.read("announcedAt", digest))

    def bring(self, wallet: Wallet, task_id: bytes, evidence: bytes) -> None:
        """Announce what the wallet's party is going to show, unless it has, and return in a later block.

        Raises:
            Reverted, OperationalError: try again; the first announcement stays.
        """
        digest = announcement(wallet.address, task_id, evidence)
        if not self.announced_at(digest):
            self.announce(wallet, digest)
        self.connection.wait_for_block(self.announced_at(digest) + 1)


def announcement(party: ChecksumAddress, task_id: bytes, evidence: bytes) -> bytes:
    """The digest by which a party announces what it is going to show.

    ``evidence`` is the hash that the verb says: `verdicts.leak_evidence`, `profiles.conviction_evidence`,
    `profiles.charge_evidence`, `challenges.charge_evidence`.
    """
    return abi_hash(bytes.fromhex(party[2:]), task_id, evidence)
