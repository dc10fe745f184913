"""JSON-RPC methods by kind, and reads pinned to a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from web3.types import RPCResponse

PINNED = {
    "eth_call": 1,
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getStorageAt": 2,
    "eth_getTransactionCount": 1,
    "eth_getBlockByNumber": 0,
    "eth_feeHistory": 1,
}
"""Reads of the state at a block, with the index of the parameter that names the block."""

RISING = frozenset({"eth_blockNumber", "eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_estimateGas"})
"""Numbers in which honest nodes differ."""

LOCAL = frozenset({"web3_clientVersion", "eth_syncing", "eth_accounts", "net_version"})
"""Answers of a node about itself."""

READS = (
    PINNED.keys()
    | RISING
    | LOCAL
    | {"eth_chainId", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getBlockByHash"}
)
"""Methods that may be repeated. Any other is sent once, unless it surely didn't arrive."""

ORDERS = ("evm_", "anvil_", "hardhat_")
"""Prefixes of the orders to a test chain, which may send it back."""


def varies(method: str, params: Sequence[Any]) -> bool:
    """Whether the answer is a number in which honest nodes differ."""
    return method in RISING or (method == "eth_getTransactionCount" and "pending" in params)


def pinned(method: str, params: Sequence[Any], head: Callable[[], str]) -> list[Any]:
    """The parameters with "latest" replaced by a block number; calls ``head`` only where needed."""
    params = [*params]
    if method == "eth_getLogs":
        query = dict(params[0])
        ends = [name for name in ("fromBlock", "toBlock") if query.get(name, "latest") == "latest"]
        return [query if "blockHash" in query or not ends else query | dict.fromkeys(ends, head())]
    if (at := PINNED.get(method)) is not None:
        if len(params) == at:
            params.append("latest")
        if params[at] == "latest":
            params[at] = head()
    return params


def quantity(value: Any) -> int:
    """A JSON-RPC quantity: hexadecimal with 0x. Raises ValueError: not a quantity."""
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("not a quantity")
    return int(value, 16)


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
