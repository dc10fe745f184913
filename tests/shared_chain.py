"""One node for all tests of a process: each deployment is made on it once, and a user leaves the chain as it was."""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from anvil_node import anvil_node
from memory_chain import memory_node
from node_snapshots import order, unchanged
from pol.chain.node.connection import Connection

T = TypeVar("T")
BASE_FEE = 10**7
"""Wei, about that of a node after one deployment: it falls with every block, whoever has made that."""


class SharedChain:
    """A chain that is lent to one user after the other; what is deployed for one of them stays for the next."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._made: dict[Hashable, Any] = {}
        self._borrowers = 0

    @contextmanager
    def lent(self, key: Hashable = None, make: Callable[[Connection], T] = lambda connection: None) -> Iterator[T]:
        """What `make` deploys under the name `key`: it is made once, and nobody has changed anything since.

        What is made while somebody else has the chain goes with that borrower.
        """
        made = self._made[key] if key in self._made else make(self.connection)
        if not self._borrowers:
            self._made[key] = made
        self._borrowers += 1
        try:
            with unchanged(self.connection):
                self._begin_now()
                yield made
        finally:
            self._borrowers -= 1
            order(self.connection, "evm_setAutomine", True)
            order(self.connection, "anvil_removeBlockTimestampInterval")

    def _begin_now(self) -> None:
        """As on a new node: the chain's time is that of this machine, and gas has one price."""
        order(self.connection, "anvil_setNextBlockBaseFeePerGas", hex(BASE_FEE))
        order(self.connection, "evm_setNextBlockTimestamp", max(int(time.time()), self.connection.now() + 1))
        order(self.connection, "evm_mine")


@contextmanager
def shared_node() -> Iterator[SharedChain]:
    """A new node to share, which has old states, too."""
    with anvil_node() as url:
        yield SharedChain(Connection.to(url))


@contextmanager
def shared_chain() -> Iterator[SharedChain]:
    """A new chain in memory to share."""
    with memory_node() as connection:
        yield SharedChain(connection)
