"""A deployed contract: calls, and the events by which everybody learns what happened."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress
from web3.contract import Contract
from web3.contract.contract import ContractFunction

from pol.chain.artifacts import artifact
from pol.chain.connection import Connection, operational
from pol.chain.wallet import reverting


class Binding:
    """One contract on one chain."""

    def __init__(self, connection: Connection, name: str, address: ChecksumAddress) -> None:
        self.connection = connection
        self.address = address
        self.contract: Contract = connection.web3.eth.contract(address=address, abi=artifact(name)["abi"])

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
        with reverting(call), operational(f"read {name}"):
            return call.call()

    def events(self, name: str, from_block: int = 0, **arguments: Any) -> list[dict[str, Any]]:
        """The arguments of all events of this name in order; indexed arguments can be fixed."""
        with operational(f"read {name} events"):
            event = getattr(self.contract.events, name)()
            logs = event.get_logs(from_block=from_block, argument_filters=arguments or None)
        return [dict(log["args"]) | {"transaction": bytes(log["transactionHash"])} for log in logs]

    def history(self, names: tuple[str, ...], **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
        """Events of several names, merged in the order in which they happened."""
        with operational("read events"):
            logs = [
                log
                for name in names
                for log in getattr(self.contract.events, name)().get_logs(from_block=0, argument_filters=arguments)
            ]
        logs.sort(key=lambda log: (log["blockNumber"], log["logIndex"]))
        return [(log["event"], dict(log["args"]) | {"transaction": bytes(log["transactionHash"])}) for log in logs]
