"""The contracts of rounds on one chain: a vault of their own, five desks, and a court."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import get_type_hints

from eth_typing import ChecksumAddress

from pol.chain.contract.binding import read_together
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.vault import StakeVault
from pol.chain.desks.vault_ledger import whole_vault
from pol.chain.node.connection import Connection
from pol.chain.rounds.round_demands import RoundDemands
from pol.chain.rounds.round_disputes import RoundDisputes
from pol.chain.rounds.round_evidence import RoundEvidence
from pol.chain.rounds.round_shares import RoundShares
from pol.chain.rounds.worker_bonds import WorkerBonds


@dataclass(frozen=True)
class RoundAddresses:
    """Addresses of the contracts of rounds."""

    vault: ChecksumAddress
    bonds: ChecksumAddress
    disputes: ChecksumAddress
    evidence: ChecksumAddress
    demands: ChecksumAddress
    shares: ChecksumAddress
    game: ChecksumAddress


@dataclass(frozen=True)
class RoundContracts:
    """The bindings of the contracts of rounds; the members are those of `RoundAddresses`."""

    vault: StakeVault
    bonds: WorkerBonds
    disputes: RoundDisputes
    evidence: RoundEvidence
    demands: RoundDemands
    shares: RoundShares
    game: DisputeGame

    @classmethod
    def at(cls, connection: Connection, addresses: RoundAddresses, block: int) -> RoundContracts:
        """Bind the contracts; no event is older than ``block``."""
        kinds = get_type_hints(cls)
        bindings = {name: kinds[name](connection, address) for name, address in asdict(addresses).items()}
        made = cls(**bindings)
        read_together(bindings.values(), block, made.whole)
        return made

    def whole(self, block: int) -> Iterator[tuple[str, int, int]]:
        """The events that have to be there at a block (`EventCache`)."""
        yield from whole_vault(self.vault, block)
        yield "disputes", *self.game.whole(block)
