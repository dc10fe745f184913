"""A cache of the node's answers: while somebody reads one state of the chain, each request is sent once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from web3 import Web3
from web3.types import RPCEndpoint, RPCResponse

LATEST = frozenset(
    {"eth_call", "eth_getBlockByNumber", "eth_blockNumber", "eth_getLogs", "eth_getBalance", "eth_gasPrice"}
)
"""Answers that change with a block."""
CONSTANT = frozenset({"eth_chainId"})

NAME = "RPC cache of pol"


class RpcCache:
    """Keeps answers about the latest block while somebody is `looking`, and those that never change for good.

    A middleware of web3; `of` gives the one that a web3 has.
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
        self._looking = 0
        self._answers: dict[str, RPCResponse] = {}
        self._constant: dict[str, RPCResponse] = {}

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Within it the chain stands still, until something is sent."""
        self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1
            if not self._looking:
                self._answers.clear()

    def wrap_make_request(self, make_request: Callable[[RPCEndpoint, Any], Any]) -> Callable[[RPCEndpoint, Any], Any]:
        """The same requests, not all of which reach the node."""

        def answer(method: RPCEndpoint, params: Any) -> Any:
            kept = self._constant if method in CONSTANT else self._answers
            if method not in CONSTANT and not (self._looking and method in LATEST):
                # An order to a test node or a transaction: what was true before it may not be any more.
                if method not in LATEST:
                    self._answers.clear()
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
