"""A cache of a node's answers, for a stretch of reads from one state of the chain."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from web3 import Web3
from web3.types import RPCEndpoint, RPCResponse

LATEST = frozenset(
    f"eth_{name}"
    for name in ("call", "getBlockByNumber", "blockNumber", "getLogs", "getBalance", "getCode", "gasPrice")
)
"""Answers that change with a block."""
CONSTANT = frozenset({"eth_chainId"})

NAME = "RPC cache of pol"


class RpcCache:
    """Keeps answers about the latest block while it is `active`, and constant ones for good.

    A middleware of web3; `of` returns the one of a web3.
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
        self._answers: dict[str, RPCResponse] = {}
        self._constant: dict[str, RPCResponse] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, answers about the latest block are kept until something is sent."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.forget()

    def forget(self) -> None:
        """Ask again for all that may have changed."""
        self._answers.clear()

    def wrap_make_request(self, make_request: Callable[[RPCEndpoint, Any], Any]) -> Callable[[RPCEndpoint, Any], Any]:
        """`make_request` behind the cache."""

        def answer(method: RPCEndpoint, params: Any) -> Any:
            kept = self._constant if method in CONSTANT else self._answers
            if method not in CONSTANT and not (self._depth and method in LATEST):
                # A transaction or an order to a test node may change every answer.
                if method not in LATEST:
                    self.forget()
                return make_request(method, params)
            key = json.dumps([method, params], default=str, sort_keys=True)
            if key not in kept:
                response = make_request(method, params)
                if "error" in response:
                    return response
                kept[key] = response
            return kept[key]

        return answer


_caches: WeakKeyDictionary[Web3, RpcCache] = WeakKeyDictionary()
