"""Checks of a deployment against the chain, so that nobody has to trust its deployer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eth_typing import ChecksumAddress

from pol.chain.artifacts import artifact
from pol.chain.contract.binding import Binding
from pol.chain.deployment_rules import Settings
from pol.chain.deployments.contract_layout import GAMES, Contracts, wiring
from pol.chain.deployments.deployment_plan import DeploymentSteps, Plan, RoundsDeploymentPlan
from pol.chain.desks.vault import NATIVE
from pol.chain.node.connection import Connection, operational
from pol.commitments.keccak import keccak256


@dataclass(frozen=True)
class Assertion:
    """An expected value beside the one on chain."""

    what: str
    expected: Any
    found: Any

    @property
    def holds(self) -> bool:
        """Whether the two are equal."""
        return bool(self.expected == self.found)


def assertions(plan: Plan | RoundsDeploymentPlan, block: int) -> Iterator[Assertion]:
    """Assertions about code, constructor arguments and wiring; no event is older than ``block``.

    Addresses follow from code and arguments, but the wiring doesn't.
    """
    yield from _created(plan)
    if isinstance(plan, RoundsDeploymentPlan):
        yield from _rounds(plan, block)
        return
    yield from _constructed(plan.connection, plan.settings, plan.contracts, plan.deployer)
    yield from _wired(plan.connection, plan.contracts, block)


def _created(plan: DeploymentSteps) -> Iterator[Assertion]:
    for step in plan.creations:
        with operational(f"look for {step.contract}"):
            code = plan.connection.web3.eth.get_code(step.address)
        yield Assertion(f"{step.contract} is at {step.address}", True, bool(code))


def _rounds(plan: RoundsDeploymentPlan, block: int) -> Iterator[Assertion]:
    """Each desk of rounds knows the others, and the vault knows them."""
    at = plan.desks
    vault = Binding(plan.connection, at.vault, "StakeVault")
    yield Assertion("StakeVault.deployer", plan.deployer, vault.read("deployer"))
    for step in plan.wirings:
        contract = Binding(plan.connection, step.address, step.contract)
        if step.contract == "StakeVault":
            contract.log.start_at(block)
            named = [list(event.values())[:1] for event in contract.events("Wired")]
            yield Assertion("StakeVault was wired once, to", [list(step.arguments)], named)
            continue
        yield Assertion(f"{step.contract}.bonds", at.bonds, contract.read("bonds"))
    for name, address, view, value in (
        ("WorkerBonds", at.bonds, "treasury", plan.settings.treasury),
        ("WorkerBonds", at.bonds, "shares", at.shares),
        ("RoundDisputes", at.disputes, "game", at.game),
        ("DisputeGame", at.game, "market", at.disputes),
    ):
        yield Assertion(f"{name}.{view}", value, Binding(plan.connection, address, name).read(view))


def _constructed(
    connection: Connection, settings: Settings, contracts: Contracts, deployer: ChecksumAddress
) -> Iterator[Assertion]:
    desks, market, game = contracts.desks, settings.market, settings.game
    expected: dict[tuple[str, ChecksumAddress], dict[str, Any]] = {
        ("StakeVault", desks.vault): {
            "asset": settings.token or NATIVE,
            "exitDelay": market.exit_delay,
            "trustedForwarder": contracts.forwarder,
            "deployer": deployer,
            "wired": True,
        },
        ("Sortition", desks.sortition): {"unit": market.unit, "watchers": market.watchers},
        ("Jackpot", desks.jackpot): {
            "shares": market.shares,
            "rate": market.rate,
            "commitWindow": market.commit_window,
            "catchWindow": market.catch_window,
            "seatings": desks.verdicts,
        },
        ("Auction", desks.auction): {"entryWork": market.entry_work, "growth": market.growth, "fund": desks.jackpot},
        ("Verdicts", desks.verdicts): {"rate": market.rate, "beacon": contracts.beacon},
        ("Seats", desks.seats): {"beacon": contracts.beacon},
        ("ProofRegistry", desks.proofs): {"beacon": contracts.beacon},
        ("Objections", desks.objections): {"price": market.defense_price, "provenSteps": desks.proven_steps},
        ("DataDemands", desks.demands): {"window": market.answer_window, "price": market.answer_price},
        ("Settlement", desks.settlement): {"treasury": settings.treasury},
    }
    for game_name, desk in GAMES.items():
        expected["DisputeGame", getattr(desks, game_name)] = {
            "market": getattr(desks, desk),
            "oneStep": contracts.one_step,
            "starts": contracts.starts,
            "width": game.bits,
            "replayGrace": game.replay_grace,
            "moveGrace": game.move_grace,
        }
    for (name, address), views in expected.items():
        contract = Binding(connection, address, name)
        for view, value in views.items():
            yield Assertion(f"{name}.{view}", value, contract.read(view))


def _wired(connection: Connection, contracts: Contracts, block: int) -> Iterator[Assertion]:
    """The wiring: getters of desks, and events of the contracts that keep sets."""
    for step in wiring(contracts.desks):
        contract = Binding(connection, step.address, step.contract)
        if step.contract in ("StakeVault", "Jackpot"):
            contract.log.start_at(block)
            named = [tuple(event.values())[: len(step.arguments)] for event in contract.events("Wired")]
            yield Assertion(f"{step.contract} was wired once, to", [step.arguments], named)
            continue
        views = [entry["name"] for entry in _members(step.contract)]
        for view, value in zip(views, step.arguments[0], strict=True):
            if view.lower().endswith("game"):
                continue  # known to its desk only, which has a getter
            yield Assertion(f"{step.contract}.{view}", value, contract.read(view))
    desks = contracts.desks
    for game, desk in GAMES.items():
        name = desk.capitalize()
        found = Binding(connection, getattr(desks, desk), name).read("game")
        yield Assertion(f"{name}.game", getattr(desks, game), found)


def _members(contract: str) -> list[dict[str, Any]]:
    """The members of the argument of a desk's `wire`, in order."""
    wire = next(entry for entry in artifact(contract)["abi"] if entry.get("name") == "wire")
    members: list[dict[str, Any]] = wire["inputs"][0]["components"]
    return members


def interface_hash(contract: str) -> str:
    """keccak256 of a contract's ABI as compact JSON with sorted keys."""
    text = json.dumps(artifact(contract)["abi"], sort_keys=True, separators=(",", ":"))
    return "0x" + keccak256(text.encode()).hex()
