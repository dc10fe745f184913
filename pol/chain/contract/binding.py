"""A deployed contract: creation, calls and events."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar, TypeVar

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3.exceptions import Web3RPCError
from web3.types import RPCEndpoint, TxReceipt

from pol.chain.account.typed_data import signing_domain
from pol.chain.account.wallet import Reverted, Wallet, reverting
from pol.chain.contract.structs import decoded
from pol.chain.contract_abi import ContractAbi, ContractCall, init_code
from pol.chain.node.connection import Connection, operational
from pol.chain.node.event_cache import ContractEvents, EventCache
from pol.errors import OperationalError

T = TypeVar("T")
DIGITS, FEW = 8, 6
"""Of bytes, and of values of a list, in a line for people."""


class Binding:
    """One contract on one chain. A subclass has one function per verb; those that send take the sender's wallet.

    contract: the name of the contract, where it isn't that of the class. No event is older than block ``since``.
    """

    CONTRACT: ClassVar[str]

    def __init_subclass__(cls, contract: str | None = None) -> None:
        super().__init_subclass__()
        cls.CONTRACT = contract or cls.__name__

    def __init__(
        self, connection: Connection, address: ChecksumAddress, contract: str | None = None, since: int = 0
    ) -> None:
        self.connection = connection
        self.address = address
        self.abi = ContractAbi.of(contract or self.CONTRACT)
        self.log = ContractEvents(EventCache(connection, {address: self.abi}, since), address)

    def function(self, name: str, *arguments: Any) -> ContractCall:
        """A call, not yet made or sent."""
        return self.abi.call(self.address, name, *arguments)

    def read(self, name: str, *arguments: Any, at: int | None = None, about: bytes | int | None = None) -> Any:
        """The result of a view, by default at the latest block.

        Args:
            about: a word that every event has whose transaction changes the result, as an argument: the result is kept
                until there is one.

        Raises:
            Reverted: the view reverts.
        """
        return self._read(None, name, arguments, at, about)

    def read_as(self, kind: type[T], name: str, *arguments: Any, about: bytes | int | None = None) -> T:
        """The result of a view as ``kind`` (`pol.chain.contract.structs.decoded`). Raises as `read`."""
        return self._read(kind, name, arguments, None, about)  # type: ignore[no-any-return]  # decoded as this kind

    def _read(
        self, kind: type[Any] | None, name: str, arguments: tuple[Any, ...], at: int | None, about: bytes | int | None
    ) -> Any:
        def ask() -> Any:
            try:
                found = called(self.connection, self.abi, self.function(name, *arguments), at)
            except Reverted as refusal:
                return refusal
            return found if kind is None else decoded(kind, found)

        news = None if about is None or not self.log.has_all else partial(self.log.cache.last_named, about)
        found = self.connection.once((self, kind, name, repr(arguments), at), ask, news)
        if isinstance(found, Reverted):
            raise found.with_traceback(None)
        return found

    def transact(self, wallet: Wallet, name: str, *arguments: Any, value: int = 0) -> TxReceipt:
        """Send a call with ``value`` wei and wait until it is in a block. Raises Reverted: the contract refuses it."""
        return wallet.send(self.function(name, *arguments), value)

    def events(self, name: str, **arguments: Any) -> list[dict[str, Any]]:
        """The arguments of all events of this name, in order; ``arguments`` fixes some of them."""
        return [event for _, event in self.log.read((name,), **arguments)]

    def last_event(self, what: str, name: str, until: int | None = None, **arguments: Any) -> dict[str, Any]:
        """The arguments of the last such event up to block ``until``; ``what`` it is about, for people.

        Raises:
            OperationalError: the node has no record of it.
        """
        events = [e for e in self.events(name, **arguments) if until is None or int(e["block"]) <= until]
        if not events:
            raise OperationalError(
                f"{self.connection.name} has no event {name} of {what}: wait until it is in sync, or name another "
                "--rpc, which keeps the whole history (an archive node)"
            )
        return events[-1]

    def emitted(self, receipt: TxReceipt, name: str) -> dict[str, Any]:
        """The arguments of the one event of this name in a receipt."""
        own = (log for log in receipt["logs"] if log["address"] == self.address)
        events = (self.abi.event([bytes(topic) for topic in log["topics"]], bytes(log["data"])) for log in own)
        (arguments,) = (arguments for event, arguments in events if event == name)
        return arguments

    def signing_domain(self, name: str) -> dict[str, Any]:
        """The EIP-712 domain of signatures for this contract."""
        return signing_domain(name, "1", self.connection.chain_id, self.address)


def view_lines(heard: Mapping[object, object]) -> tuple[str, ...]:
    """What contracts have answered to reads (`Connection.heard`), a line each."""
    lines = list[str]()
    for key, value in heard.items():
        match key:
            case (Binding() as contract, _, str() as name, str() as arguments, _):
                with suppress(ValueError, SyntaxError):
                    arguments = ", ".join(_told(argument) for argument in literal_eval(arguments))
                lines.append(f"{type(contract).__name__}.{name}({arguments}) = {_told(value)}")
    return tuple(lines)


def _told(value: Any) -> str:
    """A value in a line: bytes by their first digits, and of a list the first values."""
    if isinstance(value, bytes):
        return value.hex()[:DIGITS]
    if isinstance(value, list | tuple):
        more = ", ..." if len(value) > FEW else ""
        return f"[{', '.join(map(_told, value[:FEW]))}{more}]"
    if is_dataclass(value):
        return ", ".join(f"{each.name} {_told(getattr(value, each.name))}" for each in fields(value))
    return value.name.lower() if isinstance(value, Enum) else str(value)


def read_together(
    bindings: Collection[Binding], since: int, whole: Callable[[int], Iterable[tuple[str, int, int]]]
) -> None:
    """Read the events of contracts of one deployment together, none before ``since``: see `EventCache`."""
    contracts = {binding.address: binding.abi for binding in bindings}
    cache = EventCache(next(iter(bindings)).connection, contracts, since, whole)
    for binding in bindings:
        binding.log = ContractEvents(cache, binding.address, has_all=True)


def called(connection: Connection, abi: ContractAbi, call: ContractCall, at: int | None = None) -> Any:
    """What a call returns, by default at the latest block; nothing is sent.

    Raises:
        Reverted: the contract refuses it.
        OperationalError: the node fails, or there is no such contract.
    """
    request = {"to": call.to, "data": "0x" + call.data.hex()}
    block = "latest" if at is None else hex(at)
    with operational(f"read {call.name}"), reverting(call.name):
        try:
            answer = connection.web3.manager.request_blocking(RPCEndpoint("eth_call"), [request, block])
        except Web3RPCError:
            # web3 knows how each kind of node tells that a contract refuses.
            answer = connection.web3.eth.call({"to": call.to, "data": HexBytes(call.data)}, at)
        return abi.result(call.name, bytes(HexBytes(answer)))


def deploy_contract(wallet: Wallet, name: str, *arguments: Any) -> ChecksumAddress:
    """Create one contract of the package; its address.

    Raises:
        Reverted: its constructor refuses.
        OperationalError: the node fails, or reports no address.
    """
    return wallet.deploy(init_code(name, *arguments))
