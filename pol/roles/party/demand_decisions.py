"""What is decided about demands for data that are over (docs/spec/market.md, "Data on demand")."""

from __future__ import annotations

from pol.chain.desks.data_demands import DataDemand
from pol.chain.desks.task_registry import Status, Task
from pol.roles.party.data_availability import expire, reclaim
from pol.roles.party.decisions import Deed, Mode
from pol.roles.party.role import Role

UNDECIDED = frozenset({Status.COMMITTED, Status.VERIFYING})
"""Where what a solver hasn't shown ends its training at once: no verdict is on its way."""


def current(role: Role, task_id: bytes, task: Task) -> list[DataDemand]:
    """The open demands for the log of the present solver, the most urgent one first.

    Raises:
        OperationalError: the node failed.
    """
    return [demand for demand in role.market.demands.demands(task_id) if demand.began == task.began]


def overdue(role: Role, task_id: bytes, task: Task) -> Deed | None:
    """End what the solver hasn't shown in time, before any verdict; None if nothing is over.

    For whoever demanded it this is its own business: its bond is locked until then.

    Raises:
        OperationalError: the node failed.
    """
    if task.status not in UNDECIDED:
        return None
    now = role.connection.now()
    over = [demand for demand in current(role, task_id, task) if now > demand.deadline]
    if not over:
        return None
    mode = Mode.DEFEND if any(demand.demander == role.wallet.address for demand in over) else Mode.RESOLVE
    why = "the solver hasn't shown what was demanded of it"
    return Deed(task_id, "remove the solver", why, mode, lambda: expire(role, task_id))


def own_demands(role: Role, task_id: bytes, task: Task) -> tuple[list[DataDemand], Deed | None]:
    """This party's demands that still decide something, and the deed that takes back the bonds of all others.

    Raises:
        OperationalError: the node failed.
    """
    mine = [each for each in role.market.demands.demands(task_id) if each.demander == role.wallet.address]
    is_open = task.status is not Status.CLOSED
    waiting = [demand for demand in mine if is_open and demand.began == task.began]
    if len(waiting) == len(mine):
        return waiting, None
    why = "the data that it demanded decide nothing any more"
    return waiting, Deed(task_id, "end a demand", why, Mode.DEFEND, lambda: reclaim(role, task_id))
