"""What a submitter decides: it keeps its own tasks going."""

from __future__ import annotations

from pol.roles.deeds import Decision, Rest
from pol.roles.submitter import Submitter
from pol.roles.upkeep import upkeep


def next_of_submitter(role: Submitter, task_id: bytes) -> Decision:
    """What a submitter does next about a task.

    Raises:
        OperationalError: the node failed.
    """
    if role.market.registry.task(task_id).submitter != role.wallet.address:
        return Rest(task_id, "this party isn't its submitter", final=True)
    return upkeep(role, task_id)
