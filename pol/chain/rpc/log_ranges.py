"""Ranges of blocks in which one node gives logs: nodes limit blocks, logs and bytes of an answer, each in its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from web3.types import RPCResponse

from pol.chain.rpc.rpc_methods import quantity

MOST = 5_000
"""Blocks of a request; most public nodes refuse more."""


class NoLogs(Exception):
    """A node refuses the logs of a single block; the message names it."""


class LogRanges:
    """Splits requests for logs into ranges that one node answers, and learns their length from its refusals."""

    def __init__(self) -> None:
        self.blocks = MOST

    def read(self, ask: Callable[[dict[str, Any]], RPCResponse], query: dict[str, Any]) -> RPCResponse:
        """The logs of a query. A range that is refused is halved: codes and words of limits differ from node to node.

        Raises:
            NoLogs: a single block is refused.
        """
        try:
            first, last = quantity(query.get("fromBlock")), quantity(query.get("toBlock"))
        except ValueError:
            return ask(query)
        logs: list[Any] = []
        while first <= last:
            high = min(last, first + self.blocks - 1)
            answer = ask(query | {"fromBlock": hex(first), "toBlock": hex(high)})
            given = answer.get("result")
            if isinstance(given, list):
                logs += given
                # A passing trouble isn't a limit: the length recovers.
                if high - first + 1 == self.blocks:
                    self.blocks = min(MOST, self.blocks + self.blocks // 8 + 1)
                first = high + 1
            elif high > first:
                self.blocks = (high - first + 1) // 2
            else:
                self.blocks = MOST
                raise NoLogs(f"block {first}: {answer.get('error', given)}")
        return {"jsonrpc": "2.0", "id": 0, "result": logs}
