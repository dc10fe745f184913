"""Documents of deployments: deployments/CHAIN.json, written before anything is sent and checked by anybody."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3 import Web3

from pol import __version__
from pol.chain.deployment_rules import MARKET_RULES, BeaconKind, Settings
from pol.chain.deployments.deployment import Deployment, RoundsDeployment, require_chain
from pol.chain.deployments.deployment_check import Assertion, assertions, interface_hash
from pol.chain.deployments.deployment_parameters import document_of, settings_of
from pol.chain.deployments.deployment_plan import Missing, Plan, RoundsDeploymentPlan
from pol.chain.node.connection import Connection
from pol.chain.node.networks import KnownNetwork
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.roles.party.policy import PUBLIC_CHAIN

SAID = {"version", "commit"}
"""Members of a document that only its author can know."""


@dataclass(frozen=True)
class DeploymentTarget:
    """A chain, what is known of it, and what is to be there."""

    connection: Connection
    network: KnownNetwork | None
    folder: Path
    is_of_rounds: bool = False

    @property
    def document(self) -> Path:
        """Where the deployment's document is."""
        return self.folder / f"{self.connection.chain_id}{'-rounds' if self.is_of_rounds else ''}.json"

    def plan(self, settings: Settings, deployer: ChecksumAddress, salt: bytes) -> Plan | RoundsDeploymentPlan:
        """What has to be there."""
        if self.is_of_rounds:
            return RoundsDeploymentPlan(self.connection, settings, deployer, salt)
        return Plan(self.connection, settings, deployer, salt)


def default_of(network: KnownNetwork | None, treasury: ChecksumAddress, outage: int = 0) -> Settings:
    """What holds where the parameters say nothing, on a chain that may halt for ``outage`` seconds."""
    answers = max(MARKET_RULES.answer_window, PUBLIC_CHAIN.min_answer_window + outage)
    beacon = BeaconKind.DRAND if network is None else network.beacon
    return Settings(treasury, market=replace(MARKET_RULES, answer_window=answers), beacon=beacon)


def require_outage(settings: Settings, outage: int) -> None:
    """Check that solvers can answer demands for data after a halt of the chain of ``outage`` seconds."""
    try:
        replace(PUBLIC_CHAIN, outage=outage).require_answer_window(settings.market.answer_window)
    except ProtocolError as error:
        raise ProtocolError(
            f"market.answer_window is {settings.market.answer_window} s, and a halt of the chain may take {outage} s: "
            f"{PUBLIC_CHAIN.min_answer_window + outage} s are needed at least; raise it, or name a shorter halt "
            "(--outage)"
        ) from error


def keep(
    target: DeploymentTarget, plan: Plan | RoundsDeploymentPlan, missing: Missing, since: int | None = None
) -> int:
    """Write the document before anything is sent, so that a second run knows the first block; that block.

    ``since`` is that block where the document is lost. The document of another deployment is kept under another name.

    Raises:
        OperationalError: the contracts are there and nobody says since when; or the document can't be written.
    """
    first = target.connection.block_number() if since is None else since
    before = _read(target.document) if target.document.exists() else None
    desks = plan.deployment(first).desks
    if before is not None:
        old = _made(target, before)
        if old.desks == desks:
            first = old.block
        else:
            aside = target.document.with_name(f"{target.document.stem}-{old.desks.vault.lower()}.json")
            target.document.replace(aside)
    elif since is None and desks.vault not in {step.address for step in missing.creations}:
        raise OperationalError(
            f"this deployment is on the chain, and {target.document} isn't there to say since when: put the document "
            "back, name its folder with --out, or say --since BLOCK, the block of its vault's creation"
        )
    try:
        target.folder.mkdir(parents=True, exist_ok=True)
        draft = target.document.with_suffix(".draft")
        draft.write_text(json.dumps(document(plan, first), indent=2, sort_keys=True) + "\n")
        os.replace(draft, target.document)
    except OSError as error:
        raise OperationalError(f"can't write {target.document}: {reason_of(error)}; nothing was sent") from error
    return first


def document(plan: Plan | RoundsDeploymentPlan, block: int) -> dict[str, Any]:
    """What a deployment's file says: addresses, what they follow from, interfaces; no event is older than ``block``."""
    made = plan.deployment(block).to_json()
    addresses: dict[str, Any] = canonical_json.parse(made.encode(), "the deployment")
    return addresses | {
        "deployer": plan.deployer,
        "salt": "0x" + plan.salt.hex(),
        "parameters": document_of(plan.settings),
        "version": __version__,
        "commit": _commit(),
        "contracts": {
            step.address: {
                "contract": step.contract,
                "abi": interface_hash(step.contract),
                "arguments": _plain(step.arguments),
            }
            for step in plan.creations
        },
    }


def _made(target: DeploymentTarget, document: dict[str, Any]) -> Deployment | RoundsDeployment:
    text = json.dumps(document)
    return RoundsDeployment.from_json(text) if target.is_of_rounds else Deployment.from_json(text)


def _plain(arguments: Sequence[Any]) -> Any:
    text = json.dumps(arguments, default=lambda value: HexBytes(value).to_0x_hex())
    return canonical_json.parse(text.encode(), "the arguments")


def _commit() -> str | None:
    """The commit that the package is of, with a plus if something differs; None if it isn't in a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", root, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _read(path: Path) -> dict[str, Any]:
    try:
        document = canonical_json.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise OperationalError(f"can't read the deployment {path}: {reason_of(error)}") from error
    if not isinstance(document, dict) or not {"deployer", "salt", "parameters", "block"} <= document.keys():
        raise ProtocolError(
            f"{path} isn't a document of pol deploy: name the folder of one by --out; what `pol up` deploys has none"
        )
    return document


def check(target: DeploymentTarget) -> list[Assertion]:
    """What has to hold of the deployment that the target's document describes."""
    kept = _read(target.document)
    made = _made(target, kept)
    require_chain(target.connection, made.chain_id)
    try:
        deployer, salt = Web3.to_checksum_address(kept["deployer"]), bytes(HexBytes(kept["salt"]))
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"{target.document} has no deployer or no salt ({error}): ask for the true one") from error
    plan = target.plan(settings_of(kept["parameters"], Settings(made.treasury)), deployer, salt)
    if made != plan.deployment(made.block):
        return [Assertion("addresses follow from the parameters and this package's contracts", True, False)]
    expected, found = (dict(_members(each)) for each in (document(plan, made.block), kept))
    names = sorted((expected.keys() | found.keys()) - SAID)
    told = [Assertion(f"the document's {name}", expected.get(name), found.get(name)) for name in names]
    return [*told, *assertions(plan, made.block)]


def _members(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    inner = value.items() if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else ()
    for key, each in inner:
        yield from _members(each, f"{name}.{key}" if name else str(key))
    if not inner:
        yield name, value
