"""Populations at the contracts of an EVM: every balance is what the mirror says, to the wei."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, repeat

import pytest

from lab.simulations.agents import Agent, Behavior
from lab.simulations.population import Epoch, Population, SimulationResult, simulate
from lab.simulations.population_on_chain import Desks, compare
from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.accounting.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.errors import OperationalError, ProtocolError
from pol.incentives.game.needs import Needs
from pol.incentives.game.parameter_design import Design, design

UNIT = 10**18
NEEDS = Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100)
FOUND = design(NEEDS)


def play(setting: Population, designed: Design = FOUND) -> tuple[SimulationResult, Mapping[str, int]]:
    venue = Desks(Connection.embedded(setting.seed), designed, setting.seed)
    with pytest.raises(OperationalError, match="no account of"):
        venue.admit("somebody who loses a fortune", (bytes(20),), 10**6)
    result = simulate(designed.game, setting, venue)
    changes = dict(venue.changes())
    audit(venue, setting.tasks)
    return result, changes


def audit(venue: Desks, tasks: int) -> None:
    """Who holds no key and knows no mirror finds the same from events."""
    vault = venue.market.vault
    ledger = Ledger.of(vault)
    assert (ledger.owed, ledger.overdrawn) == (held(vault), [])
    findings = list(Auditor(venue.market, venue.treasury).findings())
    assert [finding for finding in findings if not finding.holds] == []
    told = [finding.what.split()[0] for finding in findings]
    assert told.count("settlement") == told.count("outcome") == tasks


def happened(result: SimulationResult) -> Epoch:
    """All epochs as one."""
    names = (
        "tasks",
        "seatings",
        "lies",
        "lies_caught",
        "planted",
        "planted_caught",
        "fabricated",
        "objected",
        "watches",
    )
    return Epoch(**{name: sum(getattr(epoch, name) for epoch in result.epochs) for name in names})


@pytest.mark.long
def test_vault_and_mirror_agree_to_the_wei(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task whose first verdict is a lie that falls, and whose second one is challenged without a ground."""
    replays = chain([False], repeat(True))
    monkeypatch.setattr(Agent, "replays", lambda *_: next(replays))
    result, changes = play(Population({Behavior.GRIEFING: 2}, {Behavior.HONEST: 1}, 0, tasks=1, seed=1))
    assert result.total_change == 0
    compare(result.balances, changes)
    told = happened(result)
    assert (told.seatings, told.lies, told.lies_caught) == (2, 1, 1)
    # One wei is enough to be told.
    for name in changes:
        with pytest.raises(ProtocolError, match=name):
            compare({**result.balances, name: result.balances[name] + 1}, changes)


@pytest.mark.long
def test_a_jump_that_is_seen_costs_the_solver_its_stake(monkeypatch: pytest.MonkeyPatch) -> None:
    """It jumps in one of a hundred segments; none of the three draws hits it, but an outsider objects."""
    found = design(replace(NEEDS, objectors=0.99))
    jump = next(way for way in found.game.fabrications() if way.unseen < 1)
    monkeypatch.setattr(Agent, "fabricates", lambda *_: jump)
    result, changes = play(Population({Behavior.HONEST: 2}, {Behavior.LAZY: 1}, 0, tasks=2, seed=2), found)
    compare(result.balances, changes)
    told = happened(result)
    assert (told.objected, told.fabricated) == (2, 0)
    (solver,) = result.solvers
    assert result.balances[solver.name] == -2 * found.stakes.solver_stake
    assert result.balances["objector"] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_population_of_all_kinds_at_the_contracts() -> None:
    kinds = [kind for kind in Behavior if kind is not Behavior.WHISTLEBLOWER]
    solvers = dict.fromkeys((Behavior.HONEST, Behavior.LAZY, Behavior.COLLUDING, Behavior.RATIONAL), 1)
    verifiers = {**dict.fromkeys(kinds, 1), Behavior.COLLUDING: 3, Behavior.LAZY: 2, Behavior.WITHHOLDING: 2}
    result, changes = play(Population(verifiers, solvers, 3, tasks=24, seed=3))
    compare(result.balances, changes)
    told = happened(result)
    assert told.tasks == 24
    assert told.lies_caught > 0
    assert 0 < told.planted_caught <= told.planted
    # Withheld secrets and verdicts that fell.
    assert told.seatings > told.tasks + told.lies_caught
