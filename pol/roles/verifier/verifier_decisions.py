"""Decisions of a verifier: the seats that it claims, and its duties once it sits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

from pol.chain.desks.task_registry import MarketTask, Status, Terms
from pol.errors import OperationalError, ProtocolError
from pol.incentives.payouts import WORDS
from pol.incentives.sortition import DrawnDuty, TicketDraw
from pol.roles.party.beacon_exits import rounds_of_duty
from pol.roles.party.data_availability import (
    current_demands,
    demand_state,
    demanded_entries,
    expired_demand,
    waiting_demands,
)
from pol.roles.party.decisions import Action, Decision, Mode, Wait, lacks
from pol.roles.party.dispute_session import GAME
from pol.roles.party.due_moves import due_move
from pol.roles.party.log_decisions import objection_call
from pol.roles.party.public_calls import concerning_call, exit_or_extension
from pol.roles.party.role import PublicCall
from pol.roles.process.attention import attentively
from pol.roles.process.defence import require_seat
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.work_time import replay_seconds, wait_for_time
from pol.roles.verifier.verifier import LOOKS, Verifier

LONG = {"post the profile", "post the verdict", "replay again"}
PARTS = 4
"""A verifier that can't read the states says so in the last of so many parts of its window."""


def _decide(role: Verifier, task_id: bytes) -> Decision:
    """The next decision of a verifier about a task."""
    task = role.market.registry.task(task_id)
    said = role.market.settlement.unserved_by(task_id) if task.status is Status.COMMITTED else []
    empty = task.status in {Status.PROFILING, Status.COMMITTED} and not task.is_seated and len(said) < WORDS
    sits = task.holder == role.wallet.address
    demanded, reclaimed = waiting_demands(role, task_id, task)
    if reclaimed is not None:
        return reclaimed
    if sits:
        owed = _owed(role, task_id, task)
        if owed is not None:
            return owed
    elif empty:
        own = role.wallet.address
        helped = expired_demand(role, task_id, task, own) or _blocking_objection(role, task_id, task)
        claim = helped.by(role) if helped is not None else _claim(role, task_id, task)
        if claim is not None:
            return claim
    concern = "it sits" if sits else "the seat is empty" if empty else "it has demanded data" if demanded else ""
    if not concern and role.wallet.address in said:
        concern = "it has said that it isn't served"
    return concerning_call(role, task_id, concern, takes=True)


def _owed(role: Verifier, task_id: bytes, task: MarketTask) -> Decision | None:
    """The duty of its seat; None if it only has to wait."""
    profiles = role.market.profiles
    if task.status is Status.PROFILING:
        if profiles.standing(task_id).is_posted:
            return due_move(role, task_id)
        why = "this party sits as profiler"
        return Action(task_id, "post the profile", why, Mode.DEFEND, partial(role.profile, task_id), task.deadline)
    if task.status is Status.VERIFYING:
        word, _ = _word(role, task_id, task)
        is_known = all(role.beacon.recorded(each) for each in rounds_of_duty(role, task_id))
        # A word that is due and can be said goes first: an expired demand would end the training without it.
        exits = None if word and is_known else exit_or_extension(role, task_id, task, role.wallet.address)
        helped = exits or _blocking_objection(role, task_id, task)
        if helped is not None:
            # A public call, but the stake of the seated party depends on it.
            return replace(helped.by(role), mode=Mode.DEFEND, due=task.deadline)
        number = role.market.seats.seating(task_id).duty_round
        if not role.beacon.is_due(number):
            return Wait(task_id, f"its duty waits for round {number} of the beacon", role.connection.now())
        if word:
            act = partial(role.unserved, task_id)
            return Action(task_id, "say it isn't served", word, Mode.DEFEND, act, task.deadline)
        why = "this party sits as verifier"

        def verify() -> None:
            # Other work may have come between the decision and this.
            role.verify(task_id, lambda: _word(role, task_id, task)[1])

        return Action(task_id, "post the verdict", why, Mode.DEFEND, verify, task.deadline)
    if task.status is Status.WATCHED:
        verdict, terms = role.market.verdicts.verdict(task_id), role.market.registry.terms(task_id)
        end = verdict.watch_until + terms.disclosure_window
        if verdict.watch_until and verdict.watch_until < role.connection.now() <= end:
            why = "the watch over its verdict has ended"
            return Action(task_id, "disclose", why, Mode.DEFEND, lambda: role.disclose(task_id), end)
        # The disclosure window may be too short for a replay, so the replay comes first.
        if (not verdict.watch_until or role.connection.now() <= end) and not role.can_disclose(task_id):
            why = "its verdict had to err, and the true claim isn't kept here"
            due = end if verdict.watch_until else None
            return Action(task_id, "replay again", why, Mode.DEFEND, lambda: role.prepare_disclosure(task_id), due)
    if task.status is Status.CONTESTED:
        return due_move(role, task_id)
    return None


