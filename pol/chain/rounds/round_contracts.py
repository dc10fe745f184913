"""The contracts of rounds on one chain: a vault of their own, five desks, and a court."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import get_type_hints

from eth_typing import ChecksumAddress

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding, deploy_contract
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployment_rules import RULES, GameRules
from pol.chain.desks.vault import NATIVE, StakeVault
from pol.chain.node.connection import Connection
from pol.chain.rounds.round_demands import RoundDemands
from pol.chain.rounds.round_disputes import RoundDisputes
from pol.chain.rounds.round_evidence import RoundEvidence
from pol.chain.rounds.round_shares import RoundShares
from pol.chain.rounds.worker_bonds import WorkerBonds

EXIT_DELAY = 24 * 3600
"""The vault's shortest. No desk of rounds uses its exits: workers leave by `WorkerBonds.startLeaving`."""


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
        for binding in bindings.values():
            binding.log.start_at(block)
        return cls(**bindings)


def deploy_rounds(
    wallet: Wallet,
    treasury: ChecksumAddress,
    rules: GameRules = RULES,
    token: ChecksumAddress | None = None,
) -> RoundContracts:
    """Deploy the contracts of rounds; the wallet can't change anything afterwards.

    treasury: gets what slashed stakes leave to nobody; an address without a key burns it. rules: of the court.

    Raises:
        Reverted: a number is out of bounds.
        OperationalError: the node fails.
    """
    block = wallet.connection.block_number()
    vault = deploy_contract(wallet, "StakeVault", token or NATIVE, EXIT_DELAY, NATIVE, wallet.address)
    bonds = deploy_contract(wallet, "WorkerBonds", vault, treasury)
    disputes, evidence, demands, shares = (
        deploy_contract(wallet, name, vault)
        for name in ("RoundDisputes", "RoundEvidence", "RoundDemands", "RoundShares")
    )
    one_step, starts = deploy_contract(wallet, "OneStep"), deploy_contract(wallet, "Starts")
    court = (one_step, starts, rules.bits, rules.replay_grace, rules.move_grace)
    game = deploy_contract(wallet, "DisputeGame", disputes, *court)
    desks = {
        "WorkerBonds": bonds,
        "RoundDisputes": disputes,
        "RoundEvidence": evidence,
        "RoundDemands": demands,
        "RoundShares": shares,
    }
    for name, address in desks.items():
        Binding(wallet.connection, address, name).transact(wallet, "wire", (bonds, shares, game))
    # Last: before it no money can come in.
    Binding(wallet.connection, vault, "StakeVault").transact(wallet, "wire", list(desks.values()))
    addresses = RoundAddresses(vault, bonds, disputes, evidence, demands, shares, game)
    return RoundContracts.at(wallet.connection, addresses, block)
