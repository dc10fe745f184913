"""An ERC-20 token: what it takes to bring it into a vault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_typing import ChecksumAddress
from web3.contract.contract import ContractFunction
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet, reverting
from pol.chain.contract.binding import signing_domain
from pol.chain.node.connection import Connection, operational


def _entry(name: str, inputs: str, outputs: str, mutability: str = "view") -> dict[str, Any]:
    """A function of the ABI; types are separated by spaces."""
    sides = {"inputs": inputs, "outputs": outputs}
    listed = {side: [{"name": "", "type": form} for form in types.split()] for side, types in sides.items()}
    return {"type": "function", "name": name, "stateMutability": mutability, **listed}


ABI = [
    _entry("balanceOf", "address", "uint256"),
    _entry("allowance", "address address", "uint256"),
    _entry("approve", "address uint256", "bool", "nonpayable"),
    _entry("nonces", "address", "uint256"),
    _entry("eip712Domain", "", "bytes1 string string uint256 address bytes32 uint256[]"),
]
"""ERC-20, and of ERC-2612 and ERC-5267 what a permit is signed with."""

PERMIT_TYPE = {
    "Permit": [
        {"name": "owner", "type": "address"},
        {"name": "spender", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "nonce", "type": "uint256"},
        {"name": "deadline", "type": "uint256"},
    ]
}


@dataclass(frozen=True)
class Permit:
    """A signed approval (ERC-2612); the deadline is a time of the chain, in seconds."""

    deadline: int
    v: int
    r: bytes
    s: bytes


class Token:
    """One token on one chain."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        self.connection = connection
        self.address = address
        self._contract = connection.web3.eth.contract(address=address, abi=ABI)

    def balance(self, account: ChecksumAddress) -> int:
        """What an account has, in the smallest unit."""
        return int(self._read(self._contract.functions.balanceOf(account)))

    def allowance(self, owner: ChecksumAddress, spender: ChecksumAddress) -> int:
        """What ``spender`` may still take from ``owner``."""
        return int(self._read(self._contract.functions.allowance(owner, spender)))

    def approve(self, wallet: Wallet, spender: ChecksumAddress, amount: int) -> TxReceipt:
        """Let ``spender`` take ``amount`` in all.

        Raises:
            Reverted: the token refuses.
        """
        return wallet.send(self._contract.functions.approve(spender, amount))

    def permit(self, wallet: Wallet, spender: ChecksumAddress, amount: int, deadline: int) -> Permit:
        """The same as a signature, which whoever calls the spender may hand in.

        Raises:
            Reverted: the token knows no permits (ERC-2612) or doesn't tell its domain (ERC-5267).
        """
        _, name, version, chain_id, address, *_ = self._read(self._contract.functions.eip712Domain())
        message = {
            "owner": wallet.address,
            "spender": spender,
            "value": amount,
            "nonce": self._read(self._contract.functions.nonces(wallet.address)),
            "deadline": deadline,
        }
        signature = wallet.sign_typed(signing_domain(name, version, chain_id, address), PERMIT_TYPE, message)
        return Permit(deadline, signature[64], signature[:32], signature[32:64])

    def _read(self, call: ContractFunction) -> Any:
        with operational(f"read {call.fn_name}"), reverting(call.fn_name):
            return call.call()
