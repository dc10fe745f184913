"""An ERC-20 token, as far as a deposit into the vault needs it."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import called
from pol.chain.contract_abi import ContractAbi
from pol.chain.node.connection import Connection


def _entry(name: str, inputs: str, outputs: str, mutability: str = "view") -> dict[str, Any]:
    """A function of the ABI; types are separated by spaces."""
    sides = {"inputs": inputs, "outputs": outputs}
    listed = {side: [{"name": "", "type": form} for form in types.split()] for side, types in sides.items()}
    return {"type": "function", "name": name, "stateMutability": mutability, **listed}


ABI = ContractAbi(
    [
        _entry("balanceOf", "address", "uint256"),
        _entry("allowance", "address address", "uint256"),
        _entry("approve", "address uint256", "bool", "nonpayable"),
    ]
)
"""The part of ERC-20 that a deposit needs."""


class Token:
    """One token on one chain."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        self.connection = connection
        self.address = address

    def balance(self, account: ChecksumAddress) -> int:
        """Balance of an account, in the smallest unit."""
        return self._read("balanceOf", account)

    def allowance(self, owner: ChecksumAddress, spender: ChecksumAddress) -> int:
        """Remaining allowance of ``spender`` from ``owner``."""
        return self._read("allowance", owner, spender)

    def approve(self, wallet: Wallet, spender: ChecksumAddress, amount: int) -> TxReceipt:
        """Set the allowance of ``spender``. Raises Reverted: the token refuses."""
        return wallet.send(ABI.call(self.address, "approve", spender, amount))

    def _read(self, name: str, *arguments: Any) -> int:
        return int(called(self.connection, ABI, ABI.call(self.address, name, *arguments)))
