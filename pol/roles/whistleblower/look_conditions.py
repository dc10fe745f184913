"""Conditions of a look: it pays, its terms can be trusted, and there is time for it."""

from __future__ import annotations

from pol.chain.desks.task_registry import Terms
from pol.errors import ProtocolError
from pol.roles.party.decisions import Wait
from pol.roles.process.work_time import require_time_to_look, wait_for_time
from pol.roles.whistleblower.join_strategy import Estimate
from pol.roles.whistleblower.objector import Objector


def untimely(role: Objector, task_id: bytes, steps: int, until: int) -> Wait | None:
    """The wait if an examination wouldn't end in time, or not before another obligation."""
    return wait_for_time(role, task_id, lambda: require_time_to_look(role, task_id, steps, until), until)


def reason_to_leave(role: Objector, task_id: bytes, terms: Terms, estimate: Estimate) -> str:
    """Why this party doesn't look at a task, whose result is worth so much; empty if it does."""
    reason = role.strategy.refuses(estimate)
    if reason:
        return f"examining doesn't pay: {reason}"
    try:
        role.policy.require_clock(terms)
        role.require_proofs(task_id)
        role.task(task_id)
    except ProtocolError as error:
        return str(error)
    return ""
