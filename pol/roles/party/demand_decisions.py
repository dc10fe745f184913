"""Decisions about expired and moot demands for data (docs/spec/market.md, "Data on demand")."""

from __future__ import annotations

from pol.chain.desks.data_demands import DataDemand
from pol.chain.desks.task_registry import MarketTask, Status
from pol.roles.party.data_availability import (
    current_demands,
    expire_demands,
    is_moot,
    own_demands,
    reclaim_demand_bonds,
)
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.role import Role

UNDECIDED = frozenset({Status.COMMITTED, Status.VERIFYING})
"""No verdict is on its way, so an expired demand removes the solver at once."""


def expired_demand(role: Role, task_id: bytes, task: MarketTask) -> Action | None:
    """The call that removes a solver for an expired demand, before any verdict; None if no demand has expired.

    The demander has a stake in it: its bond is locked until then.
    """
    if task.status not in UNDECIDED or role.market.objections.objected(task_id).open:
        return None
    now = role.connection.now()
    over = [demand for demand in current_demands(role, task_id, task) if now > demand.deadline]
    if not over:
        return None
    mode = Mode.DEFEND if any(demand.demander == role.wallet.address for demand in over) else Mode.RESOLVE
    why = "the solver hasn't shown what was demanded of it"
    return Action(task_id, "remove the solver", why, mode, lambda: expire_demands(role, task_id))


def waiting_demands(role: Role, task_id: bytes, task: MarketTask) -> tuple[list[DataDemand], Action | None]:
    """This party's demands that are still open, and the action that takes back the bonds of its moot ones."""
    mine = own_demands(role, task_id)
    waiting = [demand for demand in mine if not is_moot(demand, task)]
    if len(waiting) == len(mine):
        return waiting, None
    why = "the data that it demanded decide nothing any more"
    return waiting, Action(task_id, "end a demand", why, Mode.DEFEND, lambda: reclaim_demand_bonds(role, task_id))
