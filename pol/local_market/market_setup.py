"""The beginning of a market on this machine: contracts, money, and tickets of those who may be drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pol.chain.account.wallet import Wallet
from pol.chain.deployment_rules import MarketRules, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.node.connection import Connection
from pol.demo.funding import ETHER, fund
from pol.local_market.market_folder import MarketFolder

EACH, BROUGHT, DONATED = 1000 * ETHER, 800 * ETHER, 400 * ETHER
"""What a party gets, what it brings into the vault, and what the deployer gives to the jackpot's fund; wei."""
FAVORED = 6000
"""Tickets of a verifier that lies: another one gets the seat in one of 1,500 tasks."""
DEPLOYER, SUBMITTER = "deployer", "submitter"
RULES = MarketRules(answer_window=3600)
"""The usual ones, but for a shorter wait for a solver that doesn't show its data."""


@dataclass(frozen=True)
class Member:
    """A party that runs here: its role, and how many tickets it has for seats and watches."""

    role: str
    tickets: int = 0


MEMBERS: Mapping[str, Member] = {
    "solver": Member("solver"),
    "verifier-1": Member("verifier", 4),
    "verifier-2": Member("verifier", 4),
    "whistleblower": Member("whistleblower", 8),
}
"""The parties of a market by name."""


def set_up(connection: Connection, folder: MarketFolder, tell: Callable[[str], None]) -> Deployment:
    """Deploy the contracts, and give every party its money and tickets; ``tell`` hears of each part."""
    wallets = {name: Wallet.create(connection, folder.key(name)) for name in (DEPLOYER, SUBMITTER, *MEMBERS)}
    fund(connection, [wallet.address for wallet in wallets.values()], EACH)
    tell(f"{len(wallets)} accounts have {EACH // ETHER} ether each; their keys are in {folder.key_file('').parent}")
    deployer = wallets[DEPLOYER]
    deployment = deploy(deployer, Settings(deployer.address, market=RULES))
    folder.deployment.write_text(deployment.to_json())
    market = deployment.market(connection)
    for wallet in wallets.values():
        market.vault.deposit(wallet, BROUGHT)
    market.jackpot.donate(deployer, DONATED)
    for name, member in MEMBERS.items():
        if member.tickets:
            market.sortition.enrol(wallets[name], member.tickets)
    tell(f"the contracts are deployed ({connection.block_number()} transactions); {folder.deployment} has addresses")
    return deployment


def favor(connection: Connection, folder: MarketFolder, name: str) -> None:
    """Give a party so many tickets that it's nearly always drawn."""
    wallet = Wallet.create(connection, folder.key(name))
    sortition = Deployment.from_json(folder.deployment.read_text()).market(connection).sortition
    missing = FAVORED - sortition.tickets_now(wallet.address)
    if missing > 0:
        sortition.enrol(wallet, missing)
