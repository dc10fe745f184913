"""A keyless auditor sees what is wrong: money that is missing, pay that differs, an outcome that doesn't follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.simulations.agents import Agent, Behavior
from lab.simulations.population import Population, simulate
from lab.simulations.population_on_chain import Desks
from pol.chain.accounting.settlement_audit import AuditFinding, Auditor
from pol.chain.accounting.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import design

pytestmark = pytest.mark.long

UNIT = 10**18
FOUND = design(Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100))


@pytest.fixture(scope="module")
def scene() -> Desks:
    """A verdict that fell in a dispute, a second one that stood a baseless challenge, and the settlement."""
    scene = Desks(Connection.embedded(5), FOUND, 5)
    replays = iter([False] + [True] * 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agent, "replays", lambda *_: next(replays))
        simulate(FOUND.game, Population({Behavior.GRIEFING: 2}, {Behavior.HONEST: 1}, 0, tasks=1, seed=5), scene)
    return scene


def findings(scene: Desks) -> list[AuditFinding]:
    return list(Auditor(scene.market, scene.treasury).findings())


def wrong(scene: Desks) -> set[str]:
    return {finding.what for finding in findings(scene) if not finding.holds}


Event = tuple[str, dict[str, Any]]


@pytest.fixture
def told(scene: Desks, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Changes what the events of a contract say: ``told(log, name, field, value, which)``."""

    def change(contract: Any, name: str, field: str, value: Any, which: int = -1, **match: Any) -> None:
        contract.log.read((name,))
        events: list[Event] = contract.log._events
        hits = [
            i for i, (n, e) in enumerate(events) if n == name and all(e[key] == told for key, told in match.items())
        ]
        place = hits[which]
        changed = dict(events[place][1])
        changed[field] = value(changed[field]) if callable(value) else value
        monkeypatch.setattr(contract.log, "_events", [*events[:place], (name, changed), *events[place + 1 :]])
        # Nobody reads them again meanwhile.
        monkeypatch.setattr(contract.log, "_follow", lambda: None)

    return change


def test_what_is_recomputed(scene: Desks) -> None:
    assert wrong(scene) == set()
    told = sorted(finding.what for finding in findings(scene))
    assert [what.split()[0] for what in told] == ["dispute", "dispute", "outcome", "settlement", "the"]
    ledger = Ledger.of(scene.market.vault)
    assert ledger.owed == held(scene.market.vault) > 0
    free = ledger.free
    assert all(scene.market.vault.free(account) == amount for account, amount in free.items())
    assert len(free) > 4
    locked = {duty: amount for duty, amount in ledger.locked.items() if amount}
    assert all(
        scene.market.vault.duty(d, key, account).locked == amount for (d, key, account), amount in locked.items()
    )


def test_what_held_is_not_computed_again(scene: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    auditor = Auditor(scene.market, scene.treasury)
    first = list(auditor.findings())
    monkeypatch.setattr(type(scene.market.registry), "terms", lambda *_: pytest.fail("asked again"))
    assert list(auditor.findings()) == first


def test_money_that_is_missing(scene: Desks, told: Callable[..., None]) -> None:
    told(scene.market.vault, "Deposited", "amount", lambda amount: amount + 1)
    assert Ledger.of(scene.market.vault).owed == held(scene.market.vault) + 1


def test_money_that_nobody_had(scene: Desks, told: Callable[..., None]) -> None:
    told(scene.market.vault, "Deposited", "amount", 0, which=0)
    assert Ledger.of(scene.market.vault).overdrawn


@pytest.mark.parametrize("by", [1, -1])
def test_pay_that_differs_by_a_wei(scene: Desks, told: Callable[..., None], by: int) -> None:
    told(scene.market.vault, "Paid", "amount", lambda amount: amount + by, desk=scene.market.settlement.address)
    assert wrong(scene) == {"settlement"}


def test_pay_to_somebody_else(scene: Desks, told: Callable[..., None]) -> None:
    told(scene.market.vault, "Paid", "account", scene.market.vault.address, desk=scene.market.settlement.address)
    assert len(wrong(scene)) == 1


def test_a_fund_that_is_not_paid(scene: Desks, told: Callable[..., None]) -> None:
    told(scene.market.vault, "Moved", "toKey", bytes(32), toDesk=scene.market.jackpot.address)
    assert len(wrong(scene)) == 1


def test_a_dispute_that_ended_otherwise(scene: Desks, told: Callable[..., None]) -> None:
    told(scene.market.challenges, "DisputeSettled", "asserterWon", lambda won: not won)
    (what,) = wrong(scene)
    assert what.startswith("dispute")


def test_an_outcome_that_does_not_follow_from_the_claims(scene: Desks, told: Callable[..., None]) -> None:
    """A claim at the end of no state can't be accepted."""

    def bent(claim: Any) -> Any:
        return {**claim, "end": bytes(32)}

    told(scene.market.verdicts, "ClaimPosted", "claim", bent)
    assert wrong(scene) == {"outcome"}
    (outcome,) = (finding for finding in findings(scene) if finding.what == "outcome")
    assert (outcome.expected, outcome.found) == ("REJECTED", "ACCEPTED")
