"""Putting a contract of the package on a chain."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress

from pol.chain.account.wallet import Wallet
from pol.chain.artifacts import artifact
from pol.errors import OperationalError


def deploy_contract(wallet: Wallet, name: str, *arguments: Any) -> ChecksumAddress:
    """Deploy one contract of the package; its address.

    Raises:
        OperationalError: the node fails, or reports no address.
    """
    built = artifact(name)
    contract = wallet.connection.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])
    address = wallet.deploy(contract, *arguments)["contractAddress"]
    if address is None:
        raise OperationalError(f"the node reports no address for contract {name}; try the deployment again")
    return address
