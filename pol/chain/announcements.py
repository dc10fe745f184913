"""What is announced before it is shown, so that nobody can copy it (contracts/market/Announcements.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.binding import Binding
from pol.chain.wallet import Wallet
from pol.incentives.abi import abi_hash


class Announcements(Binding):
    """A desk that pays whoever has announced first."""

    def announce(self, wallet: Wallet, digest: bytes) -> TxReceipt:
        """Announce a digest (`announcement`), for whichever party it binds; the first announcement of it stays."""
        return wallet.send(self.function("announce", digest))

    def announced_at(self, digest: bytes) -> int:
        """The block in which a digest was announced; zero if it wasn't. What it binds can be shown in later ones."""
        return int(self.read("announcedAt", digest))


def announcement(party: ChecksumAddress, task_id: bytes, evidence: bytes) -> bytes:
    """The digest by which a party announces what it is going to show.

    ``evidence`` is the hash that the verb says: `verdicts.leak_evidence`, `profiles.conviction_evidence`.
    """
    return abi_hash(bytes.fromhex(party[2:]), task_id, evidence)
