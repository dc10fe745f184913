"""The protocol's contracts on one chain: deployed once, found again by their addresses."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.artifacts import artifact
from pol.chain.beacon import DRAND_DELAY, Beacon, BeaconKind
from pol.chain.connection import Connection
from pol.chain.game import DisputeGame
from pol.chain.market import TaskMarket
from pol.chain.profiles import Profiles
from pol.chain.wallet import Wallet
from pol.dispute.position import HASH_BITS
from pol.errors import OperationalError, ProtocolError


@dataclass(frozen=True)
class Deployment:
    """Addresses on one chain."""

    chain_id: int
    beacon: ChecksumAddress
    market: ChecksumAddress
    one_step: ChecksumAddress
    starts: ChecksumAddress
    game: ChecksumAddress
    profiles: ChecksumAddress
    profile_game: ChecksumAddress
    treasury: ChecksumAddress
    block: int
    """The first of the contracts was deployed in this block: no event is older."""
    beacon_kind: BeaconKind = BeaconKind.BLOCK

    def to_json(self) -> str:
        """The addresses as a document for the other roles."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Deployment:
        """Read `to_json` back.

        Raises:
            ProtocolError: it is something else.
        """
        try:
            document = json.loads(text)
            kind = BeaconKind(document.pop("beacon_kind", BeaconKind.BLOCK))
            numbers = {name: int(document.pop(name)) for name in ("chain_id", "block")}
            addresses = {name: Web3.to_checksum_address(value) for name, value in document.items()}
            return cls(chain_id=numbers["chain_id"], block=numbers["block"], beacon_kind=kind, **addresses)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProtocolError(f"not a deployment document: {error}") from error

    def contracts(self, connection: Connection) -> tuple[TaskMarket, DisputeGame]:
        """The market, and the game of the verdicts.

        Raises:
            OperationalError: the connection leads to another chain.
        """
        self._require_chain(connection)
        market, game = TaskMarket(connection, self.market), DisputeGame(connection, self.game)
        market.log.start_at(self.block)
        game.log.start_at(self.block)
        return market, game

    def beacon_on(self, connection: Connection) -> Beacon:
        """The beacon that the market draws by."""
        return Beacon(connection, self.beacon, self.beacon_kind)

    def profile_contracts(self, connection: Connection) -> tuple[Profiles, DisputeGame]:
        """The profiles, and their game.

        Raises:
            OperationalError: the connection leads to another chain.
        """
        self._require_chain(connection)
        profiles, game = Profiles(connection, self.profiles), DisputeGame(connection, self.profile_game)
        profiles.log.start_at(self.block)
        game.log.start_at(self.block)
        return profiles, game

    def _require_chain(self, connection: Connection) -> None:
        if connection.chain_id != self.chain_id:
            raise OperationalError(
                f"{connection.name} is chain {connection.chain_id}, the contracts are on {self.chain_id}"
            )


@dataclass(frozen=True)
class GameRules:
    """What a deployment of the game fixes for all of its disputes."""

    bits: int = HASH_BITS
    """Levels of a tree that one move opens: 4 costs least gas, 5 takes fewest moves."""
    replay_grace: int = 1800
    """Seconds that whoever comes on turn has at least, where a segment or a step has to be executed."""
    move_grace: int = 300
    """The same elsewhere: enough for a transaction while blocks are full."""


RULES = GameRules()
"""What is least gas."""


def deploy(
    wallet: Wallet,
    treasury: ChecksumAddress,
    rules: GameRules = RULES,
    beacon_kind: BeaconKind = BeaconKind.BLOCK,
    drand_delay: int = DRAND_DELAY,
) -> Deployment:
    """Deploy the protocol; ``treasury`` is credited what no party gets.

    ``drand_delay`` is the time between a commitment and its round, in seconds: longer than a block may be replaced, and
    than the chain's clock lies behind.

    Raises:
        Reverted: drand's beacon refuses to be where the chain has no precompiles for it, or with too short a delay.
        OperationalError: the node fails.
    """
    block = wallet.connection.block_number()
    arguments = (drand_delay,) if beacon_kind is BeaconKind.DRAND else ()
    beacon = deploy_contract(wallet, beacon_kind.contract, *arguments)
    market = deploy_contract(wallet, "TaskMarket", beacon, treasury)
    one_step = deploy_contract(wallet, "OneStep")
    starts = deploy_contract(wallet, "Starts")
    profiles = deploy_contract(wallet, "Profiles", market, treasury)
    # A game has one resolver, so the disputes about profiles have a game of their own.
    court = (one_step, starts, rules.bits, rules.replay_grace, rules.move_grace)
    game = deploy_contract(wallet, "DisputeGame", market, *court)
    profile_game = deploy_contract(wallet, "DisputeGame", profiles, *court)
    wallet.send(Profiles(wallet.connection, profiles).function("setGame", profile_game))
    wallet.send(TaskMarket(wallet.connection, market).function("setGame", game, profiles))
    return Deployment(
        chain_id=wallet.connection.chain_id,
        beacon=beacon,
        market=market,
        one_step=one_step,
        starts=starts,
        game=game,
        profiles=profiles,
        profile_game=profile_game,
        treasury=treasury,
        block=block,
        beacon_kind=beacon_kind,
    )


def deploy_contract(wallet: Wallet, name: str, *arguments: str | int) -> ChecksumAddress:
    """Deploy one contract of the package; its address.

    Raises:
        OperationalError: the node fails, or reports no address.
    """
    built = artifact(name)
    contract = wallet.connection.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"])
    address = wallet.deploy(contract, *arguments)["contractAddress"]
    if address is None:
        raise OperationalError(f"the node reports no address for contract {name}; try the deployment again")
    return address
