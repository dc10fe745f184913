"""Whether a party has anything at stake in a task, by the chain alone."""

from __future__ import annotations

from pol.chain.desks.task_registry import Status
from pol.roles.party.data_availability import own_demands
from pol.roles.party.role import Role


def at_stake(role: Role, task_id: bytes) -> bool:
    """Whether this party has stakes or duties in a task, or its tickets may be drawn to watch it.

    Raises:
        OperationalError: the node failed.
    """
    market, own = role.market, role.wallet.address
    task = market.registry.task(task_id)
    if own in {task.holder, task.solver, task.submitter}:
        return True
    if task.status in {Status.PROFILING, Status.COMMITTED} and market.seats.seating(task_id).best == own:
        return True
    if task.status is Status.BIDDING:
        return has_bid(role, task_id)
    if task.status is Status.WATCHED and market.sortition.tickets_now(own):
        return True
    for court in market.courts.values():
        desk = court.desk
        if any(desk.dispute(number).challenger == own for number in desk.disputes(task_id)):
            return True
        if desk.settleable(task_id, own):
            return True
    if any(market.counterclaims.counterclaimed(n).objector == own for n in market.counterclaims.open_for(task_id)):
        return True
    if own_demands(role, task_id):
        return True
    return bool(market.jackpot.events("Watched", taskId=task_id, account=own))


def has_bid(role: Role, task_id: bytes) -> bool:
    """Whether this party may still win a task that takes bids: with a sealed bid, or as the one that leads.

    Raises:
        OperationalError: the node failed.
    """
    auction, own = role.market.auction, role.wallet.address
    round_id = auction.last_round(role.market.registry.address, task_id)
    return auction.standing(round_id).leader == own or auction.has_bid(round_id, own)
