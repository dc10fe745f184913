"""Decisions about exact proofs of a party's own log: published for everybody, and shown on chain in a dispute.

Proofs in the store cost nothing but time, so each segment gets them once nothing else is due. On chain a step costs
some 300,000 gas: that is spent only where it ends a dispute, and only as much as the dispute is worth.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from pol.chain.desks.challenges import ClaimChargeKind
from pol.chain.desks.dispute_desk import Ending
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask
from pol.dispute.position import Side
from pol.errors import PolError, ProtocolError
from pol.incentives.payouts import WINNER_OF_BOND, share_down
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.dispute_session import GAME_GAS
from pol.roles.party.policy import MINUTE
from pol.roles.process.obligations import next_due
from pol.roles.process.work_time import RESERVE
from pol.roles.solver.step_prover import StepProver, proofs_name

LOG = logging.getLogger(__name__)
LONGEST = 30 * MINUTE
"""Seconds that proofs of one segment may take: others may begin something that this party has to answer."""
LEAST = MINUTE
"""Seconds for the transactions that show proofs which are in the store."""
STEP_GAS, TIE_GAS, NUMBER_GAS, SETTLE_GAS = 300_000, 190_000, 6_000, 270_000
"""Gas of a proof on chain, of a tie and of each number that it shows, and of what ends the dispute; rounded up."""


def publish_decision(role: StepProver, task_id: bytes, task: MarketTask) -> Decision | None:
    """The proofs of the next segment of this party's log that aren't in the store; None if none are missing."""
    if not _is_asked(role, task_id, task):
        return None
    try:
        role.provable(task_id)
    except ProtocolError as error:
        return Wait(task_id, f"it publishes no proofs, and answers in the game: {error}")
    interval = role.task(task_id).document.interval
    for segment in range(role.task(task_id).document.segments):
        if (task_id, segment) in role.unproved or role.has_published(task_id, segment):
            continue
        seconds = _seconds(role, task_id, role.connection.now() + role.market.registry.terms(task_id).clock)
        if seconds < max(LEAST, role.seconds_of_proofs.get(task_id, 0)):
            return Wait(task_id, f"proofs of segment {segment} would take too long: something else is due before")
        why = f"its submitter asks for proofs: {proofs_name(task_id, segment * interval)} is for segment {segment}"
        act = partial(_tried, role, task_id, segment, partial(role.proofs, task_id, segment, seconds))
        return Action(task_id, "publish proofs", why, Mode.DEFEND, act)
    return None


def objection_proof(role: StepProver, task_id: bytes, task: MarketTask, number: int) -> Action | None:
    """What ends an objection to this party's log by proof, without a move; None where the game is better."""
    desk, game = role.market.objections, role.market.objection_game
    if not _answers(role, task_id, task) or not _is_open(desk.dispute(number).ending, game.winner(number)):
        return None
    segment, pays = desk.segment(number), share_down(desk.dispute(number).bond, WINNER_OF_BOND)
    until = min(game.deadline(each) for each in desk.disputes(task_id))

    def end(shown: bytes) -> None:
        desk.settle_by_proof(role.wallet, number, role.committed_segment(task_id, segment), shown)
        desk.settle_once(role.wallet, number)

    why = f"segment {segment} of its log is right: a proof ends objection {number}"
    return _ending(role, task_id, segment, pays, until, why, end)


