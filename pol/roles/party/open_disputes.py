"""A party's disputes that no game has ended, by events alone: they are found without a look at any task."""

from __future__ import annotations

from dataclasses import dataclass

from pol.chain.desks.market import Matter
from pol.roles.party.role import Role


@dataclass(frozen=True)
class OpenDispute:
    """A dispute that has no winner yet. It may be moot."""

    matter: Matter
    number: int
    task_id: bytes


def open_disputes(role: Role) -> list[OpenDispute]:
    """The disputes in which a party plays, oldest first."""
    return role.connection.once(("open disputes", role), lambda: _open_disputes(role))


def _open_disputes(role: Role) -> list[OpenDispute]:
    found, own = list[OpenDispute](), role.wallet.address
    for matter, court in role.market.courts.items():
        started = [court.game.events("Started", **{side: own}) for side in ("asserter", "challenger")]
        numbers = {int(event["number"]) for events in started for event in events}
        if numbers:
            numbers -= {int(event["number"]) for event in court.game.events("Resolved")}
        if numbers:
            names = court.desk.EVENTS
            for event in court.desk.events(names.challenged):
                if int(event[names.number]) in numbers:
                    found.append(OpenDispute(matter, int(event[names.number]), bytes(event["taskId"])))
    return found


def asked_tasks(role: Role) -> set[bytes]:
    """The open tasks that a party has trained, about whose log somebody demands data or says something."""
    market, own = role.market, role.wallet.address
    begun = {bytes(event["taskId"]) for event in market.registry.events("Awarded", solver=own)}
    begun -= {bytes(event["taskId"]) for event in market.registry.events("TaskClosed")} if begun else begun
    return {each for each in begun if market.demands.demands(each) or market.counterclaims.open_for(each)}