def _word(role: Verifier, task_id: bytes, task: MarketTask) -> tuple[str, float]:
    """Why this party says now, instead of a default, that the solver doesn't serve; empty if it doesn't.

    Then also the second after which it begins no read and no replay. A solver that serves too late for a replay hasn't
    served.
    """
    if _has_said(role, task_id):
        return "", inf
    terms, now, seating = role.market.registry.terms(task_id), role.connection.now(), role.seating(task_id)
    needed, is_ready = replay_seconds(role, task_id, terms), seating in role.replayed
    speaks = task.deadline - max(terms.verification_window // PARTS, needed + role.policy.outage)
    # A chain that has halted once isn't expected to halt again: a verdict that can be had is tried.
    last = task.deadline - (0 if is_ready else needed)
    # Of what is left behind that a look takes half: the next one, and the word, come in time.
    until = min(last, speaks if now < speaks else now + (task.deadline - now) / 2)
    if now > task.deadline or (now <= last and (now < speaks or role.vain_looks[seating] < LOOKS)):
        return "", until
    return f"its states can't be read from {role.store.url} in time for a verdict", until


def _has_said(role: Verifier, task_id: bytes) -> bool:
    return role.wallet.address in role.market.settlement.unserved_by(task_id)


def _blocking_objection(role: Verifier, task_id: bytes, task: MarketTask) -> PublicCall | None:
    """The call that takes an objection further, where the end of a demand or of a wait for the beacon waits for it.

    The contract ends neither while an objection is open, and without data or rounds there is no verdict.
    """
    market, now = role.market, role.connection.now()
    ends = [market.seats.patient_until(task_id), market.proofs.patient_until(task_id)]
    ends += [demand.deadline for demand in current_demands(role, task_id, task)]
    # Zero: nobody waits for the beacon.
    return objection_call(role, task_id, task, role.wallet.address) if any(0 < end < now for end in ends) else None


def _fulfill(role: Verifier, task_id: bytes) -> None:
    """Do what is due about a task of which this party has the seat, but for other work that takes long."""
    task = role.market.registry.task(task_id)
    found = _owed(role, task_id, task) if task.holder == role.wallet.address else None
    if isinstance(found, Action) and found.verb not in LONG:
        found.act()


next_of_verifier = attentively(_decide, _fulfill)
"""`_decide`; duties of other seats are done between the steps of long work."""


def _claim(role: Verifier, task_id: bytes, task: MarketTask) -> Decision | None:
    """Claim the empty seat, if this party may, wants to, and would get it; None if a public call gets it further."""
    seating, terms, now = role.market.seats.seating(task_id), role.market.registry.terms(task_id), role.connection.now()
    until = max(seating.until, now)
    if seating.best == role.wallet.address:
        return None
    if int(seating.best, 16) and now > seating.until:
        return Wait(task_id, "somebody else has claimed the seat, and has it decided", now)
    lacking = _lacking(role, task_id, task, terms)
    if lacking is not None:
        return replace(lacking, until=until)
    verifies = task.status is Status.COMMITTED

    def needed() -> float:
        duty = require_seat(role, task_id, terms, verifies)
        return 0 if not verifies and role.has_measured(task_id) else duty

    if seating.until and now <= seating.until:
        tickets = role.market.sortition.tickets(role.wallet.address, seating.fixed_at)
        if not tickets:
            return Wait(task_id, "this party had no ticket when the seat was opened", seating.until)
        draw = TicketDraw(DrawnDuty.SEAT, task_id, seating.number, seating.fixed_at, seating.seed)
        account = bytes.fromhex(role.wallet.address[2:])
        if int(seating.best, 16) and min(draw.rank(account, number) for number in range(tickets)) >= seating.rank:
            return Wait(task_id, "somebody has claimed the seat with a better ticket", seating.until)
    # Nobody opens a seat, for gas, that it won't claim.
    waits = wait_for_time(role, task_id, needed, until)
    if waits is not None:
        return waits
    if verifies:
        lost = role.unavailable_state(task_id)
        waiting = None if lost is None else _without_states(role, task_id, task, lost, until)
        if waiting is not None:
            return waiting
    if not seating.until or now > seating.until:
        return None
    why = (
        f"the fee is {terms.verifier_fee} wei, the stake {terms.verifier_stake} wei, and its ticket is the best so far"
    )

    def claim() -> None:
        require_nothing_due(role, task_id, needed(), seating.until)
        role.claim_seat(task_id)

    return Action(task_id, "claim the seat", why, Mode.PROPOSE, claim, seating.until)


def _without_states(role: Verifier, task_id: bytes, task: MarketTask, lost: int, until: int) -> Decision | None:
    """Demand one state on chain, once: a solver that can't show it loses its stake. Then claim the seat all the same.

    Left to others it would be an accomplice's, who accepts what nobody else can read. Who has said so doesn't twice.
    """
    why = f"the state of log entry {lost} can't be read from {role.store.url}, and a verdict needs it"
    if _has_said(role, task_id):
        return Wait(task_id, f"{why}: it has said so, and leaves the seat alone until it is there", until)
    if demanded_entries(role, task_id, task):
        return None
    return Action(task_id, "demand a state", why, Mode.PROPOSE, lambda: demand_state(role, task_id, lost), until)


def _lacking(role: Verifier, task_id: bytes, task: MarketTask, terms: Terms) -> Wait | None:
    """Why this party leaves a seat alone, and what mends it; None if it may claim it."""
    if role.wallet.address in {task.submitter, task.solver}:
        return Wait(task_id, "this party is submitter or solver of the task")
    if not role.market.sortition.tickets_now(role.wallet.address):
        return lacks(task_id, "this party has no ticket, so it can't be drawn for the seat", "pol stake enrol")
    # A verifier whose data are withheld saves its stake by a demand, so it holds the highest bond of one.
    bond = 2 * role.market.demands.bond() if task.status is Status.COMMITTED else 0
    missing = terms.verifier_stake + bond - role.market.vault.free(role.wallet.address)
    if missing > 0:
        needed = f"a stake of {terms.verifier_stake} wei and {bond} wei for a demand of data"
        why = f"{needed} lack {missing} wei of free money in the vault"
        return lacks(task_id, why, f"pol stake deposit {missing}wei")
    try:
        role.policy.require_game(role.market.game, terms.clock)
        role.require_acceptable(task_id)
        role.task(task_id)
        role.wallet.require(GAME)
    except (OperationalError, ProtocolError) as error:
        return Wait(task_id, str(error))
    return None
