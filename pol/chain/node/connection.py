"""A connection to Ethereum nodes, or to an embedded chain in this process: blocks, time, balances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import requests
from eth_typing import BlockNumber, ChecksumAddress
from web3 import Web3
from web3.exceptions import BlockNotFound, Web3Exception, Web3RPCError
from web3.middleware import BufferedGasEstimateMiddleware
from web3.types import BlockData, RPCEndpoint

from pol.chain.rpc.node_provider import Endpoints
from pol.chain.rpc.refused_transactions import Refusal
from pol.chain.rpc.rpc_cache import RpcCache
from pol.errors import OperationalError

T = TypeVar("T")
POLL_SECONDS = 0.5
TEST_CLIENTS = ("anvil", "hardhat", "ethereumtester")
"""Nodes with ``evm_increaseTime`` and ``evm_mine``."""


class Connection:
    """One chain.

    To wait, it moves the clock of a test chain (embedded, anvil); on other chains it sleeps.
    """

    def __init__(self, web3: Web3, name: str) -> None:
        self.web3 = web3
        self.name = name
        self._cache = RpcCache.of(web3)
        self._heard: dict[object, object] | None = None
        with operational(f"reach the node at {name}"):
            try:
                self.chain_id = web3.eth.chain_id
                client = str(web3.client_version).lower()
            except (TypeError, ValueError) as error:
                raise OperationalError(f"the server at {name} isn't an Ethereum node: {error}") from error
        self.is_test_chain = any(test in client for test in TEST_CLIENTS)
        # A test chain stands still, and goes back on command.
        if isinstance(web3.provider, Endpoints) and not self.is_test_chain:
            web3.provider.refuse_stale_heads()

    @classmethod
    def to(cls, *urls: str, quorum: int = 1) -> Connection:
        """Connect to the JSON-RPC endpoints of nodes over HTTP; ``quorum`` of them have to agree.

        Raises:
            OperationalError: no node answers, the nodes are on different chains, or fewer than the quorum.
        """
        endpoints = Endpoints(urls, quorum)
        needed = [(BufferedGasEstimateMiddleware, "gas_estimate")]  # not ENS, nor fields as attributes
        return cls(Web3(endpoints, middleware=needed), endpoints.name)

    @classmethod
    def embedded(cls, seed: int = 0) -> Connection:
        """A fresh chain inside this process (py-evm). The seed decides its block hashes.

        Raises:
            OperationalError: the extra ``proof-of-learning[embedded]`` isn't installed.
        """
        from pol.chain.embedded.embedded_chain import embedded_web3

        return cls(embedded_web3(seed), "embedded chain")

    def cached(self) -> AbstractContextManager[None]:
        """Within it, all reads are of one block, and repeated ones come from a cache, until something is sent."""
        return self._cache.active()

    @contextmanager
    def heard(self) -> Iterator[dict[object, object]]:
        """A context: what is read of the chain inside, by what was asked; the latest values."""
        before, heard = self._heard, dict[object, object]()
        self._heard = heard
        try:
            yield heard
        finally:
            self._heard = before

    def forget(self) -> None:
        """Forget what the cache has: time has passed."""
        self._cache.forget()

    def outside(self) -> AbstractContextManager[None]:
        """As outside of `cached`: for work that takes time, and sends."""
        return self._cache.outside()

    def once(self, key: object, work: Callable[[], T], news: Callable[[], int] | None = None) -> T:
        """``work()``, which follows from the chain alone: within `cached` anew only if the chain may have changed it.

        ``news`` says the same number as before while the chain can't have.
        """
        if (held := self._cache.held(key)) is not None:
            if self._heard is not None:
                self._heard[key] = held.value
            return held.value  # type: ignore[no-any-return]  # of the same work
        with operational(f"read the latest block of {self.name}"):
            found = self._cache.once(key, work, news)
        if self._heard is not None:
            self._heard[key] = found
        return found

    def latest(self) -> BlockData:
        """The latest block."""
        return self.once("latest", lambda: self.web3.eth.get_block("latest"))

    def block_number(self) -> int:
        """Number of the latest block."""
        with operational(f"read the latest block of {self.name}"):
            return self.web3.eth.block_number

    def now(self) -> int:
        """Time of the latest block, in seconds since 1970."""
        return int(self.latest()["timestamp"])

    def time_of(self, block: int) -> int:
        """Time of a block, in seconds since 1970."""
        with operational(f"read block {block} of {self.name}"):
            return int(self.web3.eth.get_block(BlockNumber(block))["timestamp"])

    def finalized(self) -> int | None:
        """Number of the last finalized block; None if the node knows none."""
        with operational(f"read the finalized block of {self.name}"):
            try:
                return int(self.web3.eth.get_block("finalized")["number"])
            except (BlockNotFound, Web3RPCError):
                return None

    def balance(self, address: ChecksumAddress) -> int:
        """Balance in wei."""
        with operational(f"read a balance on {self.name}"):
            return self._cache.once(("balance", address), lambda: int(self.web3.eth.get_balance(address)))

    def gas_price(self) -> int:
        """Present price of a unit of gas, in wei."""
        with operational(f"read the gas price of {self.name}"):
            return self._cache.once("gas price", lambda: int(self.web3.eth.gas_price))

    def block_gas_limit(self) -> int:
        """The most gas of a block, as of the latest one."""
        return int(self.latest()["gasLimit"])

    def wait_until(self, timestamp: int) -> None:
        """Return when the chain's time is past ``timestamp``."""
        if self.is_test_chain and (missing := timestamp + 1 - self.now()) > 0:
            self._order("evm_increaseTime", missing)
            self._order("evm_mine")
        while self.now() <= timestamp:
            time.sleep(POLL_SECONDS)
            self.forget()

    def wait_for_block(self, number: int) -> None:
        """Return when block ``number`` is known."""
        while self.block_number() < number:
            if self.is_test_chain:
                self._order("evm_mine")
            else:
                time.sleep(POLL_SECONDS)
            self.forget()

    def _order(self, method: str, *arguments: Any) -> None:
        with operational(f"call {method} on {self.name}"):
            response = self.web3.provider.make_request(RPCEndpoint(method), list(arguments))
        if "error" in response:
            raise OperationalError(f"{self.name} calls itself a test node and refuses {method}: {response['error']}")
        self.forget()


@contextmanager
def operational(action: str) -> Iterator[None]:
    """Turn failures of the node into OperationalError: they prove nothing about anyone."""
    try:
        yield
    except (requests.RequestException, Web3RPCError, Web3Exception, ConnectionError, TimeoutError) as error:
        if Refusal.of(str(error)) is Refusal.FUNDS:
            raise OperationalError(
                f"can't {action}: the account's money doesn't cover the transaction ({error}). Send it coins for "
                "gas, and for the value if it sends some"
            ) from error
        raise OperationalError(f"can't {action}: {error}. Is the node running, and is the URL right?") from error
