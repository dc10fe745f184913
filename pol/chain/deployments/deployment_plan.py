"""The plan of a deployment: addresses, missing contracts, their gas, and the transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3.types import TxParams

from pol.chain.account.gas_fees import DATA_FEE_ROOM, data_fee
from pol.chain.account.wallet import Reverted, Wallet, reverting
from pol.chain.contract.creation import FACTORY, address_of, code_at, require_factory
from pol.chain.contract_abi import ContractAbi, init_code
from pol.chain.deployment_rules import Settings
from pol.chain.deployments.contract_layout import GAMES, Wiring, lay_out, lay_out_rounds, wiring, wiring_of_rounds
from pol.chain.deployments.deployment import Deployment, RoundsDeployment
from pol.chain.node.connection import Connection, operational
from pol.errors import OperationalError

TRANSACTION_GAS, CREATE_GAS, SLOT_GAS = 21_000, 32_000, 22_100
BYTE_GAS, WORD_GAS, DEPOSIT_GAS = (4, 16), 2, 200
"""Gas of a zero and another byte of calldata (EIP-2028), a word of creation code (EIP-3860), a byte of code."""
CONSTRUCTOR_GAS, WIRE_GAS = 80_000, 40_000
"""Upper bounds for executing a constructor, and for a wiring without its writes of addresses."""


@dataclass(frozen=True)
class Creation:
    """The creation of a contract at the address that follows from its code."""

    contract: str
    arguments: tuple[Any, ...]
    address: ChecksumAddress
    code: bytes

    @property
    def gas(self) -> int:
        """Upper bound for its gas."""
        fixed = TRANSACTION_GAS + CREATE_GAS + CONSTRUCTOR_GAS
        return fixed + _calldata_gas(self.code) + len(self.code) * DEPOSIT_GAS + ceil(len(self.code) / 32) * WORD_GAS


@dataclass(frozen=True)
class Missing:
    """The transactions that are still to be sent."""

    creations: tuple[Creation, ...]
    wirings: tuple[Wiring, ...]
    gas: int
    """Upper bound."""
    data_fee: int
    """Wei for data on L1, with room for a rise (`DATA_FEE_ROOM`); 0 but on rollups."""

    def __len__(self) -> int:
        return len(self.creations) + len(self.wirings)

    def cost(self, price: int) -> int:
        """The most that they cost where a unit of gas costs ``price``, in wei."""
        return self.gas * price + self.data_fee


class DeploymentSteps:
    """Contracts of one deployer; settings, deployer and salt give their addresses, the same on every chain."""

    def __init__(self, connection: Connection, settings: Settings, deployer: ChecksumAddress, salt: bytes) -> None:
        self.connection, self.settings, self.deployer, self.salt = connection, settings, deployer, salt
        self.creations: list[Creation] = []
        self.wirings: tuple[Wiring, ...] = ()
        self.games: dict[str, ChecksumAddress] = {}
        """The game of each desk that starts disputes."""

    def place(self, contract: str, *arguments: Any) -> ChecksumAddress:
        """Plan the creation of a contract; its address."""
        code = init_code(contract, *arguments)
        self.creations.append(Creation(contract, arguments, address_of(code, self.salt), code))
        return self.creations[-1].address

    def missing(self) -> Missing:
        """The transactions that the chain lacks.

        Raises:
            OperationalError: the node fails, or the chain lacks the factory.
        """
        require_factory(self.connection)
        creations = tuple(step for step in self.creations if not self._is_there(step))
        wirings = tuple(step for step in self.wirings if not self.is_wired(step))
        gas = sum(step.gas for step in creations) + sum(_wiring_gas(self.data(step), step) for step in wirings)
        sizes = [len(step.code) for step in creations] + [len(self.data(step)) for step in wirings]
        with operational("read the fee for data on L1"):
            data = DATA_FEE_ROOM * data_fee(self.connection.web3, *sizes)
        return Missing(creations, wirings, gas, data)

    def carry_out(self, wallet: Wallet, missing: Missing, done: Callable[[str], None]) -> None:
        """Send the missing transactions one after another; ``done`` gets the name of each once it is in a block.

        After an interruption a second plan finds what is there and goes on.

        Raises:
            Reverted: a contract refuses the settings.
            OperationalError: the node fails, or the wallet isn't the deployer's.
        """
        if wallet.address != self.deployer:
            raise OperationalError(
                f"the plan is of the deployer {self.deployer}: sign with its key, not {wallet.address}'s"
            )
        for creation in missing.creations:
            self._try(creation)
            wallet.send_data_once(
                FACTORY, self.salt + creation.code, creation.contract, partial(self._is_there, creation)
            )
            if not self._is_there(creation):
                raise OperationalError(f"{creation.contract} isn't at {creation.address} after its creation: try again")
            done(creation.contract)
        for step in missing.wirings:
            wallet.send_data_once(step.address, self.data(step), "wire", partial(self.is_wired, step))
            done(f"{step.contract}.wire")

    def _try(self, step: Creation) -> None:
        """Simulate a constructor for its error, which the factory would hide."""
        with operational(f"try to create {step.contract}"), reverting(step.contract):
            self.connection.web3.eth.call({"from": self.deployer, "data": HexBytes(step.code)})

    def _is_there(self, step: Creation) -> bool:
        return bool(code_at(self.connection, step.address))

    def is_wired(self, step: Wiring) -> bool:
        """Whether the contract refuses a second wiring; at an address without code nothing is refused."""
        call: TxParams = {"from": self.deployer, "to": step.address, "data": HexBytes(self.data(step))}
        try:
            with operational(f"look at {step.contract}"), reverting("wire"):
                self.connection.web3.eth.call(call)
        except Reverted as error:
            # The vault refuses desks that don't exist yet.
            if error.error not in ("NotAllowed", "NotADesk"):
                raise
            return error.error == "NotAllowed"
        return False

    def data(self, step: Wiring) -> bytes:
        """Calldata of a wiring."""
        return ContractAbi.of(step.contract).call(step.address, "wire", *step.arguments).data


class Plan(DeploymentSteps):
    """The contracts of the market."""

    def __init__(self, connection: Connection, settings: Settings, deployer: ChecksumAddress, salt: bytes) -> None:
        super().__init__(connection, settings, deployer, salt)
        self.contracts = lay_out(self.place, settings, deployer)
        desks = self.contracts.desks
        self.wirings = tuple(wiring(desks))
        self.games = {desk.capitalize(): getattr(desks, game) for game, desk in GAMES.items()}

    def deployment(self, block: int) -> Deployment:
        """The deployment; none of its contracts is older than ``block``."""
        return Deployment.of(self.contracts, self.settings, self.connection.chain_id, block)


class RoundsDeploymentPlan(DeploymentSteps):
    """The contracts of rounds."""

    def __init__(self, connection: Connection, settings: Settings, deployer: ChecksumAddress, salt: bytes) -> None:
        super().__init__(connection, settings, deployer, salt)
        self.desks = lay_out_rounds(self.place, settings, deployer)
        self.wirings = tuple(wiring_of_rounds(self.desks))
        self.games = {"RoundDisputes": self.desks.game}

    def deployment(self, block: int) -> RoundsDeployment:
        """The deployment; none of its contracts is older than ``block``."""
        return RoundsDeployment(self.connection.chain_id, block, self.settings.treasury, self.desks)


def _calldata_gas(data: bytes) -> int:
    zeros = data.count(0)
    return BYTE_GAS[0] * zeros + BYTE_GAS[1] * (len(data) - zeros)


def _wiring_gas(data: bytes, step: Wiring) -> int:
    return TRANSACTION_GAS + WIRE_GAS + _calldata_gas(data) + _addresses(step.arguments) * SLOT_GAS


def _addresses(arguments: Sequence[Any]) -> int:
    """Number of addresses in nested arguments: each takes a slot."""
    return sum(_addresses(a) if isinstance(a, list | tuple) else 1 for a in arguments)
