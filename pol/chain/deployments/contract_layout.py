"""The contracts of a deployment, their order of creation, and the wiring that names them to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from eth_typing import ChecksumAddress

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding, deploy_contract
from pol.chain.deployment_rules import FUND, RULES, BeaconKind, GameRules, Settings
from pol.chain.desks.market import MarketAddresses
from pol.chain.desks.vault import NATIVE
from pol.chain.rounds.round_contracts import RoundAddresses, RoundContracts
from pol.zk.poseidon import permutation_table


class Create(Protocol):
    """Creates a contract of the package, or computes its future address."""

    def __call__(self, contract: str, *arguments: Any) -> ChecksumAddress:
        """The contract's address."""


@dataclass(frozen=True)
class Contracts:
    """Addresses of all contracts of a deployment."""

    forwarder: ChecksumAddress
    beacon: ChecksumAddress
    one_step: ChecksumAddress
    starts: ChecksumAddress
    desks: MarketAddresses


@dataclass(frozen=True)
class Wiring:
    """A call ``wire`` of the deployer, which names contracts to another one, once and for ever."""

    contract: str
    address: ChecksumAddress
    arguments: tuple[Any, ...]


def lay_out(create: Create, settings: Settings, deployer: ChecksumAddress) -> Contracts:
    """Create every contract after those that its constructor names; ``deployer`` may wire them."""
    m, game = settings.market, settings.game
    draws = (settings.drand_delay,) if settings.beacon is BeaconKind.DRAND else ()
    beacon = create(settings.beacon.contract, *draws)
    forwarder = create("Forwarder")
    vault = create("StakeVault", settings.token or NATIVE, m.exit_delay, forwarder, deployer)
    sortition = create("Sortition", vault, m.unit, m.watchers)
    jackpot = create("Jackpot", vault, sortition, m.shares, m.rate, m.commit_window, m.catch_window)
    one_step = create("OneStep")
    starts = create("Starts")
    court = (one_step, starts, game.bits, game.replay_grace, game.move_grace)
    profiles = create("Profiles", vault)
    proven_steps = create("ProvenSteps", vault, create("VectorHash", permutation_table()))
    challenges = create("Challenges", vault, proven_steps)
    objections = create("Objections", vault, proven_steps, m.defense_price)
    counterclaims = create("Counterclaims", vault)
    desks = MarketAddresses(
        vault=vault,
        registry=create("TaskRegistry", vault),
        auction=create("Auction", vault, jackpot, FUND, m.entry_work, m.growth),
        seats=create("Seats", vault, beacon),
        proofs=create("ProofRegistry", vault, beacon),
        profiles=profiles,
        verdicts=create("Verdicts", vault, beacon, m.rate),
        challenges=challenges,
        objections=objections,
        counterclaims=counterclaims,
        demands=create("DataDemands", vault, m.answer_window, m.answer_price),
        settlement=create("Settlement", vault, settings.treasury),
        sortition=sortition,
        jackpot=jackpot,
        game=create("DisputeGame", challenges, *court),
        profile_game=create("DisputeGame", profiles, *court),
        objection_game=create("DisputeGame", objections, *court),
        counterclaim_game=create("DisputeGame", counterclaims, *court),
        proven_steps=proven_steps,
    )
    return Contracts(forwarder, beacon, one_step, starts, desks)


KNOWN = (
    "registry",
    "auction",
    "seats",
    "proofs",
    "profiles",
    "verdicts",
    "challenges",
    "objections",
    "counterclaims",
    "demands",
    "settlement",
    "sortition",
    "jackpot",
)
"""Desks of the vault, and the desks that each desk knows, in the order of contracts/market/MarketDesk.sol."""

GAMES = {
    "game": "challenges",
    "profile_game": "profiles",
    "objection_game": "objections",
    "counterclaim_game": "counterclaims",
}
"""Games, and the desks that start their disputes, in the order of the same file."""

_WIRED = {
    "registry": "TaskRegistry",
    "seats": "Seats",
    "proofs": "ProofRegistry",
    "profiles": "Profiles",
    "verdicts": "Verdicts",
    "challenges": "Challenges",
    "objections": "Objections",
    "counterclaims": "Counterclaims",
    "demands": "DataDemands",
    "settlement": "Settlement",
    "proven_steps": "ProvenSteps",
}
"""Desks that know all others. The last one holds no money: the vault doesn't know it."""


def wiring(desks: MarketAddresses) -> Iterator[Wiring]:
    """All wirings, the vault's last: before it no money can come in."""
    known = tuple(getattr(desks, name) for name in KNOWN)
    for name, contract in _WIRED.items():
        yield Wiring(contract, getattr(desks, name), ((*known, *(getattr(desks, name) for name in GAMES)),))
    yield Wiring("Jackpot", desks.jackpot, (desks.verdicts, [desks.registry]))
    yield Wiring("StakeVault", desks.vault, (list(known),))


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
