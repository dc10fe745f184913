"""Creation code, the address that follows from it (EIP-1014), and the code that it leaves there.

The deterministic deployment proxy takes 32 bytes of salt and creation code, has no owner, and exists on most chains.
Code is compared with what creation leaves, immutables included: nobody has to trust what a contract says.
"""

from __future__ import annotations

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3 import Web3

from pol.chain.node.connection import Connection, operational
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

FACTORY = Web3.to_checksum_address("0x4e59b44847b379578588920ca78fbf26c0b4956c")
"""The same on all chains: its creation is one signed transaction that is valid everywhere."""

FACTORY_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b"
    "8082525050506014600cf3"
)
SALT_BYTES = 32

_MAKER = bytes.fromhex("601c380380601c5f395f5ff0805f52803b805f6020843c6020015ff3")
"""Creates a contract by the code behind it, and returns the contract's address and code: EVM code for a mere call."""

_FORWARDER_DOMAIN = tuple(
    keccak256(text.encode())
    for text in (
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
        "pol forwarder",
        "1",
    )
)


def address_of(code: bytes, salt: bytes) -> ChecksumAddress:
    """The address at which the factory creates a contract. Raises ProtocolError: the salt doesn't have 32 bytes."""
    if len(salt) != SALT_BYTES:
        raise ProtocolError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    packed = b"\xff" + bytes(HexBytes(FACTORY)) + salt + keccak256(code)
    return Web3.to_checksum_address(keccak256(packed)[12:])


def require_factory(connection: Connection) -> None:
    """Require that the chain has the factory. Raises OperationalError: it doesn't."""
    code = code_at(connection, FACTORY)
    if not code:
        raise OperationalError(
            f"{connection.name} has no deterministic deployment proxy at {FACTORY}: send its known transaction first "
            "(it is part of anvil and of most chains; `cast publish` sends it, docs/guides/deploy.md says how)"
        )
    if code != FACTORY_CODE:
        raise OperationalError(
            f"what {connection.name} has at {FACTORY} isn't the deterministic deployment proxy, so a transaction to it "
            "would be lost: choose another node, or another chain"
        )


def code_at(connection: Connection, address: ChecksumAddress) -> bytes:
    """The code of an account."""
    with operational(f"read the code at {address}"):
        return bytes(connection.web3.eth.get_code(address))


def expected_code(connection: Connection, creation: bytes, address: ChecksumAddress) -> bytes:
    """The code that creation code leaves at an address today; empty if its constructor refuses.

    A call creates the contract elsewhere; what follows from the address is replaced.
    """
    with operational("execute a constructor"):
        made = bytes(connection.web3.eth.call({"data": HexBytes(_MAKER + creation)}))
    elsewhere, code = Web3.to_checksum_address(made[12:32]), made[32:]
    for there, here in zip(_following(connection, elsewhere), _following(connection, address), strict=True):
        code = code.replace(there, here)
    return code


def first_child(address: ChecksumAddress) -> ChecksumAddress:
    """The address of the first contract that a contract creates: its constructor keeps long bytes there (EIP-161)."""
    return Web3.to_checksum_address(keccak256(b"\xd6\x94" + bytes.fromhex(address[2:]) + b"\1")[12:])


def _following(connection: Connection, address: ChecksumAddress) -> tuple[bytes, ...]:
    """What constructors make of their contract's address."""
    domain = encode(["bytes32"] * 3 + ["uint256", "address"], [*_FORWARDER_DOMAIN, connection.chain_id, address])
    return bytes.fromhex(address[2:]), bytes.fromhex(first_child(address)[2:]), keccak256(domain)
