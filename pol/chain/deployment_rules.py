"""What a deployment fixes for ever: the rules of its games, of its market, and of its draws."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eth_typing import ChecksumAddress

from pol.dispute.position import HASH_BITS

FUND = b"fund".ljust(32, b"\0")
"""The pot of the jackpot that pays and reserves."""


DRAND_DELAY = 60
"""Seconds between a commitment and its round of drand: five slots of Ethereum."""


class BeaconKind(StrEnum):
    """Where a deployment's randomness comes from."""

    BLOCK = "block"
    """Block hashes: a test network."""
    PREVRANDAO = "prevrandao"
    """The chain's own randomness: a test network."""
    DRAND = "drand"
    """quicknet: any chain that has the precompiles of EIP-2537 (Prague)."""

    @property
    def contract(self) -> str:
        """Name of the contract."""
        return {"block": "BlockBeacon", "prevrandao": "PrevrandaoBeacon", "drand": "DrandBeacon"}[self.value]


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


@dataclass(frozen=True)
class Settings:
    """All that is fixed when contracts are deployed."""

    treasury: ChecksumAddress
    """Is paid its share of prices."""
    game: GameRules = RULES
    market: MarketRules = MARKET_RULES
    beacon: BeaconKind = BeaconKind.BLOCK
    drand_delay: int = DRAND_DELAY
    """Seconds between a commitment and its round: longer than a block may be replaced, and than the chain's clock lies
    behind."""
    token: ChecksumAddress | None = None
    """The asset, if it isn't the chain's own currency."""
