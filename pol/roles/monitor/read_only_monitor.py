"""The read-only monitor: it recomputes collateral, outcomes and payments, and lists waiting calls. It holds no key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.task_registry import Status
from pol.chain.desks.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.dispute.position import Side
from pol.roles.monitor.market_view import TaskState
from pol.roles.monitor.task_story import state_of
from pol.roles.party.task_reader import TaskReader
from pol.training.storage.store import Store


@dataclass(frozen=True)
class WaitingTask:
    """A task that waits for a party or a call."""

    state: TaskState
    since: int | None = None
    """Chain time since which anybody may call."""


@dataclass(frozen=True)
class MonitorReading:
    """The monitor's result at one block."""

    block: int
    time: int
    held: int
    """Balance of the vault, in the smallest unit of its asset."""
    owed: int
    """Amount that the vault owes, from its events."""
    tasks: Counter[Status]
    waiting: tuple[WaitingTask, ...]
    disputes: Counter[Side]
    """Disputes by winner; NONE counts open ones."""
    recomputed: int
    """Number of verdicts, settlements, profiles and disputes whose outcome and payments were recomputed."""
    wrong: tuple[str, ...]
    """Violated invariants; correct contracts give none."""


class Monitor:
    """Monitors a whole market from events and views; the store isn't read."""

    def __init__(self, connection: Connection, deployment: Deployment, store_url: str = "memory://") -> None:
        self._reader = TaskReader(connection, deployment, Store(store_url))
        self._auditor = Auditor(self._reader.market, deployment.treasury)
        self._since: dict[tuple[bytes, str], int] = {}
        self._final: set[bytes] = set()
        """Tasks to which nothing more can happen."""

    def look(self) -> MonitorReading:
        """Recompute everything at the latest block."""
        reader, market = self._reader, self._reader.market
        with reader.connection.cached():
            block, now = reader.connection.block_number(), reader.connection.now()
            market.vault.log.cache.require_whole()
            ledger, has = Ledger.of(market.vault), held(market.vault)
            wrong = [f"the vault's events take more than there is: {told}" for told in ledger.overdrawn]
            if has < ledger.owed:
                wrong.append(f"the vault holds {has} and owes {ledger.owed}: {ledger.owed - has} are missing")
            findings = list(self._auditor.findings())
            for finding in findings:
                if not finding.holds:
                    task = finding.task_id.hex()
                    wrong.append(f"{finding.what} of task {task}: {finding.found}, should be {finding.expected}")
            tasks, waiting = self._tasks(now)
            disputes = sum((_disputes(court.game) for court in market.courts.values()), Counter[Side]())
        return MonitorReading(block, now, has, ledger.owed, tasks, waiting, disputes, len(findings), tuple(wrong))

    def _tasks(self, now: int) -> tuple[Counter[Status], tuple[WaitingTask, ...]]:
        statuses: Counter[Status] = Counter()
        waiting, since = [], dict[tuple[bytes, str], int]()
        for event in self._reader.market.registry.events("TaskSubmitted"):
            task_id = bytes(event["taskId"])
            if task_id in self._final:
                statuses[Status.CLOSED] += 1
                continue
            state = state_of(self._reader, task_id)
            statuses[state.task.status] += 1
            if state.final:
                self._final.add(task_id)
                continue
            began = self._since.get((task_id, state.call), now) if state.call else None
            if began is not None:
                since[task_id, state.call] = began
            waiting.append(WaitingTask(state, began))
        self._since = since
        return statuses, tuple(waiting)


def _disputes(game: DisputeGame) -> Counter[Side]:
    won = Counter(Side.ASSERTER if event["asserterWon"] else Side.CHALLENGER for event in game.events("Resolved"))
    won[Side.NONE] = len(game.events("Started")) - won.total()
    return won
