"""Metrics of one party: its decisions, its balances, and the cost of its transactions."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from prometheus_client import Gauge

from pol.chain.account.outbox import STRANGER
from pol.cli.market.health_server import HealthMetrics
from pol.errors import OperationalError
from pol.roles.party.party import Party
from pol.roles.process.party_process import LoggedDecision

FRESH = 10.0
"""Seconds for which balances are shown if this party does nothing: reading them costs more than an idle turn."""


class PartyGauges:
    """Metrics that are set after every turn; balances once in FRESH seconds, and after each action."""

    def __init__(self, vitals: HealthMetrics, role: Party) -> None:
        self.vitals, self._role = vitals, role
        self._read_again = 0.0
        self._decisions = vitals.counter("pol_decisions", "Decisions that differ from the one before", ("result",))

        def gauge(name: str, told: str) -> Gauge:
            return Gauge(name, told, registry=vitals.registry)

        self._balance = gauge("pol_balance_wei", "For gas")
        self._free = gauge("pol_free", "In the vault, answering for nothing; the smallest unit of its asset")
        self._locked = gauge("pol_locked", "In the vault, answering for something")
        self._leaving = gauge("pol_leaving", "In the vault, on its way out")
        self._tickets = gauge("pol_tickets", "By which it is drawn")
        self._sent = gauge("pol_transactions", "That this process has had in blocks")
        self._gas = gauge("pol_gas_paid_wei", "What they have cost")

    def decided(self, taken: LoggedDecision) -> None:
        """Count a decision."""
        self._decisions.labels(taken.result.value).inc()
        self._read_again = 0.0
        self.vitals.lacks(taken.task_id.hex(), taken.why if taken.mend else "")

    def heard(self, tell: Callable[[str], None]) -> Callable[[str], None]:
        """``tell``, but /health shows it as well where another process sends with the key."""

        def hear(message: str) -> None:
            if message.endswith(STRANGER):
                self.vitals.lacks("key", STRANGER)
            tell(message)

        return hear

    def show(self, failures: int) -> None:
        """Update after a turn; ``failures`` turns in a row have failed."""
        self.vitals.failing(failures)
        if failures:
            return
        role = self._role
        # The next turn meets the same failure and reports it.
        with suppress(OperationalError), role.connection.cached():
            self.vitals.looked()
            self.vitals.state = role.state()
            if time.monotonic() < self._read_again:
                return
            self._read_again = time.monotonic() + FRESH
            balances = role.vault.balances(role.wallet.address)
            self._balance.set(role.wallet.balance())
            self._free.set(balances.free)
            self._locked.set(balances.locked)
            self._leaving.set(balances.leaving)
            self._tickets.set(role.tickets())
            self._sent.set(len(role.wallet.receipts))
            self._gas.set(role.wallet.gas_paid)
