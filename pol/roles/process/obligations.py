"""Obligations of a party and their deadlines: no new work is begun that wouldn't end before the next one.

A party does one thing at a time, so work on one task must not outlast a deadline of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from math import inf

from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask, Status
from pol.chain.node.connection import Connection
from pol.errors import ProtocolError
from pol.roles.party.data_availability import current_demands, own_demands
from pol.roles.party.decisions import Wait
from pol.roles.party.dispute_session import OpenDispute, open_disputes
from pol.roles.party.policy import MINUTE
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


MARGIN = 1.5
"""Factor on the expected duration of work."""


def wait_for_duty(role: Role, task_id: bytes, needed: float, until: int) -> Wait | None:
    """The wait for an obligation about another task, if ``needed`` seconds of work wouldn't end before it.

    ``until`` is the last useful second of the work.
    """
    due = next_due(role, task_id)
    if due is None or role.connection.now() + MARGIN * needed <= due:
        return None
    why = f"it takes about {needed:.0f} s, and this party may owe something about another task by second {due}"
    return Wait(task_id, why, min(due, until))


def require_nothing_due(role: Role, task_id: bytes, needed: float, until: int) -> None:
    """As `wait_for_duty`, just before the work begins: actions before it have taken time.

    Raises:
        ProtocolError: an obligation is due before the work would end; the process decides again.
    """
    waits = wait_for_duty(role, task_id, needed, until)
    if waits is not None:
        raise ProtocolError(waits.why)


def reading_seconds(role: Role, task_id: bytes) -> float:
    """Seconds for which a look at a task, or work on it, may read from strangers' servers: half of those that are left
    until an obligation about another task, or the end of a watch, and a minute at least.
    """
    dues = [until for watched, until in role.watches().items() if watched != task_id]
    if (owed := next_due(role, task_id)) is not None:
        dues.append(owed)
    return max(MINUTE, (min(dues) - role.connection.now()) / 2) if dues else inf


def next_due(role: Role, besides: bytes) -> int | None:
    """The earliest deadline of all that this party owes, or may come to owe, about any other task."""
    with role.connection.cached():
        now = role.connection.now()
        unsaid = (role.unsaid_until(task_id) for task_id in role.examined() if task_id != besides)
        dues_of_all = role.connection.once(("dues", role), lambda: _dues_of_all(role))
        found = (due for task_id, dues in dues_of_all.items() if task_id != besides for due in dues)
        return min((due for due in (*unsaid, *found) if due is not None and due >= now), default=None)


def _dues_of_all(role: Role) -> dict[bytes, tuple[int, ...]]:
    """By open task, the deadlines that follow from the chain."""
    disputes = open_disputes(role)
    owing = dict.fromkeys((*begun_tasks(role), *(each.task_id for each in disputes)))
    return {task_id: tuple(_dues(role, task_id, disputes)) for task_id in owing}


def begun_tasks(role: Role) -> list[bytes]:
    """The tasks that aren't closed and that this party has submitted, bid for, claimed or trained, by events alone."""
    market, own = role.market, role.wallet.address
    begun = [*market.registry.events("Seated", holder=own), *market.registry.events("Awarded", solver=own)]
    begun += [*market.seats.events("SeatClaimed", account=own), *market.registry.events("TaskSubmitted", submitter=own)]
    rounds = {bytes(event["roundId"]) for event in market.auction.events("BidPlaced", bidder=own)}
    if rounds:
        begun += [event for event in market.auction.events("RoundOpened") if bytes(event["roundId"]) in rounds]
    closed = {bytes(event["taskId"]) for event in market.registry.events("TaskClosed")} if begun else set()
    return [task_id for task_id in dict.fromkeys(bytes(event["taskId"]) for event in begun) if task_id not in closed]


def _dues(role: Role, task_id: bytes, disputes: Sequence[OpenDispute]) -> Iterator[int]:
    """Deadlines of this party's duties; of duties that others may cause, as if they caused them now."""
    task, own = role.market.registry.task(task_id), role.wallet.address
    if task.status in {Status.NONE, Status.CLOSED}:
        return
    if task.status is Status.BIDDING and has_bid(role, task_id):
        auction, window = role.market.auction, role.market.registry.terms(task_id).training_window
        round_id = auction.last_round(role.market.registry.address, task_id)
        is_sealed = auction.has_bid(round_id, own)
        # Else the award may come at any time, and a training takes two thirds of its window at most.
        yield auction.standing(round_id).reveal_until if is_sealed else role.connection.now() + window // 3
    if task.holder == own:
        yield from _seat(role, task_id, task)
    elif _has_claimed(role, task_id, task):
        # So may the seat.
        yield role.connection.now() + role.market.registry.terms(task_id).verification_window // 2
    if task.solver == own:
        if task.status is Status.TRAINING:
            yield max(role.connection.now(), task.began + (task.deadline - task.began) // 3)
        yield from (demand.deadline for demand in current_demands(role, task_id, task))
        if task.status in DISPUTABLE:
            # An objection may come at any time, and so may a demand.
            terms = role.market.registry.terms(task_id)
            objected = terms.clock if terms.is_exact else terms.challenge_window
            yield role.connection.now() + min(objected, role.market.demands.window())
    if task.submitter == own and task.status is Status.CONTESTED:
        # A model that it can't read by then is paid for.
        yield task.deadline
    for each in disputes:
        if each.task_id == task_id:
            court = role.market.courts[each.matter]
            if each.number in court.desk.disputes(task_id):
                # The other side may move at any time; this side then has at least the grace.
                grace = role.connection.now() + max(court.game.graces[1], MINUTE)
                yield min(court.game.deadline(each.number) - 1, grace)


def _has_claimed(role: Role, task_id: bytes, task: MarketTask) -> bool:
    """Whether this party gets the seat of a task as soon as somebody has it decided, unless a better ticket comes."""
    is_empty = task.status in {Status.PROFILING, Status.COMMITTED} and not task.is_seated
    return is_empty and role.market.seats.seating(task_id).best == role.wallet.address


def _seat(role: Role, task_id: bytes, task: MarketTask) -> Iterator[int]:
    terms, now = role.market.registry.terms(task_id), role.connection.now()
    if task.status is Status.WATCHED:
        until = role.market.verdicts.verdict(task_id).watch_until or now + terms.watch_window
        yield until + terms.disclosure_window
    elif task.status is Status.CONTESTED or (
        task.status is Status.PROFILING and role.market.profiles.standing(task_id).is_posted
    ):
        # A challenge may come at any time.
        yield now + terms.clock
    elif now <= task.deadline:
        # A seat is claimed only where its duty takes half of its window at most (`pol.roles.process.work_time`).
        yield max(now, task.deadline - terms.verification_window // 2)


def at_stake(role: Role, task_id: bytes) -> bool:
    """Whether this party has stakes or duties in a task, or its tickets may be drawn to watch it."""
    market, own = role.market, role.wallet.address
    task = market.registry.task(task_id)
    if own in {task.holder, task.solver, task.submitter}:
        return True
    if _has_claimed(role, task_id, task):
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
    """Whether this party may still win a task that takes bids: with a sealed bid, or as the one that leads."""
    auction, own = role.market.auction, role.wallet.address
    round_id = auction.last_round(role.market.registry.address, task_id)
    return auction.standing(round_id).leader == own or auction.has_bid(round_id, own)
