"""One account: builds, signs and sends transactions, and explains reverts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import decode
from eth_typing import ChecksumAddress
from eth_utils.abi import collapse_if_tuple, function_abi_to_4byte_selector
from hexbytes import HexBytes
from web3.exceptions import ContractCustomError, ContractLogicError
from web3.types import TxParams, TxReceipt, Wei

from pol.chain.account.gas_fees import DATA_FEE_ROOM, Budget, FeePolicy, Fees, InclusionPolicy, data_fee
from pol.chain.account.outbox import TRANSFER_GAS, Outbox
from pol.chain.account.outbox_journal import CommandJournal, IntentState, OutboxJournal, OutgoingCall
from pol.chain.account.revert_reasons import explained
from pol.chain.account.signers import LocalSigner, Signer
from pol.chain.contract_abi import ContractCall, artifact, contracts
from pol.chain.node.connection import Connection, operational
from pol.errors import OperationalError, ProtocolError


class Reverted(ProtocolError):
    """A contract refused a transaction or a view; ``error`` is the name of its custom error."""

    def __init__(self, call: str, error: str, arguments: tuple[Any, ...] = ()) -> None:
        self.error = error
        self.arguments = arguments
        shown = ", ".join(a.hex() if isinstance(a, bytes) else str(a) for a in arguments)
        meaning = explained(error, arguments)
        super().__init__(f"{call} was refused: {error}({shown})" + (f": {meaning}" if meaning else ""))


@dataclass
class Wallet:
    """An account on one chain and its signer. ``gas_paid`` is the sum of its fees, in wei."""

    connection: Connection
    signer: Signer
    gas_paid: int = 0
    receipts: list[TxReceipt] = field(default_factory=list)
    journal: OutboxJournal = field(default_factory=OutboxJournal)
    policy: FeePolicy = field(default_factory=FeePolicy)
    patience: InclusionPolicy = field(default_factory=InclusionPolicy)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = logging.getLogger(__name__).warning
    outbox: Outbox = field(init=False)
    _is_posting: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.outbox = Outbox(
            self.connection,
            self.address,
            self._signed,
            self._simulated,
            self.journal,
            self._fees,
            self.policy,
            self.patience,
            self.clock,
            self.sleep,
            self.tell,
            self._paid,
        )

    @classmethod
    def create(cls, connection: Connection, key: bytes, **settings: Any) -> Wallet:
        """The wallet of a 32-byte private key; ``settings`` are further fields: journal, policy, patience."""
        return cls(connection, LocalSigner(key), **settings)

    def keep(self, journal: OutboxJournal, tell: Callable[[str], None]) -> None:
        """Use a journal that outlives the process from now on."""
        self.journal, self.tell = journal, tell
        self.__post_init__()

    @contextmanager
    def once(self) -> Iterator[None]:
        """Within it, calls have their effect once although the process may be killed and started again.

        Calls that an earlier process has begun, and hasn't told of, are finished first: the same call is one of them.

        Raises:
            OperationalError: another process is within it with this key, or the user's folder can't be written.
        """
        journal = CommandJournal.of(self.connection, self.address, tell=self.tell)
        try:
            if begun := ", ".join(intent.name for intent in journal.intents(IntentState.OPEN)):
                self.tell(f"an earlier command was ended before it told what became of {begun}: not made a second time")
            self.keep(journal, self.tell)
            yield
            if journal.intents(IntentState.OPEN):
                self.outbox.resume()
            journal.acknowledge()
        finally:
            journal.close()

    @property
    def address(self) -> ChecksumAddress:
        """The account's address."""
        return self.signer.address

    def balance(self) -> int:
        """Balance in wei."""
        return self.connection.balance(self.address)

    def send(self, call: ContractCall, value: int = 0) -> TxReceipt:
        """Send a contract call and wait until it is in a block.

        Raises:
            Reverted: the contract refuses it in the simulation; nothing is sent.
            OperationalError: the node fails, or it takes too long; the same call then waits for the sent transaction.
        """
        return self._sent(self._call(call, value))

    def send_once(self, call: ContractCall, done: Callable[[], bool]) -> TxReceipt | None:
        """As send, unless ``done`` returns that somebody has brought about the call's effect: then None."""
        return self._sent_once(self._call(call, 0), done)

    def send_data(self, to: ChecksumAddress, data: bytes, name: str) -> TxReceipt:
        """Send calldata that no ABI describes; ``name`` is for messages. Waits and raises as send."""
        return self._sent(OutgoingCall(name, to, 0, data))

    def post_data(self, to: ChecksumAddress, data: bytes, name: str) -> TxReceipt | None:
        """As `send_data`; within `posting` it doesn't wait for a block, and returns None."""
        if not self._is_posting:
            return self.send_data(to, data, name)
        self.outbox.post(OutgoingCall(name, to, 0, data))
        return None

    @contextmanager
    def posting(self) -> Iterator[None]:
        """Within it, calls that depend on no other share blocks; at its end, all of them are in blocks.

        Raises:
            OperationalError: the node fails, or it takes too long; the transactions stay (`Outbox.resume`).
        """
        self._is_posting = True
        try:
            yield
        finally:
            self._is_posting = False
        if self.journal.intents(IntentState.OPEN):
            self.outbox.resume()

    def send_data_once(self, to: ChecksumAddress, data: bytes, name: str, done: Callable[[], bool]) -> TxReceipt | None:
        """Send calldata unless ``done`` returns that its effect is there: then None. Raises as send."""
        return self._sent_once(OutgoingCall(name, to, 0, data), done)

    def sign_typed(self, domain: dict[str, Any], types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """An EIP-712 signature of this account: r, s, v, 65 bytes."""
        return self.signer.sign_typed(domain, types, message)

    def deploy(self, code: bytes) -> ChecksumAddress:
        """Create a contract by its creation code, and wait until it is in a block; the contract's address.

        Raises:
            Reverted: its constructor refuses in the simulation; nothing is sent.
            OperationalError: the node fails, or reports no address.
        """
        address = self._sent(OutgoingCall("constructor", None, 0, code))["contractAddress"]
        if address is None:
            raise OperationalError("the node reports no address for the created contract; try the deployment again")
        return address

    def transfer(self, to: ChecksumAddress, value: int) -> TxReceipt:
        """Send ether."""
        return self._sent(OutgoingCall("transfer", to, value, gas=TRANSFER_GAS))

    def transfer_all(self, to: ChecksumAddress) -> None:
        """Send the whole balance but the highest possible fee, if there is more than that."""
        fees = self.policy.first(*self._fees())
        with operational("read the fee for data on L1"):
            data = DATA_FEE_ROOM * data_fee(self.connection.web3, 0)
        value = self.balance() - TRANSFER_GAS * fees.most - data
        if value > 0:
            self._sent(OutgoingCall("transfer", to, value, gas=TRANSFER_GAS), fees)

    def require(self, budget: Budget) -> None:
        """Require that the balance covers the rest of a game at the cap of the fees; call it before the first move.

        Raises:
            OperationalError: it doesn't; the message names the missing amount.
        """
        self.outbox.require(budget)

    def _fees(self) -> tuple[int, int]:
        """The base fee of the latest block and the node's suggested tip; wei."""
        eth = self.connection.web3.eth
        with operational("read the fees"):
            return int(eth.get_block("latest")["baseFeePerGas"]), int(eth.max_priority_fee)

    def _call(self, call: ContractCall, value: int) -> OutgoingCall:
        to, data = call.to, call.data
        for begun in self.journal.intents(IntentState.OPEN):
            same = (begun.to, begun.value, begun.data[:4]) == (to, value, data[:4])
            if same and _but_bond(call, begun.data) == _but_bond(call, data):
                data = begun.data  # the highest bond that a call accepts changes with every challenge, one's own too
        return OutgoingCall(call.name, to, value, data)

    def _simulated(self, call: OutgoingCall) -> int:
        """The gas of a call on the latest state."""
        parameters: TxParams = {"from": self.address, "value": Wei(call.value), "data": HexBytes(call.data)}
        if call.to is not None:
            parameters["to"] = call.to
        with operational(f"send {call.name}"), reverting(call.name):
            return self.connection.web3.eth.estimate_gas(parameters)

    def _signed(self, transaction: TxParams) -> bytes:
        return bytes(self.signer.sign_transaction(transaction))

    def _sent(self, call: OutgoingCall, fees: Fees | None = None) -> TxReceipt:
        receipt = self._sent_once(call, fees=fees)
        assert receipt is not None  # only a call with `done` has none
        return receipt

    def _sent_once(
        self, call: OutgoingCall, done: Callable[[], bool] = lambda: False, fees: Fees | None = None
    ) -> TxReceipt | None:
        receipt = self.outbox.send(call, done, fees)
        if receipt is None or receipt["status"] == 1:
            return receipt
        if done():
            return None
        told = f"{call.name} failed in block {receipt['blockNumber']}"
        self.tell(f"{told}: something changed between its simulation and that block, as where somebody else was faster")
        # The contract says why, if it still refuses the call.
        self._simulated(call)
        raise OperationalError(f"{told}, and would succeed now: try again")

    def _paid(self, receipt: TxReceipt) -> None:
        self.receipts.append(receipt)
        self.gas_paid += receipt["gasUsed"] * receipt["effectiveGasPrice"]


def _but_bond(call: ContractCall, data: bytes) -> list[Any]:
    """The arguments of such a call in its calldata, without the highest bond that it accepts."""

    def kept(inputs: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        fields = [(each, value) for each, value in zip(inputs, values, strict=True) if each["name"] != "mostBond"]
        return [kept(each["components"], value) if each["type"] == "tuple" else value for each, value in fields]

    return kept(call.inputs, decode([collapse_if_tuple(each) for each in call.inputs], data[4:]))


@contextmanager
def reverting(name: str) -> Iterator[None]:
    """Turn a custom error of a contract into Reverted; ``name`` is that of the call."""
    try:
        yield
    except ContractCustomError as error:
        raise Reverted(name, *decode_error(HexBytes(str(error.data or "0x")))) from error
    except ContractLogicError as error:
        raise Reverted(name, str(error)) from error


def decode_error(data: bytes) -> tuple[str, tuple[Any, ...]]:
    """Name and arguments of a custom error of any contract of the protocol, as contracts call each other."""
    for abi in (artifact(name)["abi"] for name in contracts()):
        for item in abi:
            if item["type"] == "error" and function_abi_to_4byte_selector(item) == data[:4]:
                return item["name"], tuple(decode([i["type"] for i in item["inputs"]], data[4:]))
    return f"unknown error 0x{data[:4].hex()}", ()
