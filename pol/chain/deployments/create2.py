"""Contracts at addresses that follow from their code (EIP-1014), created by the deterministic deployment proxy.

This factory takes 32 bytes of salt and creation code, has no owner, and exists on most chains.
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
"""The same on all chains: its creation is one signed transaction that is valid everywhere."""

SALT_BYTES = 32


def init_code(web3: Web3, contract: str, *arguments: Any) -> bytes:
    """Creation code of a contract of the package, with its constructor's arguments."""
    return bytes(HexBytes(factory(web3, contract).constructor(*arguments).data_in_transaction))


def address_of(code: bytes, salt: bytes) -> ChecksumAddress:
    """The address at which the factory creates a contract.

    Raises:
        ProtocolError: the salt doesn't have 32 bytes.
    """
    if len(salt) != SALT_BYTES:
        raise ProtocolError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    packed = b"\xff" + bytes(HexBytes(FACTORY)) + salt + keccak256(code)
    return Web3.to_checksum_address(keccak256(packed)[12:])


def require_factory(web3: Web3, chain: str) -> None:
    """Require that the chain has the factory.

    Raises:
        OperationalError: it doesn't.
    """
    if not web3.eth.get_code(FACTORY):
        raise OperationalError(
            f"{chain} has no deterministic deployment proxy at {FACTORY}: send its known transaction first (it is part "
            "of anvil and of most chains; `cast publish` sends it, docs/guides/deploy.md says how)"
        )
