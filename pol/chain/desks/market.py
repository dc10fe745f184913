"""The market: all of its desks on one chain (docs/spec/market.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import get_type_hints

from eth_typing import ChecksumAddress

from pol.chain.contract.binding import read_together
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.auction_desk import Auction
from pol.chain.desks.challenges import Challenges
from pol.chain.desks.counterclaims import Counterclaims
from pol.chain.desks.data_demands import DataDemands
from pol.chain.desks.dispute_desk import DisputeDesk
from pol.chain.desks.jackpot_desk import JackpotFund
from pol.chain.desks.objections import Objections
from pol.chain.desks.profiles import Profiles
from pol.chain.desks.proof_registry import ProofRegistry
from pol.chain.desks.proven_steps import ProvenSteps
from pol.chain.desks.seats import Seats
from pol.chain.desks.settlement import Settlement
from pol.chain.desks.sortition_desk import Sortition
from pol.chain.desks.task_registry import TaskRegistry
from pol.chain.desks.vault import StakeVault
from pol.chain.desks.vault_ledger import spread, whole_vault
from pol.chain.desks.verdicts import Verdicts
from pol.chain.node.connection import Connection


@dataclass(frozen=True)
class MarketAddresses:
    """Addresses of one market's contracts."""

    vault: ChecksumAddress
    registry: ChecksumAddress
    auction: ChecksumAddress
    seats: ChecksumAddress
    proofs: ChecksumAddress
    profiles: ChecksumAddress
    verdicts: ChecksumAddress
    challenges: ChecksumAddress
    objections: ChecksumAddress
    counterclaims: ChecksumAddress
    demands: ChecksumAddress
    settlement: ChecksumAddress
    sortition: ChecksumAddress
    jackpot: ChecksumAddress
    game: ChecksumAddress
    """Of the verdicts."""
    profile_game: ChecksumAddress
    """A game has one resolver, so the disputes about profiles have one of their own."""
    objection_game: ChecksumAddress
    counterclaim_game: ChecksumAddress
    proven_steps: ChecksumAddress


class Matter(StrEnum):
    """What a dispute of the market is about. Each has its own game, which numbers its disputes from 1."""

    VERDICT = "verdict"
    PROFILE = "profile"
    OBJECTION = "objection"
    """A segment of a solver's log, by equal roots."""
    COUNTERCLAIM = "counterclaim"
    """An objector's claim about such a segment, by thresholds."""


@dataclass(frozen=True)
class Court:
    """The desk that takes disputes about one matter, and the game that decides them."""

    matter: Matter
    desk: DisputeDesk
    game: DisputeGame


@dataclass(frozen=True)
class Market:
    """The bindings of one market's contracts; the members are those of `MarketAddresses`."""

    vault: StakeVault
    registry: TaskRegistry
    auction: Auction
    seats: Seats
    proofs: ProofRegistry
    profiles: Profiles
    verdicts: Verdicts
    challenges: Challenges
    objections: Objections
    counterclaims: Counterclaims
    demands: DataDemands
    settlement: Settlement
    sortition: Sortition
    jackpot: JackpotFund
    game: DisputeGame
    profile_game: DisputeGame
    objection_game: DisputeGame
    counterclaim_game: DisputeGame
    proven_steps: ProvenSteps

    @classmethod
    def at(cls, connection: Connection, addresses: MarketAddresses, block: int) -> Market:
        """Bind the contracts; no event is older than ``block``."""
        kinds = get_type_hints(cls)
        bindings = {name: kind(connection, getattr(addresses, name)) for name, kind in kinds.items()}
        market = cls(**bindings)
        read_together(bindings.values(), block, market.whole)
        return market

    def whole(self, block: int) -> Iterator[tuple[str, int, int]]:
        """The events that have to be there at a block (`EventCache`): wiring, money, and all that is numbered."""
        yield from whole_vault(self.vault, block)
        submitted = Counter(event["submitter"] for event in self.registry.events("TaskSubmitted"))
        for submitter, tasks in spread(submitted.items()):
            yield f"tasks of {submitter}", int(self.registry.read("nonces", submitter, at=block)), tasks
        for matter, court in self.courts.items():
            yield f"disputes about a {matter}", *court.game.whole(block)

    @cached_property
    def courts(self) -> Mapping[Matter, Court]:
        """The courts by matter."""
        pairs: dict[Matter, tuple[DisputeDesk, DisputeGame]] = {
            Matter.VERDICT: (self.challenges, self.game),
            Matter.PROFILE: (self.profiles, self.profile_game),
            Matter.OBJECTION: (self.objections, self.objection_game),
            Matter.COUNTERCLAIM: (self.counterclaims, self.counterclaim_game),
        }
        return {matter: Court(matter, *pair) for matter, pair in pairs.items()}
