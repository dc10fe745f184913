"""Decisions about a whole log: the screen, a look at one suspect after the other, demands, and the objection."""

from __future__ import annotations

from functools import partial

from pol.chain.desks.task_registry import MarketTask, Terms
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.data_availability import current_demands, demand_state, demanded_entries
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.work_time import require_time_to_look, wait_for_time
from pol.roles.whistleblower.join_strategy import Estimate
from pol.roles.whistleblower.objector import FalseSegment, Objector, UnseenSegment

DEMANDS = 4
"""Log entries of one log that an objector demands a leaf of: each answer costs it a bond."""


def objection_decision(role: Objector, task_id: bytes, task: MarketTask) -> Decision | None:
    """Object to a segment of a log, if one is false; None where this party can't object.

    Each look is a decision of its own, so that none delays a deadline.
    """
    objections, now, own = role.market.objections, role.connection.now(), role.wallet.address
    if not objections.is_open(task, now) or task.solver == own or objections.objected(task_id).fell:
        return None
    terms, bond = role.market.registry.terms(task_id), objections.bond_of(task_id)
    until = task.deadline or now + terms.challenge_window
    if _has_objected(role, task_id, task):
        return Wait(task_id, "it has objected to a segment", until)
    work = role.strategy.dice * terms.interval * terms.work_units // terms.steps
    estimate = role.strategy.screening(terms, work, bond, role.connection.gas_price())
    reason = reason_to_leave(role, task_id, terms, estimate)
    if reason:
        return Wait(task_id, reason, until)
    if not role.has_screened(task_id):
        waits = untimely(role, task_id, role.strategy.dice * terms.interval, until)
        why = "any segment of the log may be false"
        return waits or Action(task_id, "screen the log", why, Mode.WATCH, partial(role.suspects, task_id), until)
    role.look_again(task_id)
    found = role.known_false(task_id)
    if found is not None:
        return _objection(role, task_id, terms, found, until)
    looks = _look(role, task_id, terms, until)
    if isinstance(looks, Action):
        return looks
    unseen = _unseen(role, task_id, task, until)
    return unseen if isinstance(unseen, Action) else looks or unseen or _seen(role, task_id, until)


def _has_objected(role: Objector, task_id: bytes, task: MarketTask) -> bool:
    own, market = role.wallet.address, role.market
    exact = market.objections.events("Objected", taskId=task_id, objector=own, began=task.began)
    said = market.counterclaims.events("Counterclaimed", taskId=task_id, objector=own)
    return bool(exact) or any(int(event["began"]) == task.began for event in said)


def _objection(role: Objector, task_id: bytes, terms: Terms, found: FalseSegment, until: int) -> Decision:
    wrong = f"it has replayed twice that segment {found.segment} of the log is false"
    bond = role.market.objections.bond_of(task_id)
    try:
        role.require_money(task_id)
    except (OperationalError, ProtocolError) as error:
        return Wait(task_id, f"{wrong}, but {error}", until)
    reason = role.strategy.refuses(role.strategy.objecting(terms, bond, role.connection.gas_price()))
    if reason:
        return Wait(task_id, f"{wrong}, but an objection doesn't pay: {reason}", until)
    return Action(task_id, "object to a segment", wrong, Mode.PROPOSE, partial(role.object, task_id, found), until)


def _look(role: Objector, task_id: bytes, terms: Terms, until: int) -> Decision | None:
    """The look at the oddest suspect that waits for one; None if none does."""
    waiting = role.waiting_suspects(task_id)
    if not waiting:
        return None
    segment = waiting[0]
    waits = untimely(role, task_id, terms.interval, until)
    if waits is not None:
        return Wait(task_id, f"{waits.why}; segments {waiting} of the log aren't replayed", waits.until)

    def look() -> None:
        needed = require_time_to_look(role, task_id, terms.interval, until)
        require_nothing_due(role, task_id, needed, until)
        role.look(task_id, segment)

    why = f"segment {segment} is odd, or drawn by its own dice; segments left to replay: {len(waiting)}"
    return Action(task_id, "replay a segment", why, Mode.WATCH, look, until)


def _unseen(role: Objector, task_id: bytes, task: MarketTask, until: int) -> Decision | None:
    """The demand for a state without which a suspect can't be replayed, or the wait for it; None if all are seen."""
    unseen = [found for found in role.looks(task_id).values() if isinstance(found, UnseenSegment)]
    if not unseen:
        return None
    lost = list(dict.fromkeys(entry for found in unseen for entry in found.lost))
    why = f"segments {[found.segment for found in unseen]} of the log can't be replayed"
    if not lost:
        return Wait(task_id, f"{why}: this machine failed, see its log; a restarted process tries again", until)
    why += f", as the states of log entries {lost} can't be read from {role.store.url}"
    desk = role.market.demands
    waiting = [d for d in current_demands(role, task_id, task) if d.demander == role.wallet.address]
    if waiting:
        why = f"{why}: the solver has to show a leaf of entry {waiting[0].entry} on chain"
        return Wait(task_id, why, max(waiting[0].deadline, role.connection.now()))
    demanded = demanded_entries(role, task_id, task)
    left = [entry for entry in lost if entry not in demanded]
    if not left or len(demanded) >= DEMANDS:
        shown = f"the solver has shown leaves of entries {sorted(demanded)} on chain, and no more are demanded"
        return Wait(task_id, f"{why}; {shown}: it looks again while the log is open", until)
    bond, free = 2 * desk.bond(), role.market.vault.free(role.wallet.address)
    if free < bond:
        return Wait(task_id, f"{why}; a demand locks up to {bond} wei, and {free} are free in the vault", until)
    demand = partial(demand_state, role, task_id, left[0])
    return Action(task_id, "demand a state", f"{why}: who can't show one loses its stake", Mode.PROPOSE, demand, until)


def _seen(role: Objector, task_id: bytes, until: int) -> Wait:
    return Wait(task_id, f"of the log it has replayed {list(role.looks(task_id))}, and all are true", until)


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