def challenge_proof(role: StepProver, task_id: bytes, task: MarketTask, number: int) -> Action | None:
    """What ends a challenge of a verdict by proof, if the verdict says something false about this party's log.

    A verdict that is right is its verifier's to defend.
    """
    desk, game, verdicts = role.market.challenges, role.market.game, role.market.verdicts
    if not _answers(role, task_id, task) or not _is_open(desk.dispute(number).ending, game.winner(number)):
        return None
    charge = desk.charge(number)
    if charge.kind is not ClaimChargeKind.REPLAY:
        return None
    placed = verdicts.placed(task_id, task.seating, charge.index)
    segment, claim = placed.claim.segment, placed.claim
    if claim.replay == role.proof(task_id).checkpoints[segment + 1].state_root:
        return None

    def end(shown: bytes) -> None:
        desk.settle_by_proof(role.wallet, number, charge, placed, shown)
        desk.settle_once(role.wallet, number)

    why = f"segment {segment} of its log is right, and the verdict is false: a proof ends dispute {number}"
    pays = role.market.registry.terms(task_id).solver_stake
    return _ending(role, task_id, segment, pays, game.deadline(number), why, end)


def _is_asked(role: StepProver, task_id: bytes, task: MarketTask) -> bool:
    """Whether the task has an exact log of this party, and asks for proofs of its steps."""
    is_own = task.solver == role.wallet.address and task.status in DISPUTABLE
    return is_own and role.market.registry.terms(task_id).is_exact and role.asks_for_proofs(task_id)


def _answers(role: StepProver, task_id: bytes, task: MarketTask) -> bool:
    """Whether this party is asked for proofs and can make them; what it lacks is told by `publish_decision`."""
    with suppress(ProtocolError):
        return _is_asked(role, task_id, task) and role.provable(task_id) is not None
    return False


def _is_open(ending: Ending, winner: Side) -> bool:
    return ending is Ending.NONE and winner is Side.NONE


def _ending(
    role: StepProver, task_id: bytes, segment: int, pays: int, deadline: int, why: str, end: Callable[[bytes], None]
) -> Action | None:
    """The proof of a segment that ends a dispute, unless it was tried in vain, takes too long or costs too much."""
    if (task_id, segment) in role.unproved:
        return None
    needed = 0.0 if role.has_published(task_id, segment) else role.seconds_of_proofs.get(task_id, 0.0)
    seconds = _seconds(role, task_id, deadline)
    if seconds < max(LEAST, needed) or _gas(role, task_id, segment) > _worth(role, pays):
        return None

    def act() -> None:
        end(role.show(task_id, segment, role.proofs(task_id, segment, seconds)))

    tried = partial(_tried, role, task_id, segment, act)
    return Action(task_id, "settle by proof", why, Mode.DEFEND, tried, deadline - 1)


def _tried(role: StepProver, task_id: bytes, segment: int, act: Callable[[], object]) -> None:
    """Try to prove a segment, once: what fails may fail again, and a clock runs meanwhile."""
    role.unproved[task_id, segment] = "its proof failed"
    try:
        act()
    except PolError as error:
        role.unproved[task_id, segment] = str(error)
        LOG.warning("task %s: no proof of segment %d, the game decides: %s", task_id.hex(), segment, error)
        raise
    del role.unproved[task_id, segment]


def _seconds(role: StepProver, task_id: bytes, until: int) -> float:
    """The seconds that proofs may take now: what is due has to fit in behind them, and as much again."""
    now, due = role.connection.now(), next_due(role, task_id)
    return (min(until, now + LONGEST, due if due is not None else until) - now) / RESERVE


def _gas(role: StepProver, task_id: bytes, segment: int) -> int:
    """Gas that a proof still costs on chain: what somebody has shown is shown for every dispute."""
    steps, ends = role.missing_on_chain(task_id, segment)
    size = role.provable(task_id).circuit.network.nodes[0].size
    return steps * STEP_GAS + ends * (TIE_GAS + NUMBER_GAS * size) + SETTLE_GAS


def _worth(role: StepProver, pays: int) -> int:
    """Gas that the end of a dispute is worth: the moves that it spares, or what the party gets by it, if that is more.

    In a market whose asset isn't the chain's own, gas can't be compared with what it gets.
    """
    if role.market.vault.token is not None:
        return GAME_GAS
    return max(GAME_GAS, pays // max(1, role.connection.gas_price()))
