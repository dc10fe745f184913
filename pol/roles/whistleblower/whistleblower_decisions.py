"""Decisions of a whistleblower: what it examines, what it challenges, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pol.chain.account.wallet import Reverted
from pol.chain.desks.market import Matter
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask, Status, Terms
from pol.chain.desks.verdicts import evidence
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.data_availability import waiting_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.dispute_session import GAME
from pol.roles.party.due_moves import due_move
from pol.roles.party.public_calls import concerning_call, public_call
from pol.roles.party.role import PublicCall
from pol.roles.process.attention import attentively
from pol.roles.process.defence import require_defensible
from pol.roles.process.work_time import move_steps, profile_steps, verdict_steps
from pol.roles.whistleblower.objection_decisions import objection_decision, reason_to_leave, untimely
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.verification.profile.profile_challenge import ProfileChargeKind


def unpaid_errors(role: Whistleblower, task_id: bytes) -> list[tuple[int, int]]:
    """Seatings of a closed task with an unpaid error that this party committed to, each with the index of the error."""
    jackpot, own = role.market.jackpot, role.wallet.address
    until, hidden = jackpot.catch_until(role.market.verdicts.closed_at(task_id)), dict[int, bytes]()
    if jackpot.reserved_of(task_id) and role.connection.now() <= until:
        for event in jackpot.events("Watched", taskId=task_id, account=own):
            seating, ticket = int(event["seating"]), int(event["ticket"])
            if any(jackpot.commitment(task_id, seating, own, ticket)):
                hidden[seating] = bytes(event["commitment"])
    found = [(seating, _index(role, task_id, seating, commitment)) for seating, commitment in hidden.items()]
    return [(seating, index) for seating, index in found if index is not None]


def _index(role: Whistleblower, task_id: bytes, seating: int, commitment: bytes) -> int | None:
    """The index at which a commitment opens to the final entry; None if there is none, or if the entry stood."""
    verdicts, last = role.market.verdicts, role.market.registry.task(task_id).seating
    for index in range(len(verdicts.claims_as_posted(task_id, seating))):
        stands = verdicts.placed(task_id, last, index)
        if role.commitment(task_id, seating, index, stands.entries[index]) != commitment:
            continue
        said = verdicts.placed(task_id, seating, index, as_posted=True)
        try:
            verdicts.read("refuted", task_id, seating, index, evidence(said, stands))
        except Reverted:
            return None
        return index
    return None


def _decide(role: Whistleblower, task_id: bytes) -> Decision:
    """The next decision of a whistleblower about a task."""
    task = role.market.registry.task(task_id)
    own = _own(role, task_id, task)
    if own is not None:
        return own
    look = _catches if task.status is Status.CLOSED else LOOKS.get(task.status)
    considered = look(role, task_id, task) if look is not None else None
    if not isinstance(considered, Action) and task.status in DISPUTABLE:
        objection = objection_decision(role, task_id, task)
        considered = objection if isinstance(objection, Action) or considered is None else considered
    if isinstance(considered, Action):
        return considered
    done: Decision | PublicCall = public_call(role, task_id, role.wallet.address)
    if isinstance(done, PublicCall):
        done = concerning_call(role, task_id, _concern(role, task_id, task))
    return done if isinstance(done, Action) or considered is None else considered


def _fulfill(role: Whistleblower, task_id: bytes) -> None:
    """Do what is due about a task, and say what is known to be false: another look may outlast its window."""
    task = role.market.registry.task(task_id)
    found: Decision | None = _own(role, task_id, task)
    if found is None and task.status in LOOKS and role.has_found(task_id):
        found = LOOKS[task.status](role, task_id, task)
    if not isinstance(found, Action) and role.has_screened(task_id) and role.known_false(task_id) is not None:
        found = objection_decision(role, task_id, task)
    if isinstance(found, Action) and found.mode <= role.mode:
        found.act()


def _concern(role: Whistleblower, task_id: bytes, task: MarketTask) -> str:
    """Why public calls concern this party now; empty if they don't."""
    own = role.wallet.address
    desks = [court.desk for court in role.market.courts.values()]
    disputes = any(desk.dispute(number).challenger == own for desk in desks for number in desk.disputes(task_id))
    said = role.market.counterclaims
    if disputes or any(said.counterclaimed(number).objector == own for number in said.open_for(task_id)):
        return "it is in dispute"
    if waiting_demands(role, task_id, task)[0]:
        return "it has demanded data"
    may_watch = task.status is Status.WATCHED and role.market.sortition.tickets_now(own)
    return "its tickets may be drawn" if may_watch else ""


