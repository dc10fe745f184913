"""Decisions of a solver: the tasks that it bids for, and its duties once it has bid or won."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from pol.chain.desks.dispute_desk import Ending
from pol.chain.desks.market import Matter
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask, Status, Terms
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.incentives.payouts import MAX_OBJECTION_DOUBLINGS, objection_bond, segment_price, slashable
from pol.roles.party.data_availability import answer_demands, current_demands
from pol.roles.party.decisions import Action, Decision, Mode, Wait, lacks
from pol.roles.party.due_moves import stake_in
from pol.roles.party.log_decisions import contest_decision, contestable
from pol.roles.party.public_calls import concerning_call
from pol.roles.process.attention import Attention, tell
from pol.roles.process.defence import require_log
from pol.roles.process.obligations import require_nothing_due
from pol.roles.process.schedule import PATIENCE, Job, require_schedule
from pol.roles.process.work_time import profile_steps, seconds_for, wait_for_time
from pol.roles.solver.proof_decisions import challenge_proof, objection_proof, publish_decision
from pol.roles.solver.solver import Solver

T = TypeVar("T")
LOG = logging.getLogger(__name__)


@dataclass
class LogDuties:
    """What is due about a task, the most urgent first. No source of duties that fails hides those of another."""

    deeds: list[Action] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    """Duties that this party can't fulfill for now."""
    troubles: list[Exception] = field(default_factory=list)

    def ask(self, source: Callable[[], Decision | None]) -> None:
        """Add what a source of duties says, or that it fails."""
        found = _caught(source)
        if isinstance(found, Exception):
            self.troubles.append(found)
        elif isinstance(found, Action):
            self.deeds.append(found)
        elif found is not None:
            self.waits.append(found)

    def action(self) -> Action | None:
        """The most urgent deed; where it fails, the others are tried in their order until one succeeds."""
        return replace(self.deeds[0], act=partial(_first_possible, tuple(self.deeds))) if self.deeds else None


def log_duties(role: Solver, task_id: bytes, task: MarketTask, proves: bool = True) -> LogDuties:
    """All that is due about the bid and the disputes of this party, and about its log if it is the solver.

    Moves and data come first, by their deadlines, then what ends a dispute, then contests. One decision compares one
    counterclaim with a replay at most: many may be open. With ``proves``, a proof is tried before the move that it
    spares, where there is time for both, and states are published again.
    """
    duties = LogDuties()
    if task.status is Status.BIDDING:
        duties.ask(partial(_reveal, role, task_id))
    is_open = task.solver == role.wallet.address and task.status in DISPUTABLE
    is_exact = role.market.registry.terms(task_id).is_exact
    if is_open:
        duties.ask(partial(_data, role, task_id, task))
        if proves:
            duties.ask(partial(_served, role, task_id, task))
    if is_open or not is_exact:
        # The bonds of contests outlive the objections, and the task.
        for matter, number in _own_disputes(role, task_id, tuple(Matter) if is_open else (Matter.COUNTERCLAIM,)):
            if proves and matter is Matter.OBJECTION:
                duties.ask(partial(objection_proof, role, task_id, task, number))
            duties.ask(partial(_in_dispute, role, task_id, matter, number))
    if proves and is_open and task.status is Status.CONTESTED:
        for number in role.market.challenges.disputes(task_id):
            duties.ask(partial(challenge_proof, role, task_id, task, number))
    duties.deeds.sort(key=lambda deed: (deed.due is None, deed.due or 0))
    if is_open and not is_exact:
        _ask_for_contests(role, task_id, duties)
    return duties


def fulfill(role: Solver, task_id: bytes) -> None:
    """Do what is due about a task and has a clock: a training waits. What fails is logged, and the rest is done."""
    duties = log_duties(role, task_id, role.market.registry.task(task_id), proves=False)
    for trouble in duties.troubles:
        tell(task_id, "look at its log", trouble)
    for wait in duties.waits:
        LOG.warning("task %s: %s", task_id.hex(), wait.why)
    for deed in duties.deeds:
        failure = _caught(deed.act)
        if isinstance(failure, Exception):
            tell(task_id, deed.verb, failure)


def _ask_for_contests(role: Solver, task_id: bytes, duties: LogDuties) -> None:
    found = _caught(partial(contestable, role, task_id))
    if isinstance(found, Exception):
        duties.troubles.append(found)
        return
    unseen = [pair for pair in found if not role.has_compared(task_id, pair[0])]
    # One that can't be compared is put behind the others.
    unseen.sort(key=lambda pair: role.begun_comparisons[task_id, pair[0].number])
    known = len(duties.deeds)
    for said, counterclaim in [pair for pair in found if pair not in unseen] + unseen[:1]:
        if len(duties.deeds) == known:
            duties.ask(partial(contest_decision, role, task_id, said, counterclaim))
    if len(unseen) > 1:
        why = f"it looks at one counterclaim about its log after the other, and at {len(unseen) - 1} next"
        duties.waits.append(Wait(task_id, why, unseen[1][1].until))


