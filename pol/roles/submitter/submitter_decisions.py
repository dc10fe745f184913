"""Decisions of a submitter: it keeps its own tasks going, and pays for no model that it can't read."""

from __future__ import annotations

from pol.chain.desks.task_registry import MarketTask, Status
from pol.roles.party.data_availability import demand_state, waiting_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.public_calls import concerning_call
from pol.roles.submitter.submitter import Submitter
from pol.training.storage.http_files import within

TRAINED = frozenset({Status.COMMITTED, Status.VERIFYING, Status.WATCHED, Status.CONTESTED})
"""A model exists and isn't paid for yet."""
DEMANDS = 4
"""Leaves of a model that are demanded, one after the other: a solver that answers all of them has the model."""


def next_of_submitter(role: Submitter, task_id: bytes) -> Decision:
    """The next decision of a submitter about a task."""
    task = role.market.registry.task(task_id)
    if task.submitter != role.wallet.address:
        return Wait(task_id, "this party isn't its submitter", final=True)
    waiting, reclaimed = waiting_demands(role, task_id, task)
    if reclaimed is not None:
        return reclaimed
    hidden = None
    if task.status in TRAINED and not _has_model(role, task_id, task) and not waiting:
        hidden = _hidden(role, task_id, task)
    if isinstance(hidden, Action):
        return hidden
    decision = concerning_call(role, task_id, "it is the submitter")
    return decision if isinstance(decision, Action) or hidden is None else hidden


def _has_model(role: Submitter, task_id: bytes, task: MarketTask) -> bool:
    """As `Submitter.has_model`; a server that trickles leaves time to demand the model before it is paid for."""
    most, left = role.market.registry.terms(task_id).challenge_window / 4, task.deadline - role.connection.now()
    if task.status is Status.CONTESTED and left >= 0:
        most = min(most, left / 2)
    with within(most):
        return role.has_model(task_id)


def _hidden(role: Submitter, task_id: bytes, task: MarketTask) -> Decision | None:
    """Make the solver show on chain that it has the model, or lose its stake, before an accepting verdict is settled.

    This begins in the second half of the challenge window, so that a short failure of the store costs no bond.
    """
    now, market = role.connection.now(), role.market
    if task.status is not Status.CONTESTED or now > task.deadline or market.verdicts.verdict(task_id).rejecting:
        return None
    begin = task.deadline - market.registry.terms(task_id).challenge_window // 2
    why = f"the model can't be read from {role.store.url}, and is paid for when the verdict is settled"
    if now <= begin:
        return Wait(task_id, f"{why}: a leaf of it is demanded if it isn't there by then", begin)
    own = [
        made["demand"]
        for made in market.demands.events("Demanded", taskId=task_id)
        if (made["demand"]["began"], made["demand"]["demander"]) == (task.began, role.wallet.address)
    ]
    if len(own) >= DEMANDS:
        return Wait(
            task_id, f"{why}; the solver has shown {DEMANDS} leaves of it on chain, so it has it", task.deadline
        )
    bond, free = 2 * market.demands.bond(), market.vault.free(role.wallet.address)
    if free < bond:
        return Wait(task_id, f"{why}; a demand locks up to {bond} wei, and {free} are free in the vault", task.deadline)
    last = market.proofs.proof(task_id).size - 1
    return Action(
        task_id, "demand the model", why, Mode.DEFEND, lambda: demand_state(role, task_id, last), task.deadline
    )
