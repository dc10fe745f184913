"""The parties of the demo: keys, funds, and balances before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eth_account import Account
from eth_typing import ChecksumAddress
from web3.types import Wei

from pol.chain.account.wallet import Wallet
from pol.chain.desks.vault import StakeVault
from pol.chain.node.connection import Connection, operational
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError

ETHER = 10**18
PARTIES = (
    "deployer",
    "submitter",
    "honest solver",
    "cheating solver",
    "honest verifier",
    "lying verifier",
    "whistleblower",
    "false challenger",
)


FUND = "jackpot fund"
"""Belongs to nobody; pays watch rewards."""


@dataclass(frozen=True)
class Balance:
    """A party's balances before and after, and its gas; wei."""

    party: str
    before: int
    after: int
    gas: int
    locked: int = 0
    """Its own money in the vault: the bond of its tickets."""

    @property
    def change(self) -> int:
        """Gain or loss by the protocol, without gas."""
        return self.after + self.locked - self.before + self.gas


@dataclass(frozen=True)
class Purse:
    """The source of the parties' keys and money.

    On a test chain money is free and keys follow from the seed, so that a run can be repeated. With a funder's key the
    parties' keys follow from it, so that nobody else can take their money, and the funder gets the rest back.
    """

    seed: int
    each: int
    funder_key: bytes | None = None

    def key(self, party: str) -> bytes:
        """The party's private key."""
        return keccak256((self.funder_key or b"") + f"pol/demo {self.seed} {party}".encode())

    def address(self, party: str) -> ChecksumAddress:
        """The party's address."""
        return Account.from_key(self.key(party)).address  # type: ignore[no-any-return]  # eth_account is untyped here

    def fund(self, connection: Connection) -> None:
        """Give every party its share, from the funder or from an unlocked account of the node.

        Raises:
            OperationalError: there is no money.
        """
        addresses = [self.address(party) for party in PARTIES]
        if self.funder_key is not None:
            funder = Wallet.create(connection, self.funder_key)
            if funder.balance() < self.each * len(addresses):
                needed = self.each * len(addresses) / ETHER
                raise OperationalError(f"the funder {funder.address} needs {needed:g} ether on {connection.name}")
            for address in addresses:
                funder.transfer(address, self.each)
            return
        fund(connection, addresses, self.each)

    def collect(self, wallets: Iterable[Wallet]) -> None:
        """Send the rest back to the funder, if there is one."""
        if self.funder_key is None:
            return
        funder = Account.from_key(self.funder_key).address
        for wallet in wallets:
            wallet.transfer_all(funder)


def fund(connection: Connection, addresses: Iterable[ChecksumAddress], each: int) -> None:
    """Give addresses ``each`` wei from an unlocked account of the node.

    Raises:
        OperationalError: it has none, or failed.
    """
    web3 = connection.web3
    with operational(f"fund the parties on {connection.name}"):
        unlocked = web3.eth.accounts
        if not unlocked:
            raise OperationalError(
                f"{connection.name} has no unlocked account to fund the demo: give a funded key with --funder-key"
            )
        for address in addresses:
            digest = web3.eth.send_transaction({"from": unlocked[0], "to": address, "value": Wei(each)})
            web3.eth.wait_for_transaction_receipt(digest, timeout=180)


def balances(wallets: dict[str, Wallet], before: dict[str, int], vault: StakeVault) -> list[Balance]:
    """Balances of all parties: outside of the vault, and locked in it."""
    rows = []
    for party, wallet in wallets.items():
        held = vault.balances(wallet.address)
        rows.append(Balance(party, before[party], wallet.balance() + held.free, wallet.gas_paid, held.locked))
    return rows