def _reveal(role: Solver, task_id: bytes) -> Action | None:
    auction, now = role.market.auction, role.connection.now()
    round_id = auction.last_round(role.market.registry.address, task_id)
    standing = auction.standing(round_id)
    if not (standing.bid_until < now <= standing.reveal_until and auction.has_bid(round_id, role.wallet.address)):
        return None
    why = "the time for bids is over; a bid that isn't revealed loses a sixteenth of its stake"
    return Action(task_id, "reveal", why, Mode.DEFEND, lambda: role.reveal(task_id), standing.reveal_until)


def _data(role: Solver, task_id: bytes, task: MarketTask) -> Action | None:
    demands = [each for each in current_demands(role, task_id, task) if role.connection.now() <= each.deadline]
    if not demands:
        return None
    due, why = min(demand.deadline for demand in demands), f"{len(demands)} leaves of its log are demanded"
    return Action(task_id, "show data", why, Mode.DEFEND, lambda: answer_demands(role, task_id), due)


def _served(role: Solver, task_id: bytes, task: MarketTask) -> Decision | None:
    """Publish the states again where a verifier says that it can't read them: a second word costs the stake."""
    said = role.market.settlement.unserved_by(task_id)
    if not said:
        return None
    why = f"{', '.join(said)} can't read the states from {role.store.url}, as it says; a second one ends the training"
    left, now = role.unpublished.get((task_id, task.began)), role.connection.now()
    if left is not None and all(since > now for since in left.values()):
        lost = f"; log entries {list(left)} can't be published again, see the log" if left else ""
        return Wait(task_id, f"{why}: see that others reach this store{lost}", min(left.values(), default=now))
    return Action(task_id, "publish the states again", why, Mode.DEFEND, lambda: role.serve(task_id))


def _own_disputes(role: Solver, task_id: bytes, matters: tuple[Matter, ...]) -> Iterator[tuple[Matter, int]]:
    for matter in matters:
        court = role.market.courts[matter]
        for number in court.desk.disputes(task_id):
            params = court.game.params(number)
            if role.wallet.address in {params.asserter, params.challenger}:
                yield matter, number


def _in_dispute(role: Solver, task_id: bytes, matter: Matter, number: int) -> Action | None:
    """A move, or what ends a dispute in this party's favor; its own defeat is left to others.

    Nothing is replayed before the move itself.
    """
    court, own, now = role.market.courts[matter], role.wallet.address, role.connection.now()
    desk, game, params = court.desk, court.game, court.game.params(number)

    def ends(verb: str, why: str, act: Callable[[], object]) -> Action:
        return Action(task_id, verb, why, Mode.DEFEND, act)

    settle = partial(desk.settle, role.wallet, number)
    winner = game.winner(number)
    if _is_moot(role, task_id, matter, number):
        why = f"dispute {number} of this party is moot"
        return ends("settle a dispute", why, settle) if params.challenger == own else None
    if winner is not Side.NONE or desk.dispute(number).ending is not Ending.NONE:
        is_won = winner is not Side.NONE and params.player(winner) == own
        return ends("settle a dispute", f"this party has won dispute {number}", settle) if is_won else None
    on_turn = game.standing(number, role.program_in(task_id, number, matter)).on_turn
    deadline = game.deadline(number)
    if on_turn == own and now < deadline:
        why = f"it is this party's turn in dispute {number}"
        act = partial(_move, role, task_id, matter, number)
        stake = stake_in(role, task_id, matter, number)
        return Action(task_id, "move", why, Mode.DEFEND, act, deadline - 1, stake)
    if on_turn != own and now >= deadline:
        why = f"the clock of the other side in dispute {number} has run down"
        return ends("claim a timeout", why, partial(game.timeout, role.wallet, number))
    return None


def _is_moot(role: Solver, task_id: bytes, matter: Matter, number: int) -> bool:
    """Whether a dispute decides nothing any more: another has decided before."""
    if matter is Matter.COUNTERCLAIM:
        return role.market.counterclaims.is_moot(number)
    desk = role.market.courts[matter].desk
    return desk.disputable(task_id).fell and desk.dispute(number).ending is not Ending.FELL


def _move(role: Solver, task_id: bytes, matter: Matter, number: int) -> None:
    role.session(task_id, number, matter).advance()


def _first_possible(deeds: tuple[Action, ...]) -> None:
    """Do the first deed that succeeds, and report the first failure."""
    failures = list[Exception]()
    for deed in deeds:
        failure = _caught(deed.act)
        if isinstance(failure, Exception):
            failures.append(failure)
            continue
        if failures:
            LOG.warning("task %s: %s instead: %s", deed.task_id.hex(), deed.verb, deed.why)
        break
    if failures:
        raise failures[0]


def _caught(act: Callable[[], T]) -> T | Exception:
    """What a call returns, or why it failed: no duty that fails may keep this party from the others."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001  # a store, a node or a bug: whatever it is, a clock runs elsewhere
        return error


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
