"""The beacon contract of a deployment (contracts/market/IBeacon.sol)."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.beacon.drand_relays import RoundSource
from pol.chain.contract.binding import Binding
from pol.chain.deployment_rules import BeaconKind
from pol.chain.node.connection import Connection
from pol.errors import OperationalError
from pol.verification.beacon.drand import QUICKNET, Round

PATIENCE = 7 * 24 * 3600
"""Seconds after which an unrecorded round may be replaced (contracts/market/IBeacon.sol)."""


class Beacon(Binding):
    """A beacon of any kind."""

    def __init__(self, connection: Connection, address: ChecksumAddress, kind: BeaconKind) -> None:
        super().__init__(connection, address, kind.contract)
        self.kind = kind

    def recorded(self, number: int) -> bool:
        """Whether the seed of a round is on chain."""
        return bool(self.read("recorded", number))

    def is_due(self, number: int) -> bool:
        """Whether a round is recorded, or due by the chain's clock: `bring` then doesn't wait."""
        if self.recorded(number):
            return True
        if self.kind is BeaconKind.DRAND:
            return self.connection.now() > QUICKNET.time_of(number)
        return self.connection.block_number() > number

    def seed(self, number: int) -> bytes:
        """The seed of a round, 32 bytes. Raises Reverted: the round is not recorded."""
        return bytes(self.read("seed", number))

    def record(self, wallet: Wallet, number: int) -> TxReceipt:
        """Record the seed of a round of the chain itself: not one of drand."""
        return self.transact(wallet, "record", number)

    def submit(self, wallet: Wallet, published: Round) -> TxReceipt:
        """Record a round of drand by its signature.

        Raises:
            ProtocolError: the signature is no point of the group.
            Reverted: the signature is not the network's for this round, or the round is not due yet.
        """
        from pol.verification.beacon.bls_arkworks import decompress_g1

        point = decompress_g1(published.signature)
        words = tuple(int.from_bytes(point[start:end], "big") for start, end in ((0, 16), (16, 48), (48, 64), (64, 96)))
        return self.transact(wallet, "submit", published.number, words)

    def bring(self, wallet: Wallet, number: int, rounds: RoundSource | None = None) -> None:
        """Wait for round ``number`` and bring its seed on chain; ``rounds`` is the source of drand's rounds.

        Raises:
            OperationalError: nobody has submitted the round, and ``rounds`` doesn't have it.
        """
        if self.recorded(number):
            return
        if self.kind is not BeaconKind.DRAND:
            self.connection.wait_for_block(number + 1)
            return
        self.connection.wait_until(QUICKNET.time_of(number))
        if rounds is None:
            raise OperationalError(
                f"round {number} of drand isn't on chain yet: name relays, or wait until somebody submits it"
            )
        self.submit(wallet, rounds(number))
