"""Public calls: anybody may make them, so that no task stands still (docs/spec/market.md, "Statuses")."""

from __future__ import annotations

from dataclasses import replace

from eth_typing import ChecksumAddress

from pol.chain.desks.market import Court, Matter
from pol.chain.desks.seats import Seating
from pol.chain.desks.task_registry import MarketTask, Status
from pol.incentives.payouts import WORDS
from pol.roles.party.beacon_exits import beacon_exit, duty_extension, rounds_of_duty
from pol.roles.party.data_availability import current_demands, expire_demands, expired_demand
from pol.roles.party.decisions import Decision, Wait
from pol.roles.party.log_decisions import finished_dispute, objection_call, objections_until
from pol.roles.party.role import PublicCall, Role
from pol.roles.party.task_reader import TaskReader


def concerning_call(role: Role, task_id: bytes, concern: str, takes: bool = False) -> Decision:
    """As `public_call`, but a call that gains this party nothing is left to those that wait for it.

    ``concern`` says why the call concerns this party; empty if it doesn't. Otherwise many would pay for the same call,
    and all but one for nothing. Only who ``takes`` the seat or the task calls for a round of one that nobody has taken:
    else parties would pay for round after round of what nobody can take.
    """
    found = public_call(role, task_id, role.wallet.address)
    if isinstance(found, Wait):
        return found
    if concern and (takes or not found.for_takers):
        return found.by(role)
    why = f"{found.why}; that is left to those that wait for it ({found.verb})"
    return Wait(task_id, why, role.connection.now())


def public_call(reader: TaskReader, task_id: bytes, by: ChecksumAddress | None = None) -> PublicCall | Wait:
    """The next public call of a task, if it waits for no party; ``by`` is the account that would make it."""
    task = reader.market.registry.task(task_id)
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
    found = objection_call(reader, task_id, task, by) or exit_or_extension(reader, task_id, task, by)
    return found or decide(reader, task_id, task)


def exit_or_extension(
    reader: TaskReader, task_id: bytes, task: MarketTask, by: ChecksumAddress | None
) -> PublicCall | None:
    """The call that ends a wait in vain, or gives a verifier the time back that the beacon has taken.

    A seated party makes it before its own duty, which it can't fulfill while its rounds or the data are missing.
    """
    found = expired_demand(reader, task_id, task, by) or beacon_exit(reader, task_id, task.status)
    if found is None and task.status is Status.VERIFYING and reader.connection.now() <= task.deadline:
        return duty_extension(reader, task_id, task.deadline)
    return found


def _next_deadline(court: Court, task_id: bytes) -> int:
    """The last second before a clock of a dispute runs down."""
    return min(court.game.deadline(number) for number in court.desk.disputes(task_id)) - 1


