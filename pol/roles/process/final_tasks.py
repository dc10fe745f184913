"""Finality: when no reorganization can undo the end of a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain

from pol.chain.node.connection import Connection
from pol.roles.party.role import Role

OLD = 24 * 3600
"""Seconds after which a block counts as final if the node names no finalized block."""


def final_tasks(role: Role, task_ids: Collection[bytes]) -> set[bytes]:
    """The tasks whose end is final; of a task without an end, its submission."""
    if not task_ids:
        return set()
    registry, jackpot = role.market.registry, role.market.jackpot
    blocks = {bytes(event["taskId"]): int(event["block"]) for event in registry.events("TaskSubmitted")}
    for event in chain(registry.events("TaskClosed"), jackpot.events("Caught"), jackpot.events("Released")):
        task_id = bytes(event["taskId"])
        blocks[task_id] = max(blocks.get(task_id, 0), int(event["block"]))
    return final_ones(role.connection, {task_id: blocks[task_id] for task_id in task_ids if task_id in blocks})


def final_ones(connection: Connection, ended: Mapping[bytes, int]) -> set[bytes]:
    """Those of what has ended in some blocks whose block is final."""
    finalized = connection.finalized()
    if finalized is not None:
        return {task_id for task_id, block in ended.items() if block <= finalized}
    now = connection.now()
    return {task_id for task_id, block in ended.items() if now - connection.time_of(block) > OLD}
