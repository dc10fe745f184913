"""A deployed contract: calls, and the events by which everybody learns what happened."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress
from web3.contract import Contract
from web3.contract.contract import ContractFunction

from pol.chain.account.wallet import reverting
from pol.chain.artifacts import artifact
from pol.chain.node.connection import Connection, operational
from pol.chain.node.event_cache import EventLog


class Binding:
    """One contract on one chain."""

    def __init__(self, connection: Connection, name: str, address: ChecksumAddress) -> None:
        self.connection = connection
        self.address = address
        self.contract: Contract = connection.web3.eth.contract(address=address, abi=artifact(name)["abi"])
        self.log = EventLog(connection, self.contract)

    def function(self, name: str, *arguments: Any) -> ContractFunction:
        """A call, not yet made or sent."""
        return getattr(self.contract.functions, name)(*arguments)  # type: ignore[no-any-return]  # web3 builds it from the ABI

    def read(self, name: str, *arguments: Any) -> Any:
        """The result of a view.

        Raises:
            Reverted: the view reverts.
            OperationalError: the node fails.
        """
        call = self.function(name, *arguments)
        with operational(f"read {name}"), reverting(name):
            return call.call()

    def events(self, name: str, **arguments: Any) -> list[dict[str, Any]]:
        """The arguments of all events of this name, in order; ``arguments`` fixes some of them."""
        return [event for _, event in self.log.read((name,), **arguments)]
