"""Networks that are known by name. Nothing on them is worth money: every other chain is taken for a main net."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from pol.chain.deployment_rules import BeaconKind
from pol.errors import ProtocolError


@dataclass(frozen=True)
class Network:
    """A test net."""

    name: str
    title: str
    chain_id: int
    beacon: BeaconKind = BeaconKind.DRAND
    rpc: str | None = None
    """Where a node is, if nobody names one: a node of this machine."""
    explorer: str | None = None
    """The pages of its block explorer, a Blockscout."""


NETWORKS = MappingProxyType(
    {
        network.name: network
        for network in (
            Network("anvil", "anvil and hardhat", 31337, BeaconKind.BLOCK, rpc="http://127.0.0.1:8545"),
            Network("ganache", "hardhat and ganache", 1337, BeaconKind.BLOCK, rpc="http://127.0.0.1:8545"),
            Network("embedded", "the embedded chain", 131277322940537, BeaconKind.BLOCK),
            Network("sepolia", "Sepolia", 11155111, explorer="https://eth-sepolia.blockscout.com"),
            Network("hoodi", "Hoodi", 560048, explorer="https://eth-hoodi.blockscout.com"),
            Network("base-sepolia", "Base Sepolia", 84532, explorer="https://base-sepolia.blockscout.com"),
        )
    }
)


def is_test_net(chain_id: int) -> bool:
    """Whether nothing on a chain is worth money."""
    return any(network.chain_id == chain_id for network in NETWORKS.values())


def network_of(name: str) -> Network:
    """The network of a name.

    Raises:
        ProtocolError: there is none.
    """
    if name not in NETWORKS:
        raise ProtocolError(
            f"there is no network {name!r} here: choose one of {', '.join(NETWORKS)}, or leave it out and name a node"
        )
    return NETWORKS[name]
