"""A test node is put back to where it was, and its beacon says what a test is about. Nothing else is arranged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from web3.types import RPCEndpoint

from pol.chain.node.connection import Connection

TRIES = 200
"""Blocks that are tried, each of which is the one with probability 1/4 at least."""


def order(connection: Connection, method: str, *arguments: Any) -> Any:
    """What a test node answers to an order."""
    answer = connection.web3.provider.make_request(RPCEndpoint(method), list(arguments))
    assert "error" not in answer, answer
    return answer["result"]


@contextmanager
def unchanged(connection: Connection) -> Iterator[None]:
    """Afterwards the chain is where it was; what was bound to it before must not read it after."""
    before = order(connection, "evm_snapshot")
    try:
        yield
    finally:
        order(connection, "evm_revert", before)


def until_true(connection: Connection, happens: Callable[[], bool]) -> None:
    """Let ``happens`` run behind one more block, and so on blocks of other hashes, until it is true."""
    for _ in range(TRIES):
        before = order(connection, "evm_snapshot")
        if happens():
            return
        order(connection, "evm_revert", before)
        order(connection, "evm_mine")
    raise AssertionError("no block has the hash that the test needs")
