"""A deployed contract: creation, calls and events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from eth_typing import ChecksumAddress
from web3 import Web3
from web3.contract import Contract
from web3.contract.contract import ContractFunction
from web3.logs import DISCARD
from web3.types import TxReceipt

from pol.chain.account.typed_data import signing_domain
from pol.chain.account.wallet import Reverted, Wallet, reverting
from pol.chain.artifacts import artifact
from pol.chain.contract.structs import decoded
from pol.chain.node.connection import Connection, operational
from pol.chain.node.event_cache import ContractEvents, EventCache
from pol.errors import OperationalError

T = TypeVar("T")
# Those in use, as web3 takes milliseconds to make one. Each keeps its web3 alive, so the id of that is no other's.
_CONTRACTS: WeakValueDictionary[tuple[int, str, ChecksumAddress], Contract] = WeakValueDictionary()


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
        key = (id(connection.web3), contract or self.CONTRACT, address)
        made = _CONTRACTS.get(key) or connection.web3.eth.contract(address=address, abi=artifact(key[1])["abi"])
        self.contract: Contract = _CONTRACTS.setdefault(key, made)
        self.log = ContractEvents(EventCache(connection, [self.contract], since), self.contract.address)

    def function(self, name: str, *arguments: Any) -> ContractFunction:
        """A call, not yet made or sent."""
        return getattr(self.contract.functions, name)(*arguments)  # type: ignore[no-any-return]  # web3 builds it from the ABI

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
            call = self.function(name, *arguments)
            try:
                with operational(f"read {name}"), reverting(name):
                    found = call.call() if at is None else call.call(block_identifier=at)
            except Reverted as refusal:
                return refusal
            return found if kind is None else decoded(kind, found)

        news = None if about is None or not self.log.has_all else partial(self.log.cache.last_named, about)
        found = self.connection.once((self, kind, name, repr(arguments), at), ask, news)
        if isinstance(found, Reverted):
            raise found.with_traceback(None)
        return found

    def transact(self, wallet: Wallet, name: str, *arguments: Any, value: int = 0) -> TxReceipt:
        """Send a call with ``value`` wei and wait until it is in a block.

        Raises:
            Reverted: the contract refuses it.
        """
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
        (event,) = self.contract.events[name]().process_receipt(receipt, errors=DISCARD)
        return dict(event["args"])

    def signing_domain(self, name: str) -> dict[str, Any]:
        """The EIP-712 domain of signatures for this contract."""
        return signing_domain(name, "1", self.connection.chain_id, self.address)


def read_together(
    bindings: Collection[Binding], since: int, whole: Callable[[int], Iterable[tuple[str, int, int]]]
) -> None:
    """Read the events of contracts of one deployment together, none before ``since``: see `EventCache`."""
    cache = EventCache(next(iter(bindings)).connection, [binding.contract for binding in bindings], since, whole)
    for binding in bindings:
        binding.log = ContractEvents(cache, binding.contract.address, has_all=True)


def factory(web3: Web3, name: str) -> type[Contract]:
    """A contract of the package, not yet created."""
    built = artifact(name)
    return web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])


def deploy_contract(wallet: Wallet, name: str, *arguments: Any) -> ChecksumAddress:
    """Create one contract of the package; its address.

    Raises:
        Reverted: its constructor refuses.
        OperationalError: the node fails, or reports no address.
    """
    return wallet.deploy(factory(wallet.connection.web3, name), *arguments)