def _profiling(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    profiles = reader.market.profiles
    standing = profiles.standing(task_id)
    if not standing.is_posted:
        return _seat(reader, task_id, task) if not task.is_seated else _default(reader, task_id, task, "profiler")
    court = reader.market.courts[Matter.PROFILE]
    ended = finished_dispute(reader, task_id, court)
    if ended is not None:
        return ended
    if reader.connection.now() <= standing.deadline:
        return Wait(task_id, "the profile may be challenged", standing.deadline)
    if standing.open:
        until = _next_deadline(court, task_id)
        return Wait(task_id, f"the profile waits for {standing.open} disputes", until)
    why = "nobody has refuted the profile in its window"
    return PublicCall(task_id, "conclude the profile", why, lambda role: profiles.conclude(role.wallet, task_id))


def _committed(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    settlement = reader.market.settlement
    if len(settlement.unserved_by(task_id)) < WORDS:
        return _seat(reader, task_id, task)
    why = "two verifiers have said that the solver doesn't serve the states"
    return PublicCall(task_id, "remove the solver", why, lambda role: settlement.claim_unserved(role.wallet, task_id))


def _seat(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    seats, seating = reader.market.seats, reader.market.seats.seating(task_id)
    if seating.until and reader.connection.now() <= seating.until:
        return Wait(task_id, "the seat takes claims", seating.until)
    if not seating.until:
        return _claims(reader, task_id, seating)
    why = "the window for claims of the seat is over"
    decide = PublicCall(task_id, "decide the seat", why, lambda role: seats.decide(role.wallet, task_id))
    return replace(decide, for_takers=not int(seating.best, 16))


def _claims(reader: TaskReader, task_id: bytes, seating: Seating) -> PublicCall | Wait:
    seats = reader.market.seats
    if reader.beacon.is_due(seating.round):

        def make(role: Role) -> None:
            role.bring(seating.round)
            seats.open_claims(role.wallet, task_id)

        why = f"round {seating.round} of the beacon ranks claims of the seat"
        return replace(PublicCall(task_id, "open claims", why, make), for_takers=True)
    return Wait(task_id, f"the seat waits for round {seating.round} of the beacon", reader.connection.now())


def _bidding(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    registry = reader.market.registry
    standing = reader.market.auction.standing(reader.market.auction.last_round(registry.address, task_id))
    now = reader.connection.now()
    if now <= standing.bid_until:
        return Wait(task_id, f"solvers bid; {standing.bids} have", standing.bid_until)
    if standing.revealed < standing.bids and now <= standing.reveal_until:
        return Wait(task_id, f"{standing.bids - standing.revealed} bids aren't revealed yet", standing.reveal_until)
    why = "all bids are revealed" if standing.bids == standing.revealed else "the time for revealing bids is over"
    if not standing.bids:
        why = "nobody has bid, so another round begins"
    award = PublicCall(task_id, "award", why, lambda role: registry.award(role.wallet, task_id))
    return replace(award, for_takers=not standing.bids)


def _training(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    if reader.connection.now() <= task.deadline:
        return Wait(task_id, "the solver trains", task.deadline)
    why = "the solver hasn't committed a proof in the time that it promised"
    settlement = reader.market.settlement
    return PublicCall(
        task_id, "remove the solver", why, lambda role: settlement.claim_solver_default(role.wallet, task_id)
    )


def _verifying(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    waiting = current_demands(reader, task_id, task)
    if waiting and reader.connection.now() > task.deadline:
        # The verifier hasn't defaulted while the solver may still show data. Expired demands are ended before.
        return Wait(task_id, "the solver owes data", waiting[0].deadline)
    return _default(reader, task_id, task, "verifier")


def _default(reader: TaskReader, task_id: bytes, task: MarketTask, holder: str) -> PublicCall | Wait:
    if reader.connection.now() <= task.deadline:
        return Wait(task_id, f"the {holder} works", task.deadline)
    settlement = reader.market.settlement
    # A default is claimed with the rounds that fix the verifier's duty.
    rounds = rounds_of_duty(reader, task_id) if holder == "verifier" else []
    if not all(reader.beacon.is_due(number) for number in rounds):
        return Wait(task_id, "the verifier's duty waits for the beacon", reader.connection.now())

    def make(role: Role) -> None:
        for number in rounds:
            role.bring(number)
        settlement.claim_seat_default(role.wallet, task_id)

    why = f"the {holder} hasn't posted anything in its time"
    return PublicCall(task_id, f"remove the {holder}", why, make)


def _watched(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    verdicts, verdict = reader.market.verdicts, reader.market.verdicts.verdict(task_id)
    if not verdict.watch_until:
        if reader.beacon.is_due(verdict.watch_round):

            def make(role: Role) -> None:
                role.bring(verdict.watch_round)
                verdicts.open_watch(role.wallet, task_id)

            return PublicCall(
                task_id, "open the watch", f"round {verdict.watch_round} of the beacon draws watchers", make
            )
        return Wait(task_id, f"the watch waits for round {verdict.watch_round} of the beacon", reader.connection.now())
    if reader.connection.now() <= verdict.watch_until:
        return Wait(task_id, "watchers replay the drawn segments", verdict.watch_until)
    end = verdict.watch_until + reader.market.registry.terms(task_id).disclosure_window
    if reader.connection.now() <= end:
        return Wait(task_id, "the verifier discloses whether it had to err", end)
    why = "the verifier hasn't disclosed whether it had to err"
    return PublicCall(
        task_id, "remove the verifier", why, lambda role: verdicts.claim_undisclosed(role.wallet, task_id)
    )


def _contested(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    challenges, court = reader.market.challenges, reader.market.courts[Matter.VERDICT]
    ended = finished_dispute(reader, task_id, court)
    if ended is not None:
        return ended
    if reader.connection.now() <= task.deadline:
        return Wait(task_id, "the verdict may be challenged", task.deadline)
    if challenges.contested(task_id).open:
        return Wait(task_id, "the verdict waits for disputes", _next_deadline(court, task_id))
    if reader.market.objections.objected(task_id).open:
        return Wait(task_id, "the task waits for objections", objections_until(reader, task_id))
    waiting = current_demands(reader, task_id, task)
    # A rejecting verdict is settled whatever the solver shows, and so is a proof that has fallen.
    rejected = reader.market.verdicts.verdict(task_id).rejecting or reader.market.objections.objected(task_id).fell
    if waiting and not rejected:
        until = waiting[0].deadline
        if reader.connection.now() <= until:
            return Wait(task_id, "the solver owes data", until)
        why = "the solver hasn't shown what was demanded of it"
        return PublicCall(task_id, "remove the solver", why, lambda role: expire_demands(role, task_id))
    why = "nobody has refuted the verdict in its window"
    return PublicCall(task_id, "settle", why, lambda role: reader.market.settlement.settle(role.wallet, task_id))


def _closed(reader: TaskReader, task_id: bytes, task: MarketTask) -> PublicCall | Wait:
    jackpot, ended = reader.market.jackpot, f"the task is closed: {task.outcome.name.lower()}"
    if not jackpot.reserved_of(task_id):
        return Wait(task_id, ended, final=True)
    until = jackpot.catch_until(reader.market.verdicts.closed_at(task_id))
    if reader.connection.now() <= until:
        return Wait(task_id, f"{ended}; watch rewards may be claimed", until)
    why = "the time to claim watch rewards is over"
    return PublicCall(task_id, "give back what was reserved", why, lambda role: jackpot.sweep(role.wallet, task_id))
