"""When what the chain says about the end of a task can't be undone any more by other blocks."""

from __future__ import annotations

from pol.roles.role import Role

OLD = 24 * 3600
"""Seconds after which a block stays, where the node doesn't say which ones do."""


def is_settled(role: Role, task_id: bytes) -> bool:
    """Whether the blocks that ended a task for this party stay; those of its submission, if it never was its business.

    Raises:
        OperationalError: the node failed.
    """
    registry, jackpot = role.market.registry, role.market.jackpot
    ends = [*registry.events("TaskClosed", taskId=task_id)]
    for name in ("Released", "Caught"):
        ends += jackpot.events(name, taskId=task_id)
    blocks = [int(event["block"]) for event in ends or registry.events("TaskSubmitted", taskId=task_id)]
    if not blocks:
        return False
    finalized = role.connection.finalized()
    if finalized is None:
        return role.connection.now() - role.connection.time_of(max(blocks)) > OLD
    return max(blocks) <= finalized
