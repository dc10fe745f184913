"""Networks that are known here: test networks by name, every other chain is taken for a main net; and rollups."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from pol.chain.deployment_rules import BeaconKind
from pol.errors import ProtocolError


@dataclass(frozen=True)
class KnownNetwork:
    """A test network."""

    name: str
    title: str
    chain_id: int
    beacon: BeaconKind = BeaconKind.DRAND
    rpc: str | None = None
    """Default node: one of this machine."""
    explorer: str | None = None
    """Its block explorer, a Blockscout."""


NETWORKS = MappingProxyType(
    {
        network.name: network
        for network in (
            KnownNetwork("anvil", "anvil and hardhat", 31337, BeaconKind.BLOCK, rpc="http://127.0.0.1:8545"),
            KnownNetwork("ganache", "hardhat and ganache", 1337, BeaconKind.BLOCK, rpc="http://127.0.0.1:8545"),
            KnownNetwork("embedded", "the embedded chain", 131277322940537, BeaconKind.BLOCK),
            KnownNetwork("sepolia", "Sepolia", 11155111, explorer="https://eth-sepolia.blockscout.com"),
            KnownNetwork("hoodi", "Hoodi", 560048, explorer="https://eth-hoodi.blockscout.com"),
            KnownNetwork("base-sepolia", "Base Sepolia", 84532, explorer="https://base-sepolia.blockscout.com"),
        )
    }
)


ROLLUPS = frozenset(
    {10, 130, 324, 8453, 34443, 42161, 42170, 57073, 59144, 81457, 534352, 84532, 421614, 11155420, 1301, 59141, 534351}
)
"""Ids of chains whose blocks one sequencer makes: OP Stack, Arbitrum, Linea, Scroll, zkSync; some are test networks."""

ROLLUP_OUTAGE = 6 * 3600
"""Seconds for which the sequencer of a rollup may stand still, before an honest party may lose by it: a choice."""


def outage_of(chain_id: int) -> int:
    """Seconds of a halt of the chain that terms should survive unless somebody says otherwise: 0 but for rollups."""
    return ROLLUP_OUTAGE if chain_id in ROLLUPS else 0


def is_test_net(chain_id: int) -> bool:
    """Whether a chain is one of the test networks."""
    return any(network.chain_id == chain_id for network in NETWORKS.values())


def network_of(name: str) -> KnownNetwork:
    """The network of a name. Raises ProtocolError: the name is unknown."""
    if name not in NETWORKS:
        raise ProtocolError(
            f"there is no network {name!r} here: choose one of {', '.join(NETWORKS)}, or leave it out and name a node"
        )
    return NETWORKS[name]
