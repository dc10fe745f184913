"""The trained weights of a task as a state_dict, every root checked against the chain."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pol.chain.desks.task_registry import TaskOutcome
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.roles.party.task_reader import TaskReader
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_training import to_tensor


def trained_weights(
    reader: TaskReader, task_id: bytes, names: Mapping[str, str] | None = None, unsettled: bool = False
) -> dict[str, Tensor]:
    """Parameters and buffers after the last step, by the names that the model gave them.

    The task is the one of the terms on chain, the proof the one that the solver has committed to, and the state has the
    root of the last entry of its log. ``names`` maps names of the state_dict to slots; without it every parameter and
    buffer has its own name. ``unsettled`` also takes what isn't accepted yet.

    Raises:
        ProtocolError: the training wasn't accepted, or the store holds something else than what was committed to.
        OperationalError: the task isn't settled yet, or the node or the store failed.
    """
    task = reader.market.registry.task(task_id)
    if not unsettled:
        _require_accepted(task.outcome)
    loaded, proof = reader.task(task_id), reader.proof(task_id)
    state = load_checkpoint(reader.store, loaded, proof.checkpoints[-1])
    known = {
        entry.name: to_tensor(entry.type, words)
        for entry, words in zip(loaded.aten.slots, state, strict=True)
        if entry.component in {Component.PARAMETER, Component.BUFFER}
    }
    if names is None:
        return known
    if missing := [slot for slot in names.values() if slot not in known]:
        raise ProtocolError(f"the task has no weights named {missing[0]}: it is of another model")
    return {name: known[slot] for name, slot in names.items()}


def _require_accepted(outcome: TaskOutcome) -> None:
    if outcome is TaskOutcome.NONE:
        raise OperationalError("the task isn't settled yet: wait by `pol submit`'s output or `pol explain TASK`")
    if outcome is not TaskOutcome.ACCEPTED:
        raise ProtocolError(
            f"the task was {outcome.name.lower()}, so there are no weights that anybody stands for: submit it again"
        )
