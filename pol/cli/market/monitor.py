"""``pol monitor``: recomputes the whole market without a key."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from pol.cli.examples import defaulted, example
from pol.cli.finite_range import FiniteRange
from pol.cli.market.party_options import MarketAccess, chain_options
from pol.dispute.position import Side
from pol.errors import OperationalError

if TYPE_CHECKING:
    from prometheus_client import Gauge

    from pol.chain.desks.task_registry import Status
    from pol.cli.market.health_server import HealthMetrics
    from pol.roles.monitor.read_only_monitor import MonitorReading


SHOWN = 12
"""Waiting tasks shown on a terminal."""


@click.command(epilog=example("pol monitor --looks 1"))
@chain_options
@defaulted("--poll", type=FiniteRange(0.01), default=60.0, help="Seconds between two looks.")
@click.option("--looks", type=click.IntRange(1), metavar="N", help="End after so many; without it, run on.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics and /health there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def monitor(market: MarketAccess, poll: float, looks: int | None, metrics: str | None, as_json: bool) -> int:
    """Recompute the vault's debts, every outcome and every payment; show which tasks wait for whom.

    It holds no key and sends nothing. With --looks it exits with 1 if an invariant is violated.
    """
    from pol.cli.market.health_server import HealthMetrics, serve_health
    from pol.roles.monitor.read_only_monitor import Monitor

    watcher = Monitor(market.connection, market.deployment)
    gauges = MonitorGauges(HealthMetrics("monitor", market.connection))
    console = Console(highlight=False, soft_wrap=True)
    wrong, failures, number = False, 0, 0
    with serve_health(gauges.vitals, metrics) as url:
        if url and not as_json:
            console.print(f"metrics: {url}/metrics  health: {url}/health")
        while True:
            number += 1
            try:
                look = watcher.look()
            except OperationalError as error:
                failures += 1
                gauges.vitals.failing(failures, str(error))
                if number == looks:
                    raise
                if as_json:
                    _print({"event": "trouble", "message": str(error)})
                else:
                    print(f"pol: {error}", file=sys.stderr)
            else:
                failures = 0
                wrong = bool(look.wrong)
                gauges.show(look)
                if as_json:
                    _print(_document(look))
                else:
                    _table(console, look)
            if number == looks:
                return int(wrong)
            time.sleep(poll)


class MonitorGauges:
    """The monitor's results as metrics."""

    def __init__(self, vitals: HealthMetrics) -> None:
        from prometheus_client import Gauge

        self.vitals = vitals

        def gauge(name: str, told: str, *labels: str) -> Gauge:
            return Gauge(name, told, labels, registry=vitals.registry)

        self._held = gauge("pol_collateral_held", "What the vault has, in the smallest unit of its asset")
        self._owed = gauge("pol_collateral_owed", "What the vault has to have, from its events")
        self._missing = gauge("pol_collateral_missing", "What it owes more than it has")
        self._wrong = gauge("pol_wrong", "Statements that don't hold")
        self._recomputed = gauge("pol_recomputed", "Outcomes and payments that were recomputed")
        self._tasks = gauge("pol_tasks", "Tasks", "status")
        self._disputes = gauge("pol_disputes", "Disputes", "winner")
        self._waiting = gauge("pol_waiting_seconds", "Longest time for which a call that anybody may make has waited")

    def show(self, look: MonitorReading) -> None:
        """Set all metrics."""
        from pol.chain.desks.task_registry import Status

        self.vitals.looked()
        self._held.set(look.held)
        self._owed.set(look.owed)
        self._missing.set(max(0, look.owed - look.held))
        self._wrong.set(len(look.wrong))
        self._recomputed.set(look.recomputed)
        for status in Status:
            self._tasks.labels(status.name.lower()).set(look.tasks[status])
        for side in Side:
            self._disputes.labels("open" if side is Side.NONE else side.name.lower()).set(look.disputes[side])
        since = [waiting.since for waiting in look.waiting if waiting.since is not None]
        self._waiting.set(look.time - min(since, default=look.time))


def _document(look: MonitorReading) -> dict[str, Any]:
    return {
        "event": "look",
        "block": look.block,
        "time": look.time,
        "held": look.held,
        "owed": look.owed,
        "recomputed": look.recomputed,
        "tasks": _named(look.tasks),
        "disputes": _named(look.disputes),
        "waiting": [
            {
                "task": w.state.task_id.hex(),
                "status": w.state.task.status.name.lower(),
                "why": w.state.waits,
                "until": w.state.until,
                "since": w.since,
            }
            for w in look.waiting
        ],
        "wrong": list(look.wrong),
    }


def _named(counted: Mapping[Status, int] | Mapping[Side, int]) -> dict[str, int]:
    return {key.name.lower(): count for key, count in counted.items()}


def _table(console: Console, look: MonitorReading) -> None:
    console.print(f"block {look.block}: {sum(look.tasks.values())} tasks, {sum(look.disputes.values())} disputes")
    console.print(f"the vault holds {look.held} and owes {look.owed}; {look.recomputed} outcomes recomputed")
    for waiting in look.waiting[:SHOWN]:
        state = waiting.state
        left = "" if state.until is None else f" ({state.until - look.time} s)"
        status = state.task.status.name.lower()
        console.print(escape(f"{state.task_id.hex()[:8]}  {status:<10}  {state.waits}{left}"))
    for told in look.wrong:
        console.print(escape(f"WRONG: {told}"), style="bold red")
    if not look.wrong:
        console.print("everything holds", style="green")


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)
