"""Checks of a deployment against the chain, so that nobody has to trust its deployer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pol.chain.contract.binding import Binding
from pol.chain.contract.creation import code_at, expected_code, first_child
from pol.chain.contract_abi import artifact
from pol.chain.deployments.deployment_plan import DeploymentSteps, Plan, RoundsDeploymentPlan
from pol.chain.node.event_cache import no_history
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
    """Assertions about code, with the constructors' arguments in it, and wiring; no event is older than ``block``.

    Where code is wrong nothing else is asked: false code says what it likes.

    Raises:
        OperationalError: the node fails, or doesn't have the events since that block.
    """
    created = list(_created(plan))
    yield from created
    if all(assertion.holds for assertion in created):
        yield from _wired(plan, block)


def _created(plan: DeploymentSteps) -> Iterator[Assertion]:
    """The code at each address is what its creation leaves there: immutables are compared by value."""
    for step in plan.creations:
        expected = expected_code(plan.connection, step.code, step.address)
        due = _digest(expected) if expected else "that of a constructor, which refuses"
        found = _digest(code_at(plan.connection, step.address))
        yield Assertion(f"code of {step.contract} at {step.address}", due, found)
        for kept in (argument for argument in step.arguments if isinstance(argument, bytes) and len(argument) > 32):
            found = _digest(code_at(plan.connection, first_child(step.address)))
            yield Assertion(f"the bytes that {step.contract} keeps", _digest(b"\0" + kept), found)


def _digest(code: bytes) -> str:
    return f"keccak-256 {keccak256(code).hex()}" if code else "no code"


def _wired(plan: Plan | RoundsDeploymentPlan, block: int) -> Iterator[Assertion]:
    """The wiring: getters of desks, and events of the contracts that keep sets."""
    for step in plan.wirings:
        contract = Binding(plan.connection, step.address, step.contract, block)
        if step.contract in ("StakeVault", "Jackpot"):
            named = [tuple(event.values())[: len(step.arguments)] for event in contract.events("Wired")]
            if not named and plan.is_wired(step):
                raise no_history(plan.connection.name, block, f"no {step.contract}.Wired")
            yield Assertion(f"{step.contract} was wired once, to", [step.arguments], named)
            continue
        abi = artifact(step.contract)["abi"]
        members = next(entry for entry in abi if entry.get("name") == "wire")["inputs"][0]["components"]
        views = {entry["name"] for entry in abi if entry["type"] == "function"} - {"game"}
        for member, value in zip(members, step.arguments[0], strict=True):
            if member["name"] in views:
                yield Assertion(f"{step.contract}.{member['name']}", value, contract.read(member["name"]))
        if step.contract in plan.games:
            yield Assertion(f"{step.contract}.game", plan.games[step.contract], contract.read("game"))


def interface_hash(contract: str) -> str:
    """keccak256 of a contract's ABI as compact JSON with sorted keys."""
    text = json.dumps(artifact(contract)["abi"], sort_keys=True, separators=(",", ":"))
    return "0x" + keccak256(text.encode()).hex()
