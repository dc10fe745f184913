"""The rules that a deployment fixes for ever: of its games, its market and its draws."""

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
    """The source of a deployment's randomness."""

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
    """The rules of a deployed game, for all of its disputes."""

    bits: int = HASH_BITS
    """Levels of a tree that one move opens: 4 costs least gas, 5 takes fewest moves."""
    replay_grace: int = 1800
    """Shortest time for a move where a segment or a step has to be executed and hashed; seconds."""
    move_grace: int = 300
    """Shortest time for any other move; seconds. Enough for a transaction while blocks are full, and for small steps:
    a client executes the disputed step again, hashes tensors and follows a fold."""


RULES = GameRules()
"""The rules with the least gas."""


@dataclass(frozen=True)
class MarketRules:
    """The rules of a deployed market, for all of its tasks (docs/spec/incentives.md)."""

    exit_delay: int = 220 * 24 * 3600
    """Seconds in which a resigned ticket's bond can still be forfeited: longer than the longest window and dispute."""
    unit: int = 10**17
    """Bond of a ticket."""
    watchers: int = 4
    """Average number of tickets drawn to watch a seating."""
    shares: int = 8
    """Highest number of watch rewards of a task."""
    rate: int = (1 << 32) // 16
    """Rate of forced errors, times 2^32."""
    commit_window: int = 60
    """Length of the window for commitments at the end of a watch, in seconds: shorter than the replay of a segment."""
    catch_window: int = 7 * 24 * 3600
    """Seconds to claim watch rewards after a task is closed."""
    answer_window: int = 24 * 3600
    """Seconds for a solver's answer to a demand for data; in the first half nobody else may answer."""
    answer_price: int = 10**14
    """Price of an answer on top of gas; where the asset is a token, gas included."""
    defense_price: int = 10**14
    """What the defense of a segment costs its solver on top of its work and gas; where the asset is a token, gas
    included."""
    entry_work: int = 1 << 50
    """Work units for which anybody may bid."""
    growth: int = 4
    """Highest ratio of a solver's promised speed to its proven speed."""


MARKET_RULES = MarketRules()


@dataclass(frozen=True)
class Settings:
    """All that is fixed when contracts are deployed."""

    treasury: ChecksumAddress
    """The receiver of a share of prices."""
    game: GameRules = RULES
    market: MarketRules = MARKET_RULES
    beacon: BeaconKind = BeaconKind.BLOCK
    drand_delay: int = DRAND_DELAY
    """Seconds between a commitment and its round: longer than a reorganization, and than the chain's clock lags."""
    token: ChecksumAddress | None = None
    """The asset, if it isn't the chain's own currency."""
