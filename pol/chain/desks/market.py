"""The market: all of its desks on one chain (docs/spec/market.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_type_hints

from eth_typing import ChecksumAddress

from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.auction_desk import Auction
from pol.chain.desks.challenges import Challenges
from pol.chain.desks.data_demands import DataDemands
from pol.chain.desks.jackpot_desk import JackpotFund
from pol.chain.desks.profiles import Profiles
from pol.chain.desks.proof_registry import ProofRegistry
from pol.chain.desks.proven_steps import ProvenSteps
from pol.chain.desks.seats import Seats
from pol.chain.desks.settlement import Settlement
from pol.chain.desks.sortition_desk import Sortition
from pol.chain.desks.task_registry import TaskRegistry
from pol.chain.desks.vault import StakeVault
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
    demands: ChecksumAddress
    settlement: ChecksumAddress
    sortition: ChecksumAddress
    jackpot: ChecksumAddress
    game: ChecksumAddress
    """Of the verdicts."""
    profile_game: ChecksumAddress
    """A game has one resolver, so the disputes about profiles have one of their own."""
    proven_steps: ChecksumAddress


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
    demands: DataDemands
    settlement: Settlement
    sortition: Sortition
    jackpot: JackpotFund
    game: DisputeGame
    profile_game: DisputeGame
    proven_steps: ProvenSteps

    @classmethod
    def at(cls, connection: Connection, addresses: MarketAddresses, block: int) -> Market:
        """Bind the contracts; no event is older than ``block``."""
        kinds = get_type_hints(cls)
        bindings = {name: kind(connection, getattr(addresses, name)) for name, kind in kinds.items()}
        for binding in bindings.values():
            binding.log.start_at(block)
        return cls(**bindings)