def _own(role: Whistleblower, task_id: bytes, task: MarketTask) -> Action | None:
    """Actions for its own stakes: moves in its disputes, and settling those that are over."""
    move = due_move(role, task_id)
    if move is not None:
        return move
    own = role.wallet.address
    courts = (role.market.courts[m] for m in Matter if m is not Matter.PROFILE)
    if any(court.desk.settleable(task_id, own) for court in courts):
        why = "disputes that it began are over or moot"
        return Action(task_id, "reclaim", why, Mode.DEFEND, lambda: role.reclaim(task_id))
    if role.market.profiles.settleable(task_id, own):
        why = "disputes about the profile that it began are over or moot"
        return Action(task_id, "reclaim", why, Mode.DEFEND, lambda: role.reclaim_profile(task_id))
    return waiting_demands(role, task_id, task)[1]


def _profile(role: Whistleblower, task_id: bytes, task: MarketTask) -> Decision | None:
    profiles = role.market.profiles
    standing = profiles.standing(task_id)
    until = standing.deadline
    if not standing.is_posted or role.connection.now() > until or standing.verifier == role.wallet.address:
        return None
    began = profiles.events("ProfileChallenged", taskId=task_id, profile=standing.number)
    if any(event["challenger"] == role.wallet.address for event in began):
        return Wait(task_id, "it has challenged the profile", until)
    terms, bond = role.market.registry.terms(task_id), profiles.bond_of(task_id)
    work = terms.profiled * (terms.rerun_count + 1) * terms.interval * terms.work_units // terms.steps
    reason = _unwilling(role, task_id, terms, work, bond)
    if reason:
        return Wait(task_id, reason, until)
    if not role.has_checked(task_id):
        waits = untimely(role, task_id, profile_steps(terms), until)
        if waits is not None:
            return waits
    charges = role.checked_twice(task_id)
    if not charges:
        return Wait(task_id, "it has measured the same as the profile says", until)
    charge = charges[0]
    wrong = f"it has measured twice that the profile is false ({charge.kind.name.lower()} {charge.index})"
    if charge.kind is ProfileChargeKind.UNDERSTATED:
        return Action(
            task_id, "convict the profile", wrong, Mode.RESOLVE, partial(role.convict_profile, task_id, charge), until
        )
    game, steps = role.market.profile_game, move_steps(terms, verifies=False)
    defends = partial(require_defensible, role, task_id, terms, game, steps)
    reason = _unprofitable(role, terms, bond, standing.open, defends)
    if reason:
        return Wait(task_id, f"{wrong}, but {reason}", until)
    act = partial(role.challenge_profile, task_id, charge)
    return Action(task_id, "challenge the profile", wrong, Mode.PROPOSE, act, until)


