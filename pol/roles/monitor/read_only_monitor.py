"""Who watches everybody and holds no key: collateral, outcomes and pay recomputed, and what waits for a call."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass

from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.accounting.vault_ledger import Ledger, held
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deploy.deployment import Deployment
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.dispute.position import Side
from pol.roles.party.decisions import Deed
from pol.roles.party.public_calls import upkeep
from pol.roles.party.role import Role


@dataclass(frozen=True)
class Waiting:
    """What a task waits for."""

    task_id: bytes
    status: Status
    why: str
    until: int | None
    """Chain time up to which a party has time; None if anybody may call."""
    since: int | None = None
    """Chain time since when anybody may call."""


@dataclass(frozen=True)
class Look:
    """What a monitor has found at one block."""

    block: int
    time: int
    held: int
    """What the vault has, in the smallest unit of its asset."""
    owed: int
    """What it has to have, from its events."""
    tasks: Counter[Status]
    waiting: tuple[Waiting, ...]
    disputes: Counter[Side]
    """By winner; NONE are under way."""
    recomputed: int
    """Verdicts, settlements, profiles and disputes whose outcome and pay were recomputed."""
    wrong: tuple[str, ...]
    """What doesn't hold; nothing of it can happen with the contracts as they are."""


class Monitor:
    """Looks at a whole market. Everything comes from events and views; the store isn't asked."""

    def __init__(self, connection: Connection, deployment: Deployment, store_url: str = "memory://") -> None:
        # A party that exists for this only: it reads, and could pay for nothing.
        self._reader = Role(connection, deployment, secrets.token_bytes(32), store_url)
        self._auditor = Auditor(self._reader.market, deployment.treasury)
        self._since: dict[tuple[bytes, str], int] = {}
        self._final: set[bytes] = set()
        """Tasks to which nothing can happen any more."""

    def look(self) -> Look:
        """Recompute everything at the latest block.

        Raises:
            OperationalError: the node fails.
        """
        reader, market = self._reader, self._reader.market
        with reader.connection.cached():
            block, now = reader.connection.block_number(), reader.connection.now()
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
            disputes = _disputes(market.game) + _disputes(market.profile_game)
        return Look(block, now, has, ledger.owed, tasks, waiting, disputes, len(findings), tuple(wrong))

    def _tasks(self, now: int) -> tuple[Counter[Status], tuple[Waiting, ...]]:
        statuses: Counter[Status] = Counter()
        waiting, since = [], dict[tuple[bytes, str], int]()
        for event in self._reader.market.registry.events("TaskSubmitted"):
            task_id = bytes(event["taskId"])
            if task_id in self._final:
                statuses[Status.CLOSED] += 1
                continue
            status = self._reader.market.registry.task(task_id).status
            statuses[status] += 1
            decision = upkeep(self._reader, task_id)
            if isinstance(decision, Deed):
                began = since[task_id, decision.verb] = self._since.get((task_id, decision.verb), now)
                waiting.append(Waiting(task_id, status, f"anybody may {decision.verb}: {decision.why}", None, began))
            elif decision.final:
                self._final.add(task_id)
            else:
                waiting.append(Waiting(task_id, status, decision.why, decision.until))
        self._since = since
        return statuses, tuple(waiting)


def _disputes(game: DisputeGame) -> Counter[Side]:
    won = Counter(Side.ASSERTER if event["asserterWon"] else Side.CHALLENGER for event in game.events("Resolved"))
    won[Side.NONE] = len(game.events("Started")) - won.total()
    return won
