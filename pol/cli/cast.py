"""Who plays in the demo: keys, funds and what each party has before and after."""

from __future__ import annotations

from dataclasses import dataclass

from eth_account import Account
from eth_typing import ChecksumAddress

from pol.chain.connection import Connection, operational
from pol.chain.wallet import Wallet
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.roles.role import Role

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


@dataclass(frozen=True)
class Balance:
    """What a party had before and after, and what it spent on gas; wei."""

    party: str
    before: int
    after: int
    gas: int

    @property
    def change(self) -> int:
        """What the protocol gave or took, gas aside."""
        return self.after - self.before + self.gas


def key_of(seed: int, party: str) -> bytes:
    """The party's private key: test money only."""
    return keccak256(f"pol demo {seed} {party}".encode())


def address_of(seed: int, party: str) -> ChecksumAddress:
    """The party's address."""
    return Account.from_key(key_of(seed, party)).address  # type: ignore[no-any-return]  # eth_account is untyped here


def fund(connection: Connection, seed: int, each: int, funder_key: bytes | None) -> None:
    """Give every party ``each`` wei, from a key or from an account that the node unlocks.

    Raises:
        OperationalError: there is no money to be had.
    """
    addresses = [address_of(seed, party) for party in PARTIES]
    web3 = connection.web3
    with operational(f"fund the parties on {connection.name}"):
        if funder_key is None:
            unlocked = web3.eth.accounts
            if not unlocked:
                raise OperationalError(
                    f"{connection.name} has no unlocked account to fund the demo: give a funded key with --funder-key"
                )
            sent = [web3.eth.send_transaction({"from": unlocked[0], "to": a, "value": each}) for a in addresses]  # type: ignore[typeddict-item]  # plain int
            for digest in sent:
                web3.eth.wait_for_transaction_receipt(digest, timeout=180)
        else:
            funder = Wallet.create(connection, funder_key)
            for address in addresses:
                funder.transfer(address, each)


def balances(roles: dict[str, Role | Wallet], before: dict[str, int]) -> list[Balance]:
    """The settlement table."""
    rows = []
    for party, role in roles.items():
        wallet = role if isinstance(role, Wallet) else role.wallet
        rows.append(Balance(party, before[party], wallet.balance(), wallet.gas_paid))
    return rows
