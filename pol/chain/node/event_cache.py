"""A cache of contracts' events that follows the chain, reorganizations included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eth_typing import BlockNumber, ChecksumAddress
from hexbytes import HexBytes
from web3.exceptions import BlockNotFound
from web3.types import RPCEndpoint

from pol.chain.contract_abi import ContractAbi, checksummed
from pol.chain.node.connection import Connection, operational
from pol.chain.rpc.rpc_methods import quantity
from pol.errors import OperationalError

DEEP = 128
"""Blocks before the last reading that the next one reads again: a back end that lags leaves their events out without a
word."""
REORGANIZED = "a block that was taken back"
NUMBERS, DISPUTANTS = ("number", "dispute"), frozenset({"challenger", "objector"})
"""The arguments that number disputes and what they are about, and those of the events that begin them."""
KEPT = 256
"""Marks kept for reorganizations; after a deeper one everything is read again."""


def no_history(node: str, block: int, event: str) -> OperationalError:
    """The error of a node that leaves out an event that has to be there: nothing that it shows is the whole."""
    return OperationalError(
        f"{node} doesn't have the events since block {block} ({event}). Nothing is decided on this: name a node that "
        "keeps the history since that block, an archive node, as the first --rpc"
    )


@dataclass(frozen=True)
class Mark:
    """A block up to which events have been read."""

    number: int
    hash: HexBytes


@dataclass(frozen=True)
class ReadEvent:
    """An event and its place in the chain; ``arguments`` also has those of the transaction."""

    address: ChecksumAddress
    block: int
    block_hash: HexBytes
    index: int
    name: str
    arguments: dict[str, Any]

    @property
    def place(self) -> tuple[int, int]:
        """By this events are ordered."""
        return self.block, self.index


class EventCache:
    """All events of some contracts, in order; none is older than block ``first``.

    A known event is kept while its block is in the chain, whatever a later answer leaves out. A node without old
    history leaves it out without a word: so ``whole`` tells what has to be there up to a block, as a name, how often it
    has to be there, and how often it is.
    """

    def __init__(
        self,
        connection: Connection,
        contracts: Mapping[ChecksumAddress, ContractAbi],
        first: int = 0,
        whole: Callable[[int], Iterable[tuple[str, int, int]]] = lambda block: (),
    ) -> None:
        self._connection, self._first, self._whole = connection, first, whole
        self._contracts = contracts
        self._events: dict[ChecksumAddress, list[ReadEvent]] = {address: [] for address in contracts}
        self._marks: list[Mark] = []
        self._is_proven = self._is_checking = False
        self._indexes: dict[tuple[ChecksumAddress, str], _Index] = {}
        self._named: dict[Any, int] = {}
        """By value of an argument: which of all events that have come was the last with it."""
        self._came = 0
        self._subjects: dict[int, set[bytes | int]] = {}
        """By the number of a dispute: what it is about. Its game tells of it by this number alone."""

    def events(self, address: ChecksumAddress) -> list[ReadEvent]:
        """The events of one of the contracts.

        Raises:
            OperationalError: the node fails, or doesn't have the whole history.
        """
        if not self._is_checking:
            self._connection.once(self, self._follow)
            if not self._is_proven:
                self.require_whole()
        return self._events[address]

    def find(self, address: ChecksumAddress, names: tuple[str, ...], arguments: Mapping[str, Any]) -> list[ReadEvent]:
        """The events of one of the contracts of these names whose arguments have these values. Raises as `events`."""
        found: Sequence[ReadEvent] = (known := self.events(address))
        if arguments:
            (name, value), *_ = arguments.items()
            index = self._indexes.get((address, name)) or self._indexes.setdefault((address, name), _Index(name))
            found = index.find(known, value)
        return [e for e in found if e.name in names and all(e.arguments[k] == v for k, v in arguments.items())]

    def last_named(self, value: bytes | int) -> int:
        """The number of the last event with this argument, or of the last reorganization. Raises as `events`."""
        self.events(next(iter(self._events)))
        return max(self._named.get(value, 0), self._named.get(REORGANIZED, 0))

    def require_whole(self) -> None:
        """Check that all events are there that have to be. Raises as `events`."""
        self._follow()
        self._is_proven, self._is_checking = False, True
        try:
            for what, due, found in self._whole(self._marks[-1].number):
                if due != found:
                    self._marks = []
                    raise no_history(self._connection.name, self._first, f"{what}: {found}, and {due} in the state")
        finally:
            self._is_checking = False
        self._is_proven = True

    def _follow(self) -> None:
        eth = self._connection.web3.eth
        with operational("read events"):
            latest, marks = eth.get_block("latest"), list(self._marks)
            if marks and marks[-1].hash == latest["hash"]:
                return
            # After a reorganization, forget the events behind the last block that both chains share.
            near = {latest["number"]: latest["hash"], latest["number"] - 1: latest["parentHash"]}
            while marks and (
                marks[-1].hash != near.get(marks[-1].number)
                if marks[-1].number >= latest["number"] - 1
                else not self._stands(marks[-1], latest["number"])
            ):
                marks.pop()
            events = [e for own in self._events.values() for e in own if marks and e.block <= marks[-1].number]
            if not marks or len(marks) < len(self._marks):
                self._came += 1
                self._named[REORGANIZED] = self._came
            if not marks:
                self._is_proven = False
            if not marks or marks[-1].number < latest["number"]:
                first = max(self._first, marks[-1].number - DEEP + 1) if marks else self._first
                events = self._merged(events, first, latest["number"])
                marks.append(Mark(latest["number"], latest["hash"]))
        # Set both at the end: after a failure in between, the next reading starts where this one did.
        self._events, self._marks = {address: [] for address in self._contracts}, marks[-KEPT:]
        for event in events:
            self._events[event.address].append(event)

    def _merged(self, known: list[ReadEvent], first: int, last: int) -> list[ReadEvent]:
        """The known events, and those of the blocks from ``first`` to ``last``; those of each contract in order."""
        recent = {(event.block_hash, event.index): event for event in known if event.block >= first}
        found: dict[tuple[HexBytes, int], ReadEvent] = {}
        query = {"address": list(self._contracts), "fromBlock": hex(first), "toBlock": hex(last)}
        request = self._connection.web3.manager.request_blocking
        # As the node gives them: most are known, and web3 takes long to decode them.
        for log in request(RPCEndpoint("eth_getLogs"), [query]) if first <= last else ():
            key = HexBytes(log["blockHash"]), _number(log["logIndex"])
            if key in recent:
                found[key] = recent.pop(key)
            elif (address := checksummed(log["address"])) in self._contracts:
                found[key] = self._new(address, log)
        left_out = list[ReadEvent]()
        for event in recent.values():
            if self._stands(Mark(event.block, event.block_hash), last):
                left_out.append(event)
            else:
                self._note(event.arguments)  # what it changed is as it was before
        behind = (event for event in known if event.block < first)
        return [*behind, *sorted((*left_out, *found.values()), key=lambda event: event.place)]

    def _new(self, address: ChecksumAddress, log: dict[str, Any]) -> ReadEvent:
        topics = [bytes(HexBytes(topic)) for topic in log["topics"]]
        name, arguments = self._contracts[address].event(topics, bytes(HexBytes(log["data"])))
        block = _number(log["blockNumber"])
        arguments |= {"transaction": bytes(HexBytes(log["transactionHash"])), "block": block}
        self._note(arguments)
        return ReadEvent(address, block, HexBytes(log["blockHash"]), _number(log["logIndex"]), name, arguments)

    def _note(self, arguments: Mapping[str, Any]) -> None:
        """An event has come: it names its arguments, and that of a game what the dispute is about that it numbers."""
        self._came += 1
        named = {value for value in arguments.values() if isinstance(value, bytes | int)}
        numbers = {arguments[name] for name in NUMBERS if name in arguments}
        for number in numbers:
            subjects = self._subjects.setdefault(number, set())
            if "taskId" not in arguments:
                named |= subjects
            elif not DISPUTANTS.isdisjoint(arguments):
                subjects |= {arguments["taskId"], *numbers}
        self._named |= dict.fromkeys(named, self._came)

    def _stands(self, mark: Mark, latest: int) -> bool:
        """Whether the chain still has a block; a back end that lags behind ``latest`` may not know it yet."""
        try:
            return self._connection.web3.eth.get_block(BlockNumber(mark.number))["hash"] == mark.hash
        except BlockNotFound:
            return mark.number <= latest


@dataclass(frozen=True)
class ContractEvents:
    """The events of one contract of a cache."""

    cache: EventCache
    address: ChecksumAddress
    has_all: bool = False
    """Whether the cache has the events of all contracts that change what this one shows."""

    def read(self, names: tuple[str, ...], **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
        """Name and arguments of the events of these names whose arguments have these values. Raises as the cache."""
        return [(event.name, dict(event.arguments)) for event in self.cache.find(self.address, names, arguments)]


class _Index:
    """Events by the value of one argument."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._events: list[ReadEvent] = []
        self._found: dict[Any, list[ReadEvent]] = {}

    def find(self, events: list[ReadEvent], value: Any) -> Sequence[ReadEvent]:
        """Those of a contract's events whose argument has this value, in order."""
        if events is not self._events:
            known = len(self._events)
            if events[:known] != self._events:
                known, self._found = 0, {}
            for event in events[known:]:
                if self._name in event.arguments:
                    self._found.setdefault(event.arguments[self._name], []).append(event)
            self._events = events
        return self._found.get(value, ())


def _number(value: Any) -> int:
    return value if isinstance(value, int) else quantity(value)  # an embedded chain gives integers
