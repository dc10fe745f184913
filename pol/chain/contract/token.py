"""An ERC-20 token, as far as a deposit into the vault needs it."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress
from web3.contract.contract import ContractFunction
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet, reverting
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
]
"""The part of ERC-20 that a deposit needs."""


class Token:
    """One token on one chain."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        self.connection = connection
        self.address = address
        self._contract = connection.web3.eth.contract(address=address, abi=ABI)

    def balance(self, account: ChecksumAddress) -> int:
        """Balance of an account, in the smallest unit."""
        return int(self._read(self._contract.functions.balanceOf(account)))

    def allowance(self, owner: ChecksumAddress, spender: ChecksumAddress) -> int:
        """Remaining allowance of ``spender`` from ``owner``."""
        return int(self._read(self._contract.functions.allowance(owner, spender)))

    def approve(self, wallet: Wallet, spender: ChecksumAddress, amount: int) -> TxReceipt:
        """Set the allowance of ``spender``.

        Raises:
            Reverted: the token refuses.
        """
        return wallet.send(self._contract.functions.approve(spender, amount))

    def _read(self, call: ContractFunction) -> Any:
        with operational(f"read {call.fn_name}"), reverting(call.fn_name):
            return call.call()
