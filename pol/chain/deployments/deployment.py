"""The protocol's contracts on one chain: their deployment, and the document of their addresses."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import partial

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.account.wallet import Wallet
from pol.chain.beacon.beacon_contract import Beacon
from pol.chain.contract.binding import Binding, deploy_contract
from pol.chain.deployment_rules import BeaconKind, Settings
from pol.chain.deployments.contract_layout import Contracts, lay_out, wiring
from pol.chain.desks.market import Market, MarketAddresses
from pol.chain.node.connection import Connection
from pol.chain.rounds.round_contracts import RoundAddresses, RoundContracts
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError


@dataclass(frozen=True)
class Deployment:
    """The addresses of a deployment on one chain."""

    chain_id: int
    block: int
    """The block of the first contract: no event is older."""
    treasury: ChecksumAddress
    beacon: ChecksumAddress
    one_step: ChecksumAddress
    starts: ChecksumAddress
    desks: MarketAddresses
    beacon_kind: BeaconKind = BeaconKind.BLOCK

    @classmethod
    def of(cls, contracts: Contracts, settings: Settings, chain_id: int, block: int) -> Deployment:
        """The deployment of contracts that are not older than ``block``."""
        return cls(
            chain_id=chain_id,
            block=block,
            treasury=settings.treasury,
            beacon=contracts.beacon,
            one_step=contracts.one_step,
            starts=contracts.starts,
            desks=contracts.desks,
            beacon_kind=settings.beacon,
        )

    def to_json(self) -> str:
        """The document of the addresses."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Deployment:
        """Read the document of `to_json`. Raises ProtocolError: the text is something else."""
        document = canonical_json.parse(text.encode(), "the document of a deployment")
        try:
            return cls(
                chain_id=int(document["chain_id"]),
                block=int(document["block"]),
                beacon_kind=BeaconKind(document["beacon_kind"]),
                desks=MarketAddresses(
                    **{field.name: _address(document["desks"][field.name]) for field in fields(MarketAddresses)}
                ),
                **{name: _address(document[name]) for name in ("treasury", "beacon", "one_step", "starts")},
            )
        except KeyError as error:
            raise ProtocolError(
                f"this is no document of a deployment: no member {error}; name the file that `pol deploy` wrote; that "
                "of `pol deploy --rounds` is for `pol run worker`, `pol run keeper` and `pol explain 0xWORKER`"
            ) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise ProtocolError(
                f"this is no document of a deployment ({error}): name the file that `pol deploy` wrote"
            ) from error

    def market(self, connection: Connection) -> Market:
        """The market's contracts. Raises OperationalError: the connection leads to another chain."""
        require_chain(connection, self.chain_id)
        return Market.at(connection, self.desks, self.block)

    def beacon_on(self, connection: Connection) -> Beacon:
        """The beacon of the market."""
        return Beacon(connection, self.beacon, self.beacon_kind)


def require_chain(connection: Connection, chain_id: int) -> None:
    """Require that a connection leads to the chain of a deployment.

    Raises:
        OperationalError: it leads to another chain.
    """
    if connection.chain_id != chain_id:
        raise OperationalError(
            f"{connection.name} is chain {connection.chain_id}, the contracts are on {chain_id}: "
            "name a node of their chain with --rpc, or another --deployment"
        )


def _address(text: str) -> ChecksumAddress:
    return Web3.to_checksum_address(text)


def deploy(wallet: Wallet, settings: Settings | None = None) -> Deployment:
    """Deploy the protocol at the addresses of the wallet's next contracts; the default treasury is the wallet.

    `pol.chain.deployments.deployment_plan` deploys it at addresses that are known in advance.

    Raises:
        Reverted: a rule of the market is out of bounds, the delay of drand is too short, or the chain has no
            precompiles for drand.
    """
    settings = settings or Settings(treasury=wallet.address)
    block = wallet.connection.block_number()
    contracts = lay_out(partial(deploy_contract, wallet), settings, wallet.address)
    for step in wiring(contracts.desks):
        Binding(wallet.connection, step.address, step.contract).transact(wallet, "wire", *step.arguments)
    return Deployment.of(contracts, settings, wallet.connection.chain_id, block)


@dataclass(frozen=True)
class RoundsDeployment:
    """The addresses of the contracts of rounds on one chain."""

    chain_id: int
    block: int
    """The block of the first contract: no event is older."""
    treasury: ChecksumAddress
    desks: RoundAddresses

    def to_json(self) -> str:
        """The document of the addresses."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RoundsDeployment:
        """Read the document of `to_json`. Raises ProtocolError: the text is something else."""
        document = canonical_json.parse(text.encode(), "the document of a deployment")
        try:
            desks = {
                field.name: Web3.to_checksum_address(document["desks"][field.name]) for field in fields(RoundAddresses)
            }
            treasury = Web3.to_checksum_address(document["treasury"])
            return cls(int(document["chain_id"]), int(document["block"]), treasury, RoundAddresses(**desks))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ProtocolError(
                f"this is no document of the contracts of rounds ({error}): name the file of `pol deploy --rounds`"
            ) from error

    def contracts(self, connection: Connection) -> RoundContracts:
        """The contracts. Raises OperationalError: the connection leads to another chain."""
        require_chain(connection, self.chain_id)
        return RoundContracts.at(connection, self.desks, self.block)
