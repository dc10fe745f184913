"""Relayed calls: a party signs (EIP-712), anybody sends, and the contract takes the party for the caller (ERC-2771)."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.typed_data import signed_struct, signing_domain
from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.contract_abi import ContractCall

REQUEST_TYPE = signed_struct(
    "ForwardRequest", "address from, address to, uint256 value, uint256 gas, uint256 nonce, uint48 deadline, bytes data"
)

RELAYED_GAS = 500_000
"""Default gas of a relayed call: enough for every verb of the vault."""

VALID_SECONDS = 3600


@dataclass(frozen=True)
class Request:
    """A signed call, valid once, in the order of the signer's nonces, until its deadline (seconds)."""

    signer: ChecksumAddress
    to: ChecksumAddress
    value: int
    gas: int
    deadline: int
    data: bytes
    signature: bytes


class Forwarder(Binding):
    """The contract that checks signatures and forwards calls to contracts that trust it."""

    def sign(
        self,
        wallet: Wallet,
        call: ContractCall,
        value: int = 0,
        gas: int = RELAYED_GAS,
        valid_seconds: int = VALID_SECONDS,
    ) -> Request:
        """Sign a call without sending it; the wallet needs no ether.

        value: wei that the sender adds. gas: gas limit of the call.
        """
        _, name, version, chain_id, address, *_ = self.read("eip712Domain")
        deadline = self.connection.now() + valid_seconds
        message = {
            "from": wallet.address,
            "to": call.to,
            "value": value,
            "gas": gas,
            "nonce": self.read("nonces", wallet.address),
            "deadline": deadline,
            "data": call.data,
        }
        signature = wallet.sign_typed(signing_domain(name, version, chain_id, address), REQUEST_TYPE, message)
        return Request(wallet.address, call.to, value, gas, deadline, call.data, signature)

    def is_valid(self, request: Request) -> bool:
        """Whether signature, nonce and deadline are right and the target trusts the forwarder."""
        return bool(self.read("verify", astuple(request)))

    def send(self, wallet: Wallet, request: Request) -> TxReceipt:
        """Send a signed call; ``wallet`` pays gas and value.

        Raises:
            Reverted: the forwarder refuses the request, or the target the call (``FailedCall``, without a reason).
        """
        return self.transact(wallet, "execute", astuple(request), value=request.value)
