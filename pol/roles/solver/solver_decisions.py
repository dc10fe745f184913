"""Decisions of a solver: the tasks that it bids for, and its duties once it has bid or won."""

from __future__ import annotations

from pol.chain.desks.task_registry import Status
from pol.errors import ProtocolError
from pol.roles.party.data_availability import answer_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.public_calls import concerning_call
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.work_time import profile_steps, seconds_for, wait_for_time
from pol.roles.solver.solver import Solver

PATIENCE = 1.5
"""Factor on the time of a training's steps, for checkpoints, transactions and other work."""
DATA = frozenset({Status.COMMITTED, Status.VERIFYING, Status.WATCHED, Status.CONTESTED})
"""Data of the log may be demanded."""


def next_of_solver(role: Solver, task_id: bytes) -> Decision:
    """The next decision of a solver about a task.

    Raises:
        OperationalError: the node or the store failed.
    """
    task = role.market.registry.task(task_id)
    if task.status is Status.BIDDING:
        return _bid(role, task_id) or concerning_call(role, task_id, "it has bid or may bid")
    if task.solver == role.wallet.address:
        if task.status is Status.TRAINING:
            why = f"this party has won the task for {task.price} wei"
            return Action(task_id, "train", why, Mode.DEFEND, lambda: role.train(task_id), task.deadline)
        demands = role.market.demands.demands(task_id) if task.status in DATA else []
        if demands:
            due = min(demand.deadline for demand in demands)
            why = f"{len(demands)} leaves of its log are demanded"
            return Action(task_id, "show data", why, Mode.DEFEND, lambda: answer_demands(role, task_id), due)
    return concerning_call(role, task_id, "it is the solver" if task.solver == role.wallet.address else "")


def _bid(role: Solver, task_id: bytes) -> Decision | None:
    """Bid, or reveal the bid; None if it is the turn of others."""
    auction, now = role.market.auction, role.connection.now()
    round_id = auction.last_round(role.market.registry.address, task_id)
    standing, has_bid = auction.standing(round_id), auction.has_bid(round_id, role.wallet.address)
    if has_bid and standing.bid_until < now <= standing.reveal_until:
        why = "the time for bids is over; a bid that isn't revealed loses a sixteenth of its stake"
        return Action(task_id, "reveal", why, Mode.DEFEND, lambda: role.reveal(task_id), standing.reveal_until)
    if has_bid or now > standing.bid_until:
        return None
    reason = _refusal(role, task_id)
    if reason:
        return Wait(task_id, reason, standing.bid_until)
    terms, until = role.market.registry.terms(task_id), standing.bid_until

    def recheck() -> float:
        needed = (
            0 if terms.is_exact else seconds_for(role, task_id, profile_steps(terms), until - role.connection.now())
        )
        if needed > until - role.connection.now():
            raise ProtocolError(f"measuring the profile again takes this machine about {needed:.0f} s, too long to bid")
        training = PATIENCE * terms.steps * role.rehearse(task_id)
        if training > terms.training_window:
            raise ProtocolError(
                f"training takes this machine about {training:.0f} s, and there are {terms.training_window} s for it"
            )
        return needed

    waits = wait_for_time(role, task_id, recheck, until)
    if waits is not None:
        return waits

    def bid() -> None:
        require_nothing_due(role, task_id, recheck(), until)
        role.bid(task_id)

    why = f"the task pays up to {terms.maximum_price} wei"
    return Action(task_id, "bid", why, Mode.PROPOSE, bid, until)


def _refusal(role: Solver, task_id: bytes) -> str:
    """Why this party leaves a task alone; empty if it may bid."""
    terms = role.market.registry.terms(task_id)
    if role.market.registry.task(task_id).submitter == role.wallet.address:
        return "this party is the submitter of the task"
    if role.market.vault.free(role.wallet.address) < terms.solver_stake:
        return f"the stake of {terms.solver_stake} wei is more than this party has free in the vault"
    try:
        role.policy.require_margin(terms)
        role.require_acceptable(task_id)
    except ProtocolError as error:
        return str(error)
    return ""
