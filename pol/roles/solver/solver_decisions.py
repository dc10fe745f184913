"""Decisions of a solver: the tasks that it bids for, and its duties once it has bid or won."""

from __future__ import annotations

from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask, Status
from pol.errors import ProtocolError
from pol.roles.party.data_availability import answer_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.dispute_session import due_move
from pol.roles.party.log_decisions import contest_decision
from pol.roles.party.public_calls import concerning_call
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.work_time import profile_steps, seconds_for, wait_for_time
from pol.roles.solver.solver import Solver

LOOK = 30.0
"""Seconds of a training after which the solver looks at the logs of its other tasks, at the next checkpoint."""
PATIENCE = 1.5
"""Factor on the time of a training's steps, for checkpoints, transactions and other work."""


def next_of_solver(role: Solver, task_id: bytes) -> Decision:
    """The next decision of a solver about a task.

    Raises:
        OperationalError: the node or the store failed.
    """
    task = role.market.registry.task(task_id)
    if task.status is Status.BIDDING:
        return _bid(role, task_id) or concerning_call(role, task_id, "it has bid or may bid")
    if task.solver == role.wallet.address:
        owed = _owed(role, task_id, task)
        if owed is not None:
            return owed
    return concerning_call(role, task_id, "it is the solver" if task.solver == role.wallet.address else "")


def attend(role: Solver, besides: bytes) -> None:
    """Do what this party owes about the logs of its other tasks: a training may last longer than their clocks.

    Raises:
        OperationalError: the node or the store failed.
    """
    registry = role.market.registry
    for event in registry.events("Awarded", solver=role.wallet.address):
        task_id = bytes(event["taskId"])
        task = registry.task(task_id)
        if task_id == besides or task.status not in DISPUTABLE or task.solver != role.wallet.address:
            continue
        with role.about(task_id):
            owed = _answers(role, task_id)
            if owed is not None:
                owed.act()


def _owed(role: Solver, task_id: bytes, task: MarketTask) -> Action | None:
    """The training, or an answer for its log."""
    if task.status is Status.TRAINING:
        last = role.timer()

        def look_elsewhere(index: int, segments: int) -> None:
            nonlocal last
            if role.timer() - last >= LOOK:
                attend(role, task_id)
                last = role.timer()

        def train() -> None:
            role.train(task_id, look_elsewhere)

        why = f"this party has won the task for {task.price} wei"
        return Action(task_id, "train", why, Mode.DEFEND, train, task.deadline)
    return _answers(role, task_id) if task.status in DISPUTABLE else None


def _answers(role: Solver, task_id: bytes) -> Action | None:
    """What others ask of its log: data, moves in disputes, contests of counterclaims; the most urgent first."""
    found = [due_move(task_id, role.sessions(task_id))]
    demands = role.market.demands.demands(task_id)
    if demands:
        due = min(demand.deadline for demand in demands)
        why = f"{len(demands)} leaves of its log are demanded"
        found.append(Action(task_id, "show data", why, Mode.DEFEND, lambda: answer_demands(role, task_id), due))
    if not role.market.registry.terms(task_id).is_exact:
        found.append(contest_decision(role, task_id))
    return min((deed for deed in found if deed is not None), key=lambda deed: deed.due or 0, default=None)


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
