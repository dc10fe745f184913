"""JSON-RPC methods by what may be done with them, and how a read is tied to a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

PINNED = {
    "eth_call": 1,
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getStorageAt": 2,
    "eth_getTransactionCount": 1,
    "eth_getBlockByNumber": 0,
    "eth_feeHistory": 1,
}
"""Reads of the state at a block, and which parameter names the block."""

RISING = frozenset({"eth_blockNumber", "eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_estimateGas"})
"""Numbers in which honest nodes differ."""

LOCAL = frozenset({"web3_clientVersion", "eth_syncing", "eth_accounts", "net_version"})
"""What a node says about itself."""

READS = (
    PINNED.keys()
    | RISING
    | LOCAL
    | {"eth_chainId", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getBlockByHash"}
)
"""What may be asked any number of times. Anything else is sent once, unless it surely didn't arrive."""

ORDERS = ("evm_", "anvil_", "hardhat_")
"""How the methods begin by which a test chain is moved, back too."""


def varies(method: str, params: Sequence[Any]) -> bool:
    """Whether the answer is a number in which honest nodes differ."""
    return method in RISING or (method == "eth_getTransactionCount" and "pending" in params)


def pinned(method: str, params: Sequence[Any], head: Callable[[], str]) -> list[Any]:
    """The parameters with "latest" replaced by the number of a block, which is asked for only where it is needed."""
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
    """A JSON-RPC quantity: hexadecimal with 0x.

    Raises:
        ValueError: it isn't one.
    """
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("not a quantity")
    return int(value, 16)
