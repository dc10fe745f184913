"""Decisions of a solver: the tasks that it bids for, and its duties once it has bid or won."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pol.chain.desks.task_registry import MarketTask, Status, Terms
from pol.errors import ProtocolError
from pol.incentives.payouts import MAX_OBJECTION_DOUBLINGS, objection_bond, segment_price, slashable
from pol.roles.party.decisions import Action, Decision, Mode, Wait, lacks
from pol.roles.party.public_calls import concerning_call
from pol.roles.process.attention import Attention
from pol.roles.process.defence import require_log
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.schedule import PATIENCE, Job, require_schedule
from pol.roles.process.work_time import profile_steps, seconds_for, wait_for_time
from pol.roles.solver.log_duties import fulfill, log_duties
from pol.roles.solver.proof_decisions import publish_decision
from pol.roles.solver.solver import Solver


def next_of_solver(role: Solver, task_id: bytes) -> Decision:
    """The next decision of a solver about a task."""
    task = role.market.registry.task(task_id)
    is_own = task.solver == role.wallet.address
    if task.status is Status.TRAINING and is_own:
        return _train(role, task_id, task)
    duties = log_duties(role, task_id, task)
    due = duties.action()
    if due is not None:
        return due
    if task.status is Status.BIDDING:
        call = _bid(role, task_id) or _bidding_call(role, task_id)
    else:
        call = concerning_call(role, task_id, "it is the solver" if is_own else "")
    if isinstance(call, Action):
        return call
    if duties.troubles:
        raise duties.troubles[0]
    # Nobody waits for proofs, so they come last.
    proofs = publish_decision(role, task_id, task)
    if isinstance(proofs, Action):
        return proofs
    return (duties.waits or [proofs or call])[0]


def _train(role: Solver, task_id: bytes, task: MarketTask) -> Action:
    def train() -> None:
        # A training may last longer than the clocks and the auctions of other tasks.
        role.train(task_id, Attention(role, task_id, partial(fulfill, role)))

    why = f"this party has won the task for {task.price} wei"
    return Action(task_id, "train", why, Mode.DEFEND, train, task.deadline)


def _bid(role: Solver, task_id: bytes) -> Decision | None:
    """Bid; None if it is the turn of others."""
    auction, now = role.market.auction, role.connection.now()
    round_id = auction.last_round(role.market.registry.address, task_id)
    standing = auction.standing(round_id)
    if now > standing.bid_until or auction.has_bid(round_id, role.wallet.address):
        return None
    lacking = _lacking(role, task_id)
    if lacking is not None:
        return replace(lacking, until=standing.bid_until)
    terms, until = role.market.registry.terms(task_id), standing.bid_until

    def recheck() -> float:
        needed = (
            0 if terms.is_exact else seconds_for(role, task_id, profile_steps(terms), until - role.connection.now())
        )
        if needed > until - role.connection.now():
            raise ProtocolError(f"measuring the profile again takes this machine about {needed:.0f} s, too long to bid")
        training = PATIENCE * terms.steps * role.rehearse(task_id)
        if training > terms.training_window - role.policy.outage:
            raise ProtocolError(
                f"training takes this machine about {training:.0f} s, and there are {terms.training_window} s for it, "
                f"{role.policy.outage} s of a halt of the chain included"
            )
        require_schedule(role, task_id, Job(training, window=terms.training_window), role.rehearse)
        require_log(role, task_id, terms)
        return needed

    waits = wait_for_time(role, task_id, recheck, until)
    if waits is not None:
        return waits

    def bid() -> None:
        require_nothing_due(role, task_id, recheck(), until)
        role.bid(task_id)

    why = f"the task pays up to {terms.maximum_price} wei"
    return Action(task_id, "bid", why, Mode.PROPOSE, bid, until)


def _bidding_call(role: Solver, task_id: bytes) -> Decision:
    return concerning_call(role, task_id, "it has bid or may bid", takes=_lacking(role, task_id) is None)


def _lacking(role: Solver, task_id: bytes) -> Wait | None:
    """Why this party leaves a task alone, and what mends it; None if it may bid."""
    terms = role.market.registry.terms(task_id)
    if role.market.registry.task(task_id).submitter == role.wallet.address:
        return Wait(task_id, "this party is the submitter of the task")
    free, bond = role.market.vault.free(role.wallet.address), 0 if terms.is_exact else contest_bond(role, terms)
    missing = terms.solver_stake + bond - free
    if missing > 0:
        contest = "" if terms.is_exact else f" and {bond} wei to contest a false counterclaim about its log"
        why = f"a stake of {terms.solver_stake} wei{contest} lack {missing} wei of free money in the vault"
        return lacks(task_id, why, f"pol stake deposit {missing}wei")
    game = role.market.objection_game if terms.is_exact else role.market.counterclaim_game
    try:
        role.policy.require_margin(terms)
        role.policy.require_game(game, terms.clock)
        role.require_acceptable(task_id)
        role.require_prover(task_id)
        role.require_bid(terms)
    except ProtocolError as error:
        return Wait(task_id, str(error))
    return None


def contest_bond(role: Solver, terms: Terms) -> int:
    """The highest bond of a counterclaim about a log, and so of its contest, at the price of gas of now."""
    objections, segments = role.market.objections, terms.steps // terms.interval
    price = segment_price(terms.maximum_price, segments, terms.verifier_fee, terms.draws)
    defense = price * (1 + terms.looks) + int(objections.read("price"))
    if role.market.vault.token is None:
        defense += int(objections.read("DEFENSE_GAS")) * role.connection.gas_price()
    stake = slashable(terms.solver_stake, terms.verifier_fee, terms.looks, terms.draws)
    return objection_bond(defense, stake, MAX_OBJECTION_DOUBLINGS)
