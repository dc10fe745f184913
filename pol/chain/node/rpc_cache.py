"""Answers of the node that stay true for a while: one look at the chain asks for each thing once."""

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
"""What changes with a block."""
CONSTANT = frozenset({"eth_chainId"})


NAME = "memory of pol"


class Memory:
    """Keeps answers about the latest block while somebody is `looking`, and those that never change for good.

    A middleware of web3; `of` gives the one that a web3 has.
    """

    @classmethod
    def of(cls, web3: Web3) -> Memory:
        """The memory of whoever shares this web3."""
        onion = web3.middleware_onion
        if NAME not in onion:
            memory = cls()
            onion.add(lambda _: memory, NAME)  # type: ignore[arg-type]  # web3 only calls what it is given
            memories[web3] = memory
        return memories[web3]

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


memories: WeakKeyDictionary[Web3, Memory] = WeakKeyDictionary()
"""By the web3 that has them."""
