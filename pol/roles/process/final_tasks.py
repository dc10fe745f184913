"""Finality: when no reorganization can undo the end of a task."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from pol.roles.party.role import Role

OLD = 24 * 3600
"""Seconds after which a block counts as final if the node names no finalized block."""


def final_tasks(role: Role, task_ids: Collection[bytes]) -> set[bytes]:
    """The tasks whose end is final; of a task without an end, its submission.

    Raises:
        OperationalError: the node failed.
    """
    if not task_ids:
        return set()
    registry, jackpot = role.market.registry, role.market.jackpot
    blocks = {bytes(event["taskId"]): int(event["block"]) for event in registry.events("TaskSubmitted")}
    for event in chain(registry.events("TaskClosed"), jackpot.events("Caught"), jackpot.events("Released")):
        task_id = bytes(event["taskId"])
        blocks[task_id] = max(blocks.get(task_id, 0), int(event["block"]))
    ended = {task_id: blocks[task_id] for task_id in task_ids if task_id in blocks}
    finalized = role.connection.finalized()
    if finalized is not None:
        return {task_id for task_id, block in ended.items() if block <= finalized}
    now = role.connection.now()
    return {task_id for task_id, block in ended.items() if now - role.connection.time_of(block) > OLD}
