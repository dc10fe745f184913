"""A keyless auditor sees what is wrong: money that is missing, pay that differs, an outcome that doesn't follow."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from all_parties import FalseClaim, Verifier, Whistleblower
from role_market import SumSeer, Town, fought, lied, only_claim, settle, stated, verified

from misbehaving_nodes import Pass, gateway
from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.market import Market
from pol.chain.desks.task_registry import Status
from pol.chain.desks.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.chain.node.event_cache import ReadEvent
from pol.errors import OperationalError
from pol.roles.monitor.read_only_monitor import Monitor, MonitorReading

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def market(node: Town, proven: bytes) -> Market:
    """A verdict that fell in a dispute, a second one that stood a baseless challenge, and the settlement."""
    verifier, right, wrong = node.join(Verifier, "v"), node.join(Whistleblower, "w"), node.join(SumSeer, "x")
    (verdict,) = verifier.replay(proven)
    stated(verifier, proven, [lied(verdict, "distances")])
    (finding,) = right.check(proven)
    right.challenge(proven, finding)
    assert verifier.sessions(proven)[0].advance() is not None
    verified(verifier, proven)
    finding = FalseClaim(ClaimCharge(0, ClaimChargeKind.DISTANCE, 1), only_claim(wrong, proven))
    dispute = wrong.challenge(proven, finding)
    sides = verifier.sessions(proven)[0], wrong.session(proven, dispute)
    fought(wrong.market.game, dispute, *sides)
    while wrong.market.challenges.disputes(proven):
        assert any(side.advance() for side in sides)
    settle(verifier, proven)
    return node.deployment.market(node.connection)


@pytest.fixture
def auditor(market: Market, node: Town) -> Auditor:
    return Auditor(market, node.deployment.treasury)


def wrong(auditor: Auditor) -> set[str]:
    return {finding.what for finding in auditor.findings() if not finding.holds}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Changes what the events of a contract say: ``told(log, name, field, value, which)``."""

    def change(contract: Any, name: str, field: str, value: Any, which: int = -1, **match: Any) -> None:
        contract.log.read((name,))
        cache = contract.log.cache
        events: list[ReadEvent] = cache._events[contract.address]
        named = [place for place, event in enumerate(events) if event.name == name]
        hits = [place for place in named if match.items() <= events[place].arguments.items()]
        place = hits[which]
        changed = dict(events[place].arguments)
        changed[field] = value(changed[field]) if callable(value) else value
        other = replace(events[place], arguments=changed)
        monkeypatch.setitem(cache._events, contract.address, [*events[:place], other, *events[place + 1 :]])
        # Nobody reads them again meanwhile.
        monkeypatch.setattr(cache, "_follow", lambda: None)

    return change


def test_what_is_recomputed(market: Market, auditor: Auditor) -> None:
    assert wrong(auditor) == set()
    told = sorted(finding.what for finding in auditor.findings())
    assert [what.split()[0] for what in told] == ["dispute", "dispute", "outcome", "settlement", "the"]
    ledger = Ledger.of(market.vault)
    assert ledger.owed == held(market.vault) > 0
    free = ledger.free
    assert all(market.vault.free(account) == amount for account, amount in free.items())
    assert len(free) > 4
    locked = {duty: amount for duty, amount in ledger.locked.items() if amount}
    assert all(market.vault.duty(d, key, account).locked == amount for (d, key, account), amount in locked.items())


def test_what_held_is_not_computed_again(market: Market, auditor: Auditor, monkeypatch: pytest.MonkeyPatch) -> None:
    first = list(auditor.findings())
    monkeypatch.setattr(type(market.registry), "terms", lambda *_: pytest.fail("asked again"))
    assert list(auditor.findings()) == first


def test_money_that_is_missing_and_money_that_nobody_had(market: Market, told: Callable[..., None]) -> None:
    told(market.vault, "Deposited", "amount", lambda amount: amount + 1)
    assert Ledger.of(market.vault).owed == held(market.vault) + 1
    told(market.vault, "Deposited", "amount", 0, which=0)
    assert Ledger.of(market.vault).overdrawn


@pytest.mark.parametrize("name", ["a wei too much", "a wei too little", "another", "no fund", "another winner"])
def test_what_differs_is_told_alone(name: str, market: Market, auditor: Auditor, told: Callable[..., None]) -> None:
    vault, settlement = market.vault, {"desk": market.settlement.address}
    changes: dict[str, Callable[[], None]] = {
        "a wei too much": lambda: told(vault, "Paid", "amount", lambda paid: paid + 1, **settlement),
        "a wei too little": lambda: told(vault, "Paid", "amount", lambda paid: paid - 1, **settlement),
        "another": lambda: told(vault, "Paid", "account", vault.address, **settlement),
        "no fund": lambda: told(vault, "Moved", "toKey", bytes(32), toDesk=market.jackpot.address),
        "another winner": lambda: told(market.challenges, "DisputeSettled", "asserterWon", lambda won: not won),
    }
    changes[name]()
    (what,) = wrong(auditor)
    assert what.startswith("dispute" if name == "another winner" else "settlement")


def test_an_outcome_that_does_not_follow_from_the_claims(
    market: Market, auditor: Auditor, told: Callable[..., None]
) -> None:
    """A claim at the end of no state can't be accepted."""
    told(market.verdicts, "ClaimPosted", "claim", lambda claim: {**claim, "end": bytes(32)})
    (outcome,) = (finding for finding in auditor.findings() if not finding.holds)
    assert (outcome.what, outcome.expected, outcome.found) == ("outcome", "REJECTED", "ACCEPTED")


def test_a_node_without_old_history_is_no_empty_market(market: Market, node: Town) -> None:
    """A node that has pruned leaves events out without a word: below some block, or a hole, behind a balancer."""
    first, last, wired = node.deployment.block, node.connection.block_number(), market.vault.events("Wired")[0]["block"]
    kept, lost = 0, range(0)

    def pruned(method: str, params: list[Any], ask: Pass) -> Any:
        answer = ask(method, params)
        if method != "eth_getLogs":
            return answer
        return [log for log in answer if (number := int(log["blockNumber"], 16)) >= kept and number not in lost]

    def look() -> MonitorReading:
        return Monitor(Connection.to(proxy.url), node.deployment).look()

    with gateway(node.connection.name, pruned) as proxy:
        kept = wired
        whole = look()
        assert (whole.tasks[Status.CLOSED], whole.wrong) == (1, ())
        for kept in (wired + 1, (wired + last) // 2, last, last + 1):  # noqa: B007 - `pruned` reads it
            with pytest.raises(
                OperationalError, match=rf"since block {first} .the vault's wiring: 0,.*an archive node"
            ):
                look()
            reader = node.deployment.market(Connection.to(proxy.url))
            with pytest.raises(OperationalError, match="an archive node"):
                reader.registry.events("TaskSubmitted")
        kept = 0
        for contract, name in (
            (market.vault, "Deposited"),
            (market.registry, "TaskSubmitted"),
            (market.game, "Started"),
        ):
            (block, *_) = (int(event["block"]) for event in contract.events(name))
            lost = range(block, block + 1)
            with pytest.raises(OperationalError, match=f"since block {first} .*an archive node"):
                look()
        # Nothing shows that other events are missing; what needs one of them says so.
        for lost in (range(number, number + 9) for number in range(wired + 1, last, 9)):  # noqa: B007 - `pruned` reads it
            with suppress(OperationalError):
                look()
