"""Contracts at addresses that follow from their code alone (EIP-1014), made by the factory that every chain has.

The factory is the deterministic deployment proxy: it takes 32 bytes of salt and creation code, and has no owner.
"""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3 import Web3

from pol.chain.contract.binding import factory
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

FACTORY = Web3.to_checksum_address("0x4e59b44847b379578588920ca78fbf26c0b4956c")
"""The same on all chains: who put it there signed one transaction that holds for all."""

SALT_BYTES = 32


def init_code(web3: Web3, contract: str, *arguments: Any) -> bytes:
    """Creation code of a contract of the package, with its constructor's arguments."""
    return bytes(HexBytes(factory(web3, contract).constructor(*arguments).data_in_transaction))


def address_of(code: bytes, salt: bytes) -> ChecksumAddress:
    """Where the factory puts a contract.

    Raises:
        ProtocolError: the salt hasn't 32 bytes.
    """
    if len(salt) != SALT_BYTES:
        raise ProtocolError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    packed = b"\xff" + bytes(HexBytes(FACTORY)) + salt + keccak256(code)
    return Web3.to_checksum_address(keccak256(packed)[12:])


def require_factory(web3: Web3, chain: str) -> None:
    """Nothing, if the chain has the factory.

    Raises:
        OperationalError: it hasn't.
    """
    if not web3.eth.get_code(FACTORY):
        raise OperationalError(
            f"{chain} has no deterministic deployment proxy at {FACTORY}: send its known transaction first (it is part "
            "of anvil and of most chains; `cast publish` sends it, docs/guides/deploy.md says how)"
        )
