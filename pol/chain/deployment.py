"""The protocol's contracts on one chain: deployed once, found again by their addresses."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.beacon import DRAND_DELAY, Beacon, BeaconKind
from pol.chain.binding import Binding
from pol.chain.connection import Connection
from pol.chain.creation import deploy_contract
from pol.chain.market import Desks, Market
from pol.chain.vault import StakeVault
from pol.chain.wallet import Wallet
from pol.dispute.position import HASH_BITS
from pol.errors import OperationalError, ProtocolError

FUND = b"fund".ljust(32, b"\0")
"""The pot of the jackpot that pays and reserves."""


@dataclass(frozen=True)
class Deployment:
    """Addresses on one chain."""

    chain_id: int
    block: int
    """The first of the contracts was deployed in this block: no event is older."""
    treasury: ChecksumAddress
    beacon: ChecksumAddress
    one_step: ChecksumAddress
    starts: ChecksumAddress
    desks: Desks
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
            return cls(
                chain_id=int(document["chain_id"]),
                block=int(document["block"]),
                beacon_kind=BeaconKind(document["beacon_kind"]),
                desks=Desks(**{field.name: _address(document["desks"][field.name]) for field in fields(Desks)}),
                **{name: _address(document[name]) for name in ("treasury", "beacon", "one_step", "starts")},
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProtocolError(f"not a deployment document: {error}") from error

    def market(self, connection: Connection) -> Market:
        """The market's contracts.

        Raises:
            OperationalError: the connection leads to another chain.
        """
        if connection.chain_id != self.chain_id:
            raise OperationalError(
                f"{connection.name} is chain {connection.chain_id}, the contracts are on {self.chain_id}"
            )
        return Market.at(connection, self.desks, self.block)

    def beacon_on(self, connection: Connection) -> Beacon:
        """The beacon that the market draws by."""
        return Beacon(connection, self.beacon, self.beacon_kind)


def _address(text: str) -> ChecksumAddress:
    return Web3.to_checksum_address(text)


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


@dataclass(frozen=True)
class MarketRules:
    """What a deployment of the market fixes for all of its tasks (docs/spec/incentives.md)."""

    exit_delay: int = 220 * 24 * 3600
    """Seconds that a ticket's bond is forfeitable after resigning: longer than the longest window and dispute."""
    unit: int = 10**17
    """What a ticket locks."""
    watchers: int = 4
    """Tickets that watch a seating, on average."""
    shares: int = 8
    """Catches of a task that are paid, at most."""
    rate: int = (1 << 32) // 16
    """How often verdicts are wrong on purpose, times 2^32."""
    commit_window: int = 60
    """Last seconds of the watch in which commitments are taken: less than the replay of a segment takes."""
    catch_window: int = 7 * 24 * 3600
    """Seconds to claim catches, from when a task is closed."""
    answer_window: int = 24 * 3600
    """Seconds in which a solver has to show what somebody demands of its log; the first half is its own."""
    answer_price: int = 10**14
    """What an answer costs on top of gas; where the asset is a token, with the gas."""
    entry_work: int = 1 << 50
    """Work units that anybody may bid for."""
    growth: int = 4
    """How many times faster than what it has proven a solver may promise to be."""


MARKET_RULES = MarketRules()


def deploy(
    wallet: Wallet,
    treasury: ChecksumAddress,
    rules: GameRules = RULES,
    beacon_kind: BeaconKind = BeaconKind.BLOCK,
    drand_delay: int = DRAND_DELAY,
    market_rules: MarketRules = MARKET_RULES,
    token: ChecksumAddress | None = None,
) -> Deployment:
    """Deploy the protocol; ``treasury`` is paid its share of prices.

    ``drand_delay`` is the time between a commitment and its round, in seconds: longer than a block may be replaced, and
    than the chain's clock lies behind. ``token`` is the asset, if it isn't the chain's own currency.

    Raises:
        Reverted: drand's beacon refuses to be where the chain has no precompiles for it, or with too short a delay; a
            rule of the market is out of bounds.
        OperationalError: the node fails.
    """
    block, m = wallet.connection.block_number(), market_rules
    arguments = (drand_delay,) if beacon_kind is BeaconKind.DRAND else ()
    beacon = deploy_contract(wallet, beacon_kind.contract, *arguments)
    vault = StakeVault.deploy(wallet, m.exit_delay, token)
    sortition = deploy_contract(wallet, "Sortition", vault.address, m.unit, m.watchers)
    jackpot = deploy_contract(
        wallet, "Jackpot", vault.address, sortition, m.shares, m.rate, m.commit_window, m.catch_window
    )
    one_step, starts = deploy_contract(wallet, "OneStep"), deploy_contract(wallet, "Starts")
    court = (one_step, starts, rules.bits, rules.replay_grace, rules.move_grace)
    profiles = deploy_contract(wallet, "Profiles", vault.address)
    challenges = deploy_contract(wallet, "Challenges", vault.address)
    desks = Desks(
        vault=vault.address,
        registry=deploy_contract(wallet, "TaskRegistry", vault.address),
        auction=deploy_contract(wallet, "Auction", vault.address, jackpot, FUND, m.entry_work, m.growth),
        seats=deploy_contract(wallet, "Seats", vault.address, beacon),
        proofs=deploy_contract(wallet, "ProofRegistry", vault.address, beacon),
        profiles=profiles,
        verdicts=deploy_contract(wallet, "Verdicts", vault.address, beacon, m.rate),
        challenges=challenges,
        demands=deploy_contract(wallet, "DataDemands", vault.address, m.answer_window, m.answer_price),
        settlement=deploy_contract(wallet, "Settlement", vault.address, treasury),
        sortition=sortition,
        jackpot=jackpot,
        game=deploy_contract(wallet, "DisputeGame", challenges, *court),
        profile_game=deploy_contract(wallet, "DisputeGame", profiles, *court),
    )
    _wire(wallet, vault, desks)
    return Deployment(
        chain_id=wallet.connection.chain_id,
        block=block,
        treasury=treasury,
        beacon=beacon,
        one_step=one_step,
        starts=starts,
        desks=desks,
        beacon_kind=beacon_kind,
    )


WIRED = ("registry", "seats", "proofs", "profiles", "verdicts", "challenges", "demands", "settlement")
"""Desks that know all others."""


def _wire(wallet: Wallet, vault: StakeVault, desks: Desks) -> None:
    """Name the desks to each other and to the vault, once and for ever."""
    order = ("registry", "auction", "seats", "proofs", "profiles", "verdicts", "challenges", "demands", "settlement")
    known = tuple(getattr(desks, name) for name in (*order, "sortition", "jackpot", "game", "profile_game"))
    market = Market.at(wallet.connection, desks, wallet.connection.block_number())
    for name in WIRED:
        desk: Binding = getattr(market, name)
        wallet.send(desk.function("wire", known))
    wallet.send(market.sortition.function("wire", []))
    wallet.send(market.jackpot.function("wire", desks.verdicts, [desks.registry]))
    vault.wire(wallet, [getattr(desks, name) for name in (*order, "sortition", "jackpot")])
