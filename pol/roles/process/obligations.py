"""What a party owes about its tasks, and by when: nothing new is begun that wouldn't end before.

A party does one thing at a time, so that work on a stranger's task must not outlast what its own money asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.task_registry import Status, Task
from pol.errors import ProtocolError
from pol.roles.party.decisions import Rest
from pol.roles.party.demand_decisions import current
from pol.roles.party.policy import MINUTE
from pol.roles.party.role import Role

MARGIN = 1.5
"""How much longer work takes than it is expected to."""


def postponed(role: Role, task_id: bytes, needed: float, until: int) -> Rest | None:
    """The wait for what this party owes about other tasks, if ``needed`` seconds of work wouldn't end before.

    ``until`` is the last second in which the work makes sense.

    Raises:
        OperationalError: the node failed.
    """
    due = next_due(role, task_id)
    if due is None or role.connection.now() + MARGIN * needed <= due:
        return None
    why = f"it takes about {needed:.0f} s, and this party may owe something about another task by second {due}"
    return Rest(task_id, why, min(due, until))


def require_free(role: Role, task_id: bytes, needed: float, until: int) -> None:
    """As `postponed`, when the work is about to begin: what was decided before it has taken its time.

    Raises:
        ProtocolError: something else is due before it would end; it is decided again.
        OperationalError: the node failed.
    """
    waits = postponed(role, task_id, needed, until)
    if waits is not None:
        raise ProtocolError(waits.why)


def next_due(role: Role, besides: bytes) -> int | None:
    """The earliest last second of all that this party owes, or may come to owe, about any other task.

    Raises:
        OperationalError: the node failed.
    """
    now = role.connection.now()
    others = (bytes(event["taskId"]) for event in role.market.registry.events("TaskSubmitted"))
    found = (due for task_id in others if task_id != besides for due in _dues(role, task_id))
    return min((due for due in found if due >= now), default=None)


def _dues(role: Role, task_id: bytes) -> Iterator[int]:
    """Last seconds for what this party has to do; of what others may begin, if they begin it now."""
    task, own = role.market.registry.task(task_id), role.wallet.address
    if task.status in {Status.NONE, Status.CLOSED}:
        return
    if task.status is Status.BIDDING:
        auction = role.market.auction
        round_id = auction.last_round(role.market.registry.address, task_id)
        if auction.has_bid(round_id, own):
            yield auction.standing(round_id).reveal_until
    meant = role.meant(task_id)
    if meant is not None:
        yield meant
    if task.holder == own:
        yield from _seat(role, task_id, task)
    if task.solver == own:
        if task.status is Status.TRAINING:
            yield task.deadline
        yield from (demand.deadline for demand in current(role, task_id, task))
    if task.status is Status.CONTESTED:
        yield from _disputes(role, role.market.challenges.disputes(task_id), role.market.game)
    if task.status is Status.PROFILING:
        yield from _disputes(role, role.market.profiles.disputes(task_id), role.market.profile_game)


def _seat(role: Role, task_id: bytes, task: Task) -> Iterator[int]:
    terms, now = role.market.registry.terms(task_id), role.connection.now()
    if task.status is Status.WATCHED:
        until = role.market.verdicts.verdict(task_id).watch_until or now + terms.watch_window
        yield until + terms.disclosure_window
    elif task.status is Status.CONTESTED or (
        task.status is Status.PROFILING and role.market.profiles.standing(task_id).is_posted
    ):
        # Somebody may challenge what stands there at any time.
        yield now + terms.clock
    elif now <= task.deadline:
        # A seat is claimed only where its duty takes half of its window at most (`pol.roles.process.work_time`).
        yield max(now, task.deadline - terms.verification_window // 2)


def _disputes(role: Role, numbers: Sequence[int], game: DisputeGame) -> Iterator[int]:
    for number in numbers:
        params = game.params(number)
        if role.wallet.address in {params.asserter, params.challenger}:
            # The other side may move at any time, and leaves this one the grace at least.
            yield min(game.deadline(number) - 1, role.connection.now() + max(game.graces[1], MINUTE))
