"""A cache of a contract's events that follows the chain, reorganizations included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_typing import BlockNumber
from eth_utils.abi import event_abi_to_log_topic
from hexbytes import HexBytes
from web3.contract import Contract
from web3.exceptions import BlockNotFound
from web3.types import LogReceipt

from pol.chain.node.connection import Connection, operational

CHUNK = 5_000
"""Blocks of one request; public nodes refuse more."""
KEPT = 256
"""Marks kept for reorganizations; after a deeper one everything is read again."""


@dataclass(frozen=True)
class Mark:
    """A block up to which ``events`` events have been read."""

    number: int
    hash: HexBytes
    events: int


class EventCache:
    """All events of one contract, in order."""

    def __init__(self, connection: Connection, contract: Contract) -> None:
        self._connection = connection
        self._contract = contract
        events = [item for item in contract.abi if item["type"] == "event"]
        self._names = {event_abi_to_log_topic(e): e["name"] for e in events if not e.get("anonymous")}
        self._anonymous = {e["name"]: e["inputs"] for e in events if e.get("anonymous")}
        self._events: list[tuple[str, dict[str, Any]]] = []
        self._first = 0
        self._marks: list[Mark] = []

    def start_at(self, block: int) -> None:
        """Read no block before this one, in which the contract was deployed."""
        self._first, self._events, self._marks = block, [], []

    def read(self, names: tuple[str, ...], **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
        """Name and arguments of the events of these names whose arguments have these values.

        Raises:
            OperationalError: the node fails.
        """
        self._follow()
        wanted = arguments.items()
        return [(n, dict(e)) for n, e in self._events if n in names and all(e[k] == v for k, v in wanted)]

    def _follow(self) -> None:
        eth = self._connection.web3.eth
        with operational("read events"):
            marks = list(self._marks)
            # After a reorganization, forget the events behind the last block that both chains share.
            while marks and not self._stands(marks[-1]):
                marks.pop()
            events = self._events[: marks[-1].events if marks else 0]
            latest = eth.get_block("latest")
            for low in range(marks[-1].number + 1 if marks else self._first, latest["number"] + 1, CHUNK):
                high = min(low + CHUNK - 1, latest["number"])
                logs = eth.get_logs({"address": self._contract.address, "fromBlock": low, "toBlock": high})
                events += [self._decoded(log) for log in logs]
        # Set both at the end: after a failure in between, the next reading starts where this one did.
        if not marks or marks[-1].number < latest["number"]:
            marks.append(Mark(latest["number"], latest["hash"], len(events)))
        self._events, self._marks = events, marks[-KEPT:]

    def _stands(self, mark: Mark) -> bool:
        """Whether the chain still has the block of a mark."""
        try:
            return self._connection.web3.eth.get_block(BlockNumber(mark.number))["hash"] == mark.hash
        except BlockNotFound:
            return False

    def _decoded(self, log: LogReceipt) -> tuple[str, dict[str, Any]]:
        name = self._names.get(bytes(log["topics"][0]))
        if name is None:
            name, arguments = self._bare(log)
        else:
            arguments = dict(getattr(self._contract.events, name)().process_log(log)["args"])
        return name, arguments | {"transaction": bytes(log["transactionHash"]), "block": int(log["blockNumber"])}

    def _bare(self, log: LogReceipt) -> tuple[str, dict[str, Any]]:
        """The one anonymous event of a contract: its topics are numbers, its data bytes without an ABI encoding."""
        ((name, inputs),) = self._anonymous.items()
        numbers = [int.from_bytes(topic, "big") for topic in log["topics"]]
        indexed = [i["name"] for i in inputs if i["indexed"]]
        return name, dict(zip(indexed, numbers, strict=True)) | {inputs[-1]["name"]: bytes(HexBytes(log["data"]))}
