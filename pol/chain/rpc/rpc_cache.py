"""A cache of a node's answers, and one block for all reads of a stretch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from web3 import Web3
from web3.types import RPCEndpoint, RPCResponse

from pol.chain.rpc.rpc_methods import READS, pinned
from pol.errors import OperationalError

LATEST = frozenset(
    f"eth_{name}"
    for name in ("call", "getBlockByNumber", "blockNumber", "getLogs", "getBalance", "getCode", "gasPrice")
)
"""Answers that change with a block."""
CONSTANT = frozenset({"eth_chainId"})
HEAD = "eth_getBlockByNumber", ("latest", False)
"""The request for the block to which the others are pinned."""

NAME = "RPC cache of pol"

T = TypeVar("T")


class RpcCache:
    """Keeps the answers about one block while it is `active`, and constant ones for good.

    All reads of a stretch are of the block that was the latest at its first read. The next stretch asks for the latest
    block again, and the answers stay if it is still the same. A middleware of web3; `of` returns the one of a web3.
    """

    @classmethod
    def of(cls, web3: Web3) -> RpcCache:
        """The cache that everybody shares who uses this web3."""
        onion = web3.middleware_onion
        if NAME not in onion:
            cache = cls()
            onion.add(lambda _: cache, NAME)  # type: ignore[arg-type]  # web3 only calls what it is given
            _caches[web3] = cache
        return _caches[web3]

    def __init__(self) -> None:
        self._depth = 0
        self._head: RPCResponse | None = None
        """The answer to HEAD; None if it has to be asked for again."""
        self._block = ""
        """Hash of the block of the answers."""
        self._answers: dict[str, RPCResponse] = {}
        self._values: dict[object, Any] = {}
        """What follows from the answers."""
        self._constant: dict[str, RPCResponse] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, all answers are of one block until something is sent."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.forget()

    def forget(self) -> None:
        """Look at the latest block again."""
        self._head = None

    def once(self, key: object, work: Callable[[], T]) -> T:
        """``work()``, which follows from the chain alone: once for the block of a stretch, outside of one always."""
        if not self._depth or "result" not in self._latest():
            return work()
        if key not in self._values:
            found = work()
            if self._head is None:
                return found  # what it has sent may have changed it
            self._values[key] = found
        value: T = self._values[key]
        return value

    def wrap_make_request(self, make_request: Callable[[RPCEndpoint, Any], Any]) -> Callable[[RPCEndpoint, Any], Any]:
        """`make_request` behind the cache."""

        def head() -> Any:
            if self._head is None:
                found = make_request(RPCEndpoint(HEAD[0]), HEAD[1])
                if "error" in found or not found["result"]:
                    return found
                if str(found["result"]["hash"]) != self._block:
                    self._answers.clear()
                    self._values.clear()
                self._head, self._block = found, str(found["result"]["hash"])
            return self._head

        self._latest = head

        def number() -> str:
            found = head().get("result")
            if not found:
                raise OperationalError("the node doesn't say which block is the latest; try again later")
            named = found["number"]
            return named if isinstance(named, str) else hex(named)  # an embedded chain gives an integer

        def answer(method: RPCEndpoint, params: Any) -> Any:
            kept = self._constant if method in CONSTANT else self._answers
            if method not in CONSTANT:
                if not (self._depth and method in LATEST):
                    if method not in LATEST:
                        # A transaction has an effect in a new block only; an order to a test node in any.
                        self.forget()
                        self._block = "" if method not in READS else self._block
                    return make_request(method, params)
                if (method, tuple(params)) == HEAD:
                    return head()
                if method == "eth_blockNumber":
                    return {"jsonrpc": "2.0", "id": 0, "result": number()}
                params = pinned(method, params, number)
            key = json.dumps([method, params], default=str, sort_keys=True)
            if key not in kept:
                response = make_request(method, params)
                if "error" in response:
                    return response
                kept[key] = response
            return kept[key]

        return answer


_caches: WeakKeyDictionary[Web3, RpcCache] = WeakKeyDictionary()
