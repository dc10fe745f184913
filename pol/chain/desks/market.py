"""The market: all of its desks on one chain (docs/spec/market.md)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from eth_typing import ChecksumAddress

from pol.chain.contract.contract import Binding
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.challenges import Challenges
from pol.chain.desks.data_demands import DataDemands
from pol.chain.desks.jackpot_fund import Jackpot
from pol.chain.desks.profiles import Profiles
from pol.chain.desks.proof_registry import ProofRegistry
from pol.chain.desks.proven_steps import ProvenSteps
from pol.chain.desks.seats import Seats
from pol.chain.desks.settlement import Settlement
from pol.chain.desks.solver_auction import Auction
from pol.chain.desks.task_registry import TaskRegistry
from pol.chain.desks.vault import StakeVault
from pol.chain.desks.verdicts import Verdicts
from pol.chain.desks.verifier_tickets import Sortition
from pol.chain.node.connection import Connection


@dataclass(frozen=True)
class Desks:
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
    """One market as a party sees it."""

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
    jackpot: Jackpot
    game: DisputeGame
    profile_game: DisputeGame
    proven_steps: ProvenSteps

    @classmethod
    def at(cls, connection: Connection, desks: Desks, block: int) -> Market:
        """Bind the contracts; no event is older than ``block``."""
        market = cls(
            vault=StakeVault(connection, desks.vault),
            registry=TaskRegistry(connection, desks.registry),
            auction=Auction(connection, desks.auction),
            seats=Seats(connection, desks.seats),
            proofs=ProofRegistry(connection, desks.proofs),
            profiles=Profiles(connection, desks.profiles),
            verdicts=Verdicts(connection, desks.verdicts),
            challenges=Challenges(connection, desks.challenges),
            demands=DataDemands(connection, desks.demands),
            settlement=Settlement(connection, desks.settlement),
            sortition=Sortition(connection, desks.sortition),
            jackpot=Jackpot(connection, desks.jackpot),
            game=DisputeGame(connection, desks.game),
            profile_game=DisputeGame(connection, desks.profile_game),
            proven_steps=ProvenSteps(connection, desks.proven_steps),
        )
        for field in fields(market):
            binding: Binding = getattr(market, field.name)
            binding.log.start_at(block)
        return market
