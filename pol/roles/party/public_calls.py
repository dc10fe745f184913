"""Public calls: anybody may make them, so that no task stands still (docs/spec/market.md, "Statuses")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pol.chain.desks.market import Court, Matter
from pol.chain.desks.seats import Seating
from pol.chain.desks.task_registry import MarketTask, Status
from pol.incentives.payouts import WORDS
from pol.roles.party.beacon_exits import beacon_exit, duty_extension, rounds_of_duty
from pol.roles.party.data_availability import current_demands, expire_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.demand_decisions import expired_demand
from pol.roles.party.log_decisions import finished_dispute, objection_call, objections_until
from pol.roles.party.role import Role


def concerning_call(role: Role, task_id: bytes, concern: str, takes: bool = False) -> Decision:
    """As `public_call`, but a call that gains this party nothing is left to those that wait for it.

    ``concern`` says why the call concerns this party; empty if it doesn't. Otherwise many would pay for the same call,
    and all but one for nothing. Only who ``takes`` the seat or the task calls for a round of one that nobody has taken:
    else parties would pay for round after round of what nobody can take.
    """
    decision = public_call(role, task_id)
    if isinstance(decision, Wait) or (concern and (takes or not decision.for_takers)):
        return decision
    why = f"{decision.why}; that is left to those that wait for it ({decision.verb})"
    return Wait(task_id, why, role.connection.now())


def public_call(role: Role, task_id: bytes) -> Decision:
    """The next public call of a task, if it waits for no party."""
    task = role.market.registry.task(task_id)
    if task.status is Status.NONE:
        return Wait(task_id, "there is no such task on this chain")
    decide = {
        Status.PROFILING: _profiling,
        Status.BIDDING: _bidding,
        Status.TRAINING: _training,
        Status.COMMITTED: _committed,
        Status.VERIFYING: _verifying,
        Status.WATCHED: _watched,
        Status.CONTESTED: _contested,
        Status.CLOSED: _closed,
    }[task.status]
    found = objection_call(role, task_id, task) or exit_or_extension(role, task_id, task)
    return found or decide(role, task_id, task)


def exit_or_extension(role: Role, task_id: bytes, task: MarketTask) -> Action | None:
    """The call that ends a wait in vain, or gives a verifier the time back that the beacon has taken.

    A seated party makes it before its own duty, which it can't fulfill while its rounds or the data are missing.
    """
    found = expired_demand(role, task_id, task) or beacon_exit(role, task_id, task.status)
    if found is None and task.status is Status.VERIFYING and role.connection.now() <= task.deadline:
        return duty_extension(role, task_id, task.deadline)
    return found


def _call(task_id: bytes, verb: str, why: str, act: Callable[[], object]) -> Action:
    return Action(task_id, verb, why, Mode.RESOLVE, act)


def _next_deadline(court: Court, task_id: bytes) -> int:
    """The last second before a clock of a dispute runs down."""
    return min(court.game.deadline(number) for number in court.desk.disputes(task_id)) - 1


def _profiling(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    profiles = role.market.profiles
    standing = profiles.standing(task_id)
    if not standing.is_posted:
        return _seat(role, task_id, task) if not task.is_seated else _default(role, task_id, task, "profiler")
    court = role.market.courts[Matter.PROFILE]
    ended = finished_dispute(role, task_id, court)
    if ended is not None:
        return ended
    if role.connection.now() <= standing.deadline:
        return Wait(task_id, "the profile may be challenged", standing.deadline)
    if standing.open:
        until = _next_deadline(court, task_id)
        return Wait(task_id, f"the profile waits for {standing.open} disputes", until)
    why = "nobody has refuted the profile in its window"
    return _call(task_id, "conclude the profile", why, lambda: profiles.conclude(role.wallet, task_id))


def _committed(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    settlement = role.market.settlement
    if len(settlement.unserved_by(task_id)) < WORDS:
        return _seat(role, task_id, task)
    why = "two verifiers have said that the solver doesn't serve the states"
    return _call(task_id, "remove the solver", why, lambda: settlement.claim_unserved(role.wallet, task_id))


def _seat(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    seats, seating = role.market.seats, role.market.seats.seating(task_id)
    if seating.until and role.connection.now() <= seating.until:
        return Wait(task_id, "the seat takes claims", seating.until)
    if not seating.until:
        return _claims(role, task_id, seating)
    why = "the window for claims of the seat is over"
    decide = _call(task_id, "decide the seat", why, lambda: seats.decide(role.wallet, task_id))
    return replace(decide, for_takers=not int(seating.best, 16))


def _claims(role: Role, task_id: bytes, seating: Seating) -> Decision:
    seats = role.market.seats
    if role.beacon.is_due(seating.round):

        def act() -> None:
            role.bring(seating.round)
            seats.open_claims(role.wallet, task_id)

        why = f"round {seating.round} of the beacon ranks claims of the seat"
        return replace(_call(task_id, "open claims", why, act), for_takers=True)
    return Wait(task_id, f"the seat waits for round {seating.round} of the beacon", role.connection.now())


def _bidding(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    registry = role.market.registry
    standing = role.market.auction.standing(role.market.auction.last_round(registry.address, task_id))
    now = role.connection.now()
    if now <= standing.bid_until:
        return Wait(task_id, f"solvers bid; {standing.bids} have", standing.bid_until)
    if standing.revealed < standing.bids and now <= standing.reveal_until:
        return Wait(task_id, f"{standing.bids - standing.revealed} bids aren't revealed yet", standing.reveal_until)
    why = "all bids are revealed" if standing.bids == standing.revealed else "the time for revealing bids is over"
    if not standing.bids:
        why = "nobody has bid, so another round begins"
    award = _call(task_id, "award", why, lambda: registry.award(role.wallet, task_id))
    return replace(award, for_takers=not standing.bids)


def _training(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    if role.connection.now() <= task.deadline:
        return Wait(task_id, "the solver trains", task.deadline)
    why = "the solver hasn't committed a proof in the time that it promised"
    settlement = role.market.settlement
    return _call(task_id, "remove the solver", why, lambda: settlement.claim_solver_default(role.wallet, task_id))


def _verifying(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    waiting = current_demands(role, task_id, task)
    if waiting and role.connection.now() > task.deadline:
        # The verifier hasn't defaulted while the solver may still show data. Expired demands are ended before.
        return Wait(task_id, "the solver owes data", waiting[0].deadline)
    return _default(role, task_id, task, "verifier")


def _default(role: Role, task_id: bytes, task: MarketTask, holder: str) -> Decision:
    if role.connection.now() <= task.deadline:
        return Wait(task_id, f"the {holder} works", task.deadline)
    settlement = role.market.settlement
    # A default is claimed with the rounds that fix the verifier's duty.
    rounds = rounds_of_duty(role, task_id) if holder == "verifier" else []
    if not all(role.beacon.is_due(number) for number in rounds):
        return Wait(task_id, "the verifier's duty waits for the beacon", role.connection.now())

    def act() -> None:
        for number in rounds:
            role.bring(number)
        settlement.claim_seat_default(role.wallet, task_id)

    why = f"the {holder} hasn't posted anything in its time"
    return _call(task_id, f"remove the {holder}", why, act)


def _watched(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    verdicts, verdict = role.market.verdicts, role.market.verdicts.verdict(task_id)
    if not verdict.watch_until:
        if role.beacon.is_due(verdict.watch_round):

            def act() -> None:
                role.bring(verdict.watch_round)
                verdicts.open_watch(role.wallet, task_id)

            return _call(task_id, "open the watch", f"round {verdict.watch_round} of the beacon draws watchers", act)
        return Wait(task_id, f"the watch waits for round {verdict.watch_round} of the beacon", role.connection.now())
    if role.connection.now() <= verdict.watch_until:
        return Wait(task_id, "watchers replay the drawn segments", verdict.watch_until)
    end = verdict.watch_until + role.market.registry.terms(task_id).disclosure_window
    if role.connection.now() <= end:
        return Wait(task_id, "the verifier discloses whether it had to err", end)
    why = "the verifier hasn't disclosed whether it had to err"
    return _call(task_id, "remove the verifier", why, lambda: verdicts.claim_undisclosed(role.wallet, task_id))


def _contested(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    challenges, court = role.market.challenges, role.market.courts[Matter.VERDICT]
    ended = finished_dispute(role, task_id, court)
    if ended is not None:
        return ended
    if role.connection.now() <= task.deadline:
        return Wait(task_id, "the verdict may be challenged", task.deadline)
    if challenges.contested(task_id).open:
        return Wait(task_id, "the verdict waits for disputes", _next_deadline(court, task_id))
    if role.market.objections.objected(task_id).open:
        return Wait(task_id, "the task waits for objections", objections_until(role, task_id))
    waiting = current_demands(role, task_id, task)
    # A rejecting verdict is settled whatever the solver shows, and so is a proof that has fallen.
    rejected = role.market.verdicts.verdict(task_id).rejecting or role.market.objections.objected(task_id).fell
    if waiting and not rejected:
        until = waiting[0].deadline
        if role.connection.now() <= until:
            return Wait(task_id, "the solver owes data", until)
        why = "the solver hasn't shown what was demanded of it"
        return _call(task_id, "remove the solver", why, lambda: expire_demands(role, task_id))
    why = "nobody has refuted the verdict in its window"
    return _call(task_id, "settle", why, lambda: role.market.settlement.settle(role.wallet, task_id))


def _closed(role: Role, task_id: bytes, task: MarketTask) -> Decision:
    jackpot, ended = role.market.jackpot, f"the task is closed: {task.outcome.name.lower()}"
    if not jackpot.reserved_of(task_id):
        return Wait(task_id, ended, final=True)
    until = jackpot.catch_until(role.market.verdicts.closed_at(task_id))
    if role.connection.now() <= until:
        return Wait(task_id, f"{ended}; watch rewards may be claimed", until)
    why = "the time to claim watch rewards is over"
    return _call(task_id, "give back what was reserved", why, lambda: jackpot.sweep(role.wallet, task_id))
