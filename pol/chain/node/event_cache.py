"""A cache of a contract's events that follows the chain, reorganizations included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_typing import BlockNumber
from eth_utils.abi import event_abi_to_log_topic
from hexbytes import HexBytes
from web3.contract import Contract
from web3.exceptions import BlockNotFound
from web3.types import FilterParams, LogReceipt

from pol.chain.node.connection import Connection, operational

DEEP = 128
"""Blocks that are read again with every new one: a back end that lags leaves their events out without a word."""
KEPT = 256
"""Marks kept for reorganizations; after a deeper one everything is read again."""


@dataclass(frozen=True)
class Mark:
    """A block up to which events have been read."""

    number: int
    hash: HexBytes


@dataclass(frozen=True)
class ReadEvent:
    """An event and its place in the chain; ``arguments`` also has those of the transaction."""

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
    """All events of one contract, in order.

    A known event is kept while its block is in the chain, whatever a later answer leaves out.
    """

    def __init__(self, connection: Connection, contract: Contract) -> None:
        self._connection = connection
        self._contract = contract
        events = [item for item in contract.abi if item["type"] == "event"]
        self._names = {event_abi_to_log_topic(e): e["name"] for e in events if not e.get("anonymous")}
        self._anonymous = {e["name"]: e["inputs"] for e in events if e.get("anonymous")}
        self.start_at(0)

    def start_at(self, block: int) -> None:
        """Read no block before this one, in which the contract was deployed."""
        self._first = block
        self._events: list[ReadEvent] = []
        self._marks: list[Mark] = []

    def read(self, names: tuple[str, ...], **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
        """Name and arguments of the events of these names whose arguments have these values."""
        self._follow()
        wanted, found = arguments.items(), ((e.name, e.arguments) for e in self._events if e.name in names)
        return [(name, dict(event)) for name, event in found if all(event[k] == v for k, v in wanted)]

    def _follow(self) -> None:
        eth = self._connection.web3.eth
        with operational("read events"):
            latest, marks = eth.get_block("latest"), list(self._marks)
            # After a reorganization, forget the events behind the last block that both chains share.
            while marks and not self._stands(marks[-1], latest["number"]):
                marks.pop()
            events = [event for event in self._events if marks and event.block <= marks[-1].number]
            if not marks or marks[-1].number < latest["number"]:
                deep = max((m.number for m in marks if m.number <= latest["number"] - DEEP), default=self._first - 1)
                events = self._merged(events, deep + 1, latest["number"])
                marks.append(Mark(latest["number"], latest["hash"]))
        # Set both at the end: after a failure in between, the next reading starts where this one did.
        self._events, self._marks = events, marks[-KEPT:]

    def _merged(self, known: list[ReadEvent], first: int, last: int) -> list[ReadEvent]:
        """The known events, and those of the blocks from ``first`` to ``last``."""
        recent = {(event.block_hash, event.index): event for event in known if event.block >= first}
        found: dict[tuple[HexBytes, int], ReadEvent] = {}
        query: FilterParams = {"address": self._contract.address, "fromBlock": first, "toBlock": last}
        for log in self._connection.web3.eth.get_logs(query) if first <= last else ():
            key = log["blockHash"], log["logIndex"]
            found[key] = recent.pop(key) if key in recent else self._decoded(log)
        left_out = [event for event in recent.values() if self._stands(Mark(event.block, event.block_hash), last)]
        behind = (event for event in known if event.block < first)
        return [*behind, *sorted((*left_out, *found.values()), key=lambda event: event.place)]

    def _stands(self, mark: Mark, latest: int) -> bool:
        """Whether the chain still has a block; a back end that lags behind ``latest`` may not know it yet."""
        try:
            return self._connection.web3.eth.get_block(BlockNumber(mark.number))["hash"] == mark.hash
        except BlockNotFound:
            return mark.number <= latest

    def _decoded(self, log: LogReceipt) -> ReadEvent:
        name = self._names.get(bytes(log["topics"][0]))
        if name is None:
            name, arguments = self._bare(log)
        else:
            arguments = dict(getattr(self._contract.events, name)().process_log(log)["args"])
        block = int(log["blockNumber"])
        arguments |= {"transaction": bytes(log["transactionHash"]), "block": block}
        return ReadEvent(block, log["blockHash"], int(log["logIndex"]), name, arguments)

    def _bare(self, log: LogReceipt) -> tuple[str, dict[str, Any]]:
        """The one anonymous event of a contract: its topics are numbers, its data bytes without an ABI encoding."""
        ((name, inputs),) = self._anonymous.items()
        numbers = [int.from_bytes(topic, "big") for topic in log["topics"]]
        indexed = [i["name"] for i in inputs if i["indexed"]]
        return name, dict(zip(indexed, numbers, strict=True)) | {inputs[-1]["name"]: bytes(HexBytes(log["data"]))}