def _watch(role: Whistleblower, task_id: bytes, task: MarketTask) -> Decision | None:
    until, own = role.market.verdicts.verdict(task_id).watch_until, role.wallet.address
    if not until or role.connection.now() > until or own in {task.holder, task.solver, task.submitter}:
        return None
    tickets = role.watched(task_id)
    if not tickets:
        return Wait(task_id, "none of its tickets is drawn to watch the verdict", until)
    committed = role.market.jackpot.events("Watched", taskId=task_id, seating=task.seating, account=own)
    tickets = sorted(set(tickets) - {int(event["ticket"]) for event in committed})
    if not tickets:
        return Wait(task_id, "its tickets are committed to what it has found", until)
    role.examine_again(task_id)
    if not role.has_examined(task_id):
        waits = untimely(role, task_id, verdict_steps(role.market.registry.terms(task_id)), until)
        if waits is not None:
            return waits
    found = role.examined_twice(task_id).findings
    if not found:
        return Wait(task_id, "it has replayed the same as the verdict says", until)
    begin = until - role.market.jackpot.commit_window()
    wrong = f"it has replayed twice that claim {found[0].charge.index} is false, planted or not"
    if role.connection.now() <= begin:
        return Wait(task_id, f"{wrong}; commitments are taken at the end of the watch", begin)
    act = partial(role.commit, task_id, found[0], tickets)
    return Action(task_id, "commit to an error", wrong, Mode.RESOLVE, act, until)


def _verdict(role: Whistleblower, task_id: bytes, task: MarketTask) -> Decision | None:
    until, own, challenges = task.deadline, role.wallet.address, role.market.challenges
    if role.connection.now() > until or task.holder == own:
        return None
    if challenges.events("Challenged", taskId=task_id, seating=task.seating, challenger=own):
        return Wait(task_id, "it has challenged the verdict", until)
    terms, bond = role.market.registry.terms(task_id), challenges.bond_of(task_id)
    reason = _unwilling(role, task_id, terms, terms.draws * terms.interval * terms.work_units // terms.steps, bond)
    if reason:
        return Wait(task_id, reason, until)
    role.examine_again(task_id)
    if not role.has_examined(task_id):
        waits = untimely(role, task_id, verdict_steps(terms), until)
        if waits is not None:
            return waits
    checked = role.examined_twice(task_id)
    if not checked.findings:
        hidden = [each.segment for each in checked.unseen]
        unseen = f", but for the segments {hidden}, which it can't get" if hidden else ""
        return Wait(task_id, f"it has replayed the same as the verdict says{unseen}", until)
    finding = checked.findings[0]
    wrong = f"it has replayed twice that claim {finding.charge.index} is false ({finding.charge.kind.name.lower()})"
    others = challenges.contested(task_id).open
    reason = _unprofitable(
        role, terms, bond, others, partial(require_defensible, role, task_id, terms, role.market.game)
    )
    if reason:
        return Wait(task_id, f"{wrong}, but {reason}", until)
    act = partial(role.challenge, task_id, finding)
    return Action(task_id, "challenge the verdict", wrong, Mode.PROPOSE, act, until)


def _catches(role: Whistleblower, task_id: bytes, task: MarketTask) -> Decision | None:
    for seating, index in unpaid_errors(role, task_id):
        why = f"the error in claim {index} to which it had committed has been shown"
        return Action(task_id, "collect", why, Mode.RESOLVE, partial(role.collect, task_id, seating, index))
    return None


def _unwilling(role: Whistleblower, task_id: bytes, terms: Terms, work: int, bond: int) -> str:
    """Why this party doesn't examine a task; empty if it does."""
    estimate = role.strategy.checking(terms, work, bond, role.connection.gas_price())
    return reason_to_leave(role, task_id, terms, estimate)


def _unprofitable(role: Whistleblower, terms: Terms, bond: int, others: int, defends: Callable[[], None]) -> str:
    """Why this party doesn't stake on its finding; empty if it does."""
    free = role.market.vault.free(role.wallet.address)
    if free < bond:
        return f"the bond is {bond} wei, and it has {free} wei free in the vault"
    reason = role.strategy.refuses(role.strategy.challenging(terms, bond, others, role.connection.gas_price()))
    if reason:
        return f"a challenge doesn't pay, with {others} others in dispute: {reason}"
    try:
        defends()
        role.wallet.require(GAME)
    except (OperationalError, ProtocolError) as error:
        return str(error)
    return ""


LOOKS = {Status.PROFILING: _profile, Status.WATCHED: _watch, Status.CONTESTED: _verdict}
next_of_whistleblower = attentively(_decide, _fulfill)
"""`_decide`; what is due about other tasks is done between the steps of a replay."""
