"""One account: builds, signs and sends transactions, and says what a revert meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import decode
from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3.contract import Contract
from web3.contract.contract import ContractFunction
from web3.exceptions import ContractCustomError, ContractLogicError
from web3.types import TxParams, TxReceipt, Wei

from pol.chain.artifacts import artifact, contracts
from pol.chain.connection import Connection, operational
from pol.chain.signers import LocalSigner, Signer
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

RECEIPT_TIMEOUT = 180
TRANSFER_GAS = 21_000


class Reverted(ProtocolError):
    """The contract refused a transaction; ``error`` is the name of its custom error."""

    def __init__(self, call: str, error: str, arguments: tuple[Any, ...] = ()) -> None:
        self.error = error
        self.arguments = arguments
        shown = ", ".join(a.hex() if isinstance(a, bytes) else str(a) for a in arguments)
        super().__init__(f"{call} was refused: {error}({shown})")


@dataclass
class Wallet:
    """An account on one chain and its signer. ``gas_paid`` sums up what its transactions cost, in wei."""

    connection: Connection
    signer: Signer
    gas_paid: int = 0
    receipts: list[TxReceipt] = field(default_factory=list)

    @classmethod
    def create(cls, connection: Connection, key: bytes) -> Wallet:
        """The wallet of a 32-byte private key."""
        return cls(connection, LocalSigner(key))

    @property
    def address(self) -> ChecksumAddress:
        """The account's address."""
        return self.signer.address

    def balance(self) -> int:
        """Balance in wei."""
        return self.connection.balance(self.address)

    def send(self, call: ContractFunction, value: int = 0) -> TxReceipt:
        """Send a contract call and wait until it is in a block.

        Raises:
            Reverted: the contract refuses it (found out before anything is sent).
            OperationalError: the node fails.
        """
        with operational(f"send {call.fn_name}"), reverting(call.fn_name):
            parameters = self._parameters(value)
            # An estimate holds for the state that it was made on; the next block may need a little more.
            parameters["gas"] = call.estimate_gas(parameters) * 5 // 4
            transaction = call.build_transaction(parameters)
        return self._sign_and_send(transaction, call.fn_name)

    def send_data(self, to: ChecksumAddress, data: bytes, name: str) -> TxReceipt:
        """Send calldata that no ABI describes and wait until it is in a block; ``name`` is what errors call it.

        Raises:
            Reverted: the contract refuses it (found out before anything is sent).
            OperationalError: the node fails.
        """
        eth = self.connection.web3.eth
        with operational(f"send {name}"), reverting(name):
            parameters = self._parameters(0)
            parameters.update({"to": to, "data": HexBytes(data)})
            parameters["gas"] = eth.estimate_gas(parameters) * 5 // 4
            most, tip = self._fees()
            parameters.update({"maxFeePerGas": Wei(most), "maxPriorityFeePerGas": Wei(tip)})
        return self._sign_and_send(parameters, name)

    def sign_typed(self, domain: dict[str, Any], types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """An EIP-712 signature of this account: r, s, v, 65 bytes."""
        return self.signer.sign_typed(domain, types, message)

    def deploy(self, contract: type[Contract], *arguments: Any) -> TxReceipt:
        """Send a contract creation and wait until it is in a block.

        Raises:
            Reverted: its constructor refuses (found out before anything is sent).
            OperationalError: the node fails.
        """
        with operational("deploy a contract"), reverting("constructor"):
            transaction = contract.constructor(*arguments).build_transaction(self._parameters(0))
        return self._sign_and_send(transaction, "constructor")

    def transfer(self, to: ChecksumAddress, value: int) -> TxReceipt:
        """Send plain ether."""
        return self._transfer(to, value, *self._fees())

    def transfer_all(self, to: ChecksumAddress) -> None:
        """Send everything but the highest possible fee; nothing happens if there is no more than that."""
        most, tip = self._fees()
        value = self.balance() - TRANSFER_GAS * most
        if value > 0:
            self._transfer(to, value, most, tip)

    def _transfer(self, to: ChecksumAddress, value: int, most: int, tip: int) -> TxReceipt:
        transaction = self._parameters(value)
        fees: TxParams = {"to": to, "gas": TRANSFER_GAS, "maxFeePerGas": Wei(most), "maxPriorityFeePerGas": Wei(tip)}
        transaction.update(fees)
        return self._sign_and_send(transaction, "transfer")

    def _fees(self) -> tuple[int, int]:
        """The most that a unit of gas may cost until the base fee has doubled, and the tip in it; wei."""
        eth = self.connection.web3.eth
        with operational("read the fees"):
            tip = eth.max_priority_fee
            return 2 * eth.get_block("latest")["baseFeePerGas"] + tip, tip

    def _parameters(self, value: int) -> TxParams:
        nonce = self.connection.web3.eth.get_transaction_count(self.address, "pending")
        return {"from": self.address, "value": value, "nonce": nonce, "chainId": self.connection.chain_id}  # type: ignore[typeddict-item]  # plain ints are Wei

    def _sign_and_send(self, transaction: TxParams, name: str) -> TxReceipt:
        web3 = self.connection.web3
        with operational(f"send {name}"):
            digest = web3.eth.send_raw_transaction(self.signer.sign_transaction(transaction))
            receipt = web3.eth.wait_for_transaction_receipt(digest, timeout=RECEIPT_TIMEOUT, poll_latency=0.02)
        self.receipts.append(receipt)
        self.gas_paid += receipt["gasUsed"] * receipt["effectiveGasPrice"]
        if receipt["status"] != 1:
            raise OperationalError(f"{name} failed in block {receipt['blockNumber']}: look at the chain and try again")
        return receipt


@contextmanager
def reverting(name: str) -> Iterator[None]:
    """Turn a custom error of a contract into Reverted, with its name and arguments; ``name`` is what was called."""
    try:
        yield
    except ContractCustomError as error:
        raise Reverted(name, *decode_error(HexBytes(str(error.data or "0x")))) from error
    except ContractLogicError as error:
        raise Reverted(name, str(error)) from error


def decode_error(data: bytes) -> tuple[str, tuple[Any, ...]]:
    """Name and arguments of a custom error of any contract of the protocol: one calls the other."""
    for abi in (artifact(name)["abi"] for name in contracts()):
        for item in abi:
            if item["type"] == "error" and keccak256(signature(item).encode())[:4] == data[:4]:
                return item["name"], tuple(decode([i["type"] for i in item["inputs"]], data[4:]))
    return f"unknown error 0x{data[:4].hex()}", ()


def signature(item: Any) -> str:
    """Canonical signature of an ABI entry whose inputs are all elementary."""
    return f"{item['name']}({','.join(i['type'] for i in item['inputs'])})"
