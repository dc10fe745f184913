"""The contracts of rounds, their order of creation, and the wiring that names them to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from eth_typing import ChecksumAddress

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding, deploy_contract
from pol.chain.deployment_rules import RULES, GameRules, Settings
from pol.chain.deployments.contract_layout import Create, Wiring
from pol.chain.desks.vault import NATIVE
from pol.chain.rounds.round_contracts import RoundAddresses, RoundContracts

EXIT_DELAY = 24 * 3600
"""The vault's shortest. No desk of rounds uses its exits: workers leave by `WorkerBonds.startLeaving`."""

DESKS = {
    "bonds": "WorkerBonds",
    "disputes": "RoundDisputes",
    "evidence": "RoundEvidence",
    "demands": "RoundDemands",
    "shares": "RoundShares",
}
"""The vault's desks."""


def lay_out_rounds(create: Create, settings: Settings, deployer: ChecksumAddress) -> RoundAddresses:
    """Create every contract after those that its constructor names; ``deployer`` may wire them.

    Of the settings, treasury, token and the rules of the game are used.
    """
    vault = create("StakeVault", settings.token or NATIVE, EXIT_DELAY, NATIVE, deployer)
    bonds = create("WorkerBonds", vault, settings.treasury)
    disputes, evidence, demands, shares = (create(DESKS[name], vault) for name in tuple(DESKS)[1:])
    rules = settings.game
    court = (create("OneStep"), create("Starts"), rules.bits, rules.replay_grace, rules.move_grace)
    return RoundAddresses(vault, bonds, disputes, evidence, demands, shares, create("DisputeGame", disputes, *court))


def wiring_of_rounds(at: RoundAddresses) -> Iterator[Wiring]:
    """All wirings, the vault's last: before it no money can come in."""
    addresses = asdict(at)
    for name, contract in DESKS.items():
        yield Wiring(contract, addresses[name], ((at.bonds, at.shares, at.game),))
    yield Wiring("StakeVault", at.vault, ([addresses[name] for name in DESKS],))


def deploy_rounds(
    wallet: Wallet, treasury: ChecksumAddress, rules: GameRules = RULES, token: ChecksumAddress | None = None
) -> RoundContracts:
    """Deploy the contracts of rounds; the wallet can't change anything afterwards.

    treasury: gets what slashed stakes leave to nobody; an address without a key burns it. rules: of the court. `pol
    deploy --rounds` deploys them at addresses that are known in advance.

    Raises:
        Reverted: a number is out of bounds.
    """
    block = wallet.connection.block_number()
    settings = Settings(treasury, rules, token=token)
    addresses = lay_out_rounds(lambda name, *given: deploy_contract(wallet, name, *given), settings, wallet.address)
    for step in wiring_of_rounds(addresses):
        Binding(wallet.connection, step.address, step.contract).transact(wallet, "wire", *step.arguments)
    return RoundContracts.at(wallet.connection, addresses, block)
