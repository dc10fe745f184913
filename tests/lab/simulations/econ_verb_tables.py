"""Tables and JSON of ``pol econ simulate`` and ``pol econ coalition``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lab.incentives.coalition_search import CoalitionAttack, worst
from lab.incentives.rule_variants import REVERTED
from lab.simulations.agents import Agent
from lab.simulations.population import EPOCH, SimulationResult
from pol.incentives.amounts import amount
from pol.incentives.game.needs import Needs

MOST_EPOCHS = 20
EPOCHS = ("tasks to", "seatings", "lies", "that fell", "planted", "found", "fabricated, paid", "watched", "enrolled")
EARNINGS = ("role", "kind", "parties", "earned by each and task", "shares caught")


def epochs(result: SimulationResult) -> list[tuple[str, ...]]:
    """What happened, some twenty epochs of it."""
    every = max(1, -(-len(result.epochs) // MOST_EPOCHS))
    rows = []
    for number, epoch in enumerate(result.epochs, 1):
        if number % every == 0 or number == len(result.epochs):
            watched = f"{epoch.watches / epoch.drawn:.0%}" if epoch.drawn else "none drawn"
            counts = (epoch.seatings, epoch.lies, epoch.lies_caught, epoch.planted, epoch.planted_caught)
            tasks = min(number * EPOCH, result.setting.tasks)
            rows.append((str(tasks), *map(str, counts), str(epoch.fabricated), watched, str(epoch.enrolled)))
    return rows


def earnings(result: SimulationResult) -> list[tuple[str, ...]]:
    """What each kind earned."""
    return [
        (
            role,
            kind,
            str(len(group)),
            amount(_each(result, group)),
            str(sum(result.catches.get(p.name, 0) for p in group)),
        )
        for role, kind, group in _groups(result)
    ]


def simulation_json(result: SimulationResult) -> dict[str, Any]:
    """A simulation for programs; amounts in the smallest unit."""
    return {
        "tasks": result.setting.tasks,
        "total_change": result.total_change,
        "most_paid": result.most_paid,
        "epochs": [asdict(epoch) for epoch in result.epochs],
        "earned": [
            {"role": role, "kind": kind, "parties": len(group), "each_and_task": _each(result, group)}
            for role, kind, group in _groups(result)
        ],
    }


def _groups(result: SimulationResult) -> list[tuple[str, str, list[Agent]]]:
    groups: dict[tuple[str, str], list[Agent]] = {}
    for role, parties in (("verifier, watcher", result.parties), ("solver", result.solvers)):
        for party in parties:
            groups.setdefault((role, str(party.kind)), []).append(party)
    return [(role, kind, group) for (role, kind), group in groups.items()]


def _each(result: SimulationResult, group: Sequence[Agent]) -> float:
    return sum(result.earned(party) for party in group) / len(group) / result.setting.tasks


def attacks(needs: Needs, share: float) -> dict[str, CoalitionAttack]:
    """The best attack with the rules as decided, and with each that is put back as it was."""
    found = {"rules as decided": worst(needs, share)}
    return found | {name: worst(needs, share, rules) for name, rules in REVERTED.items()}


def attacks_json(share: float, found: dict[str, CoalitionAttack]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "share": share,
        "attacks": {
            name: {
                "excess": attack.found.excess,
                "objective": attack.objective,
                "terms": attack.terms,
                "members": attack.found.coalition.members,
                "strategy": attack.found.lines,
            }
            for name, attack in found.items()
        },
    }
