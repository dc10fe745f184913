"""Deployments at addresses that are known before: resumed, checked by anybody, or refused."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from anvil_node import anvil_node
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.contract.creation import FACTORY, address_of
from pol.chain.deployment_rules import MARKET_RULES, BeaconKind, Settings
from pol.chain.deployments.contract_layout import wiring
from pol.chain.deployments.deployment import Deployment
from pol.chain.deployments.deployment_check import assertions
from pol.chain.deployments.deployment_plan import Plan
from pol.chain.node.connection import Connection
from pol.errors import OperationalError, ProtocolError

pytestmark = pytest.mark.long

KEYS = (
    bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    bytes.fromhex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
)
"""Of accounts that anvil gives money."""
SALT = bytes(32)


@pytest.fixture
def connection() -> Iterator[Connection]:
    with anvil_node(hardfork="osaka") as url:
        yield Connection.to(url)


def plan_of(connection: Connection, salt: bytes = SALT, **changes: Any) -> tuple[Plan, Wallet]:
    wallet = Wallet.create(connection, KEYS[0])
    settings = replace(Settings(wallet.address), **changes)
    return Plan(connection, settings, wallet.address, salt), wallet


def test_a_salt_has_32_bytes() -> None:
    with pytest.raises(ProtocolError, match="32 bytes, not 31"):
        address_of(b"", bytes(31))


def test_a_deployment_is_made_once_and_holds(connection: Connection) -> None:
    plan, wallet = plan_of(connection)
    missing = plan.missing()
    assert len(missing) == len(plan.creations) + len(plan.wirings) == 37
    done: list[str] = []
    plan.carry_out(wallet, missing, done.append)
    assert (len(done), done[-1]) == (37, "StakeVault.wire")
    found = list(assertions(plan, 0))
    assert [a for a in found if not a.holds] == []
    assert len(found) > 100
    used = sum(receipt["gasUsed"] for receipt in wallet.receipts)
    assert used <= missing.gas <= 1.25 * used
    for step, receipt in zip(missing.creations, wallet.receipts, strict=False):
        assert receipt["gasUsed"] <= step.gas, step.contract
    again = plan.missing()
    assert len(again) == again.gas == 0
    deployment = Deployment.of(plan.contracts, plan.settings, connection.chain_id, 0)
    assert deployment.market(connection).vault.read("wired")


@pytest.mark.parametrize("stop", [1, 20, 37])
def test_what_stopped_is_gone_on_with(connection: Connection, stop: int) -> None:
    plan, wallet = plan_of(connection)
    sent = 0

    class StoppedError(Exception):
        pass

    def done(name: str) -> None:
        nonlocal sent
        sent += 1
        if sent == stop:
            raise StoppedError

    with pytest.raises(StoppedError):
        plan.carry_out(wallet, plan.missing(), done)
    other, wallet = plan_of(connection)
    missing = other.missing()
    assert len(missing) == 37 - stop
    other.carry_out(wallet, missing, lambda name: None)
    assert all(a.holds for a in assertions(other, 0))
    assert len(wallet.receipts) == 37 - stop


def test_addresses_are_the_same_on_every_chain_and_others_for_others(connection: Connection) -> None:
    with anvil_node("--chain-id", "4242") as url:
        other, _ = plan_of(Connection.to(url))
        plan, _ = plan_of(connection)
        assert other.contracts == plan.contracts
    salted, _ = plan_of(connection, b"\1" * 32)
    changed, _ = plan_of(connection, market=replace(MARKET_RULES, unit=1))
    stranger = Plan(connection, plan.settings, Wallet.create(connection, KEYS[1]).address, SALT)
    assert len({p.contracts.desks.vault for p in (plan, salted, stranger)}) == 3
    assert changed.contracts.desks.vault == plan.contracts.desks.vault
    assert changed.contracts.desks.sortition != plan.contracts.desks.sortition


def test_what_others_have_created_is_no_obstacle_and_they_wire_nothing(connection: Connection) -> None:
    """Anybody may have the factory create the same contracts: they are the deployer's all the same."""
    plan, wallet = plan_of(connection)
    thief = Wallet.create(connection, KEYS[1])
    for step in plan.creations:
        thief.send_data(FACTORY, SALT + step.code, step.contract)
    for step in wiring(plan.contracts.desks):
        with pytest.raises(Reverted, match="NotAllowed"):
            thief.send_data(step.address, plan.data(step), "wire")
    missing = plan.missing()
    assert (len(missing.creations), len(missing.wirings)) == (0, 13)
    plan.carry_out(wallet, missing, lambda name: None)
    assert all(a.holds for a in assertions(plan, 0))


def test_a_deployer_who_wires_something_else_is_seen(connection: Connection) -> None:
    plan, wallet = plan_of(connection)
    plan.carry_out(wallet, replace(plan.missing(), wirings=()), lambda name: None)
    last = plan.wirings[-1]
    bent = replace(last, arguments=([*last.arguments[0], plan.contracts.forwarder],))
    with pytest.raises(Reverted, match="NotADesk"):
        wallet.send_data(bent.address, plan.data(bent), "wire")
    bent = replace(last, arguments=([*last.arguments[0], plan.contracts.beacon],))
    wallet.send_data(bent.address, plan.data(bent), "wire")
    registry = replace(plan.wirings[0], arguments=((*reversed(plan.wirings[0].arguments[0]),),))
    wallet.send_data(registry.address, plan.data(registry), "wire")
    plan.carry_out(wallet, plan.missing(), lambda name: None)
    wrong = {a.what.split(".")[0].split(" ")[0] for a in assertions(plan, 0) if not a.holds}
    assert wrong == {"StakeVault", "TaskRegistry"}


def test_somebody_elses_plan_isnt_carried_out(connection: Connection) -> None:
    plan, _ = plan_of(connection)
    with pytest.raises(OperationalError, match="is of the deployer"):
        plan.carry_out(Wallet.create(connection, KEYS[1]), plan.missing(), lambda name: None)


def test_a_chain_without_the_factory() -> None:
    with anvil_node("--disable-default-create2-deployer") as url:
        plan, _ = plan_of(Connection.to(url))
        with pytest.raises(OperationalError, match="no deterministic deployment proxy"):
            plan.missing()


def test_drand_is_deployed_where_its_precompiles_are(connection: Connection) -> None:
    plan, wallet = plan_of(connection, beacon=BeaconKind.DRAND)
    plan.carry_out(wallet, plan.missing(), lambda name: None)
    assert all(a.holds for a in assertions(plan, 0))
    with anvil_node(hardfork="cancun") as url:
        plan, wallet = plan_of(Connection.to(url), beacon=BeaconKind.DRAND)
        with pytest.raises(Reverted, match="DrandBeacon was refused"):
            plan.carry_out(wallet, plan.missing(), lambda name: None)
