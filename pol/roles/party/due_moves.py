"""The moves that a party owes in disputes about a task. Nothing is replayed before the move itself is made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pol.chain.desks.market import Matter
from pol.dispute.position import Side
from pol.errors import PolError
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.replaying_party import ReplayingParty

LOG = logging.getLogger(__name__)


def due_move(role: ReplayingParty, task_id: bytes) -> Action | None:
    """The move of this party with the least time left; None if it is on turn nowhere.

    A dispute that can't be read hides no other. Where the move fails, the next one is tried.

    Raises:
        ProtocolError: the only dispute left is about no rerun of a second look of this task.
    """
    found, failures = list[Action](), list[PolError]()
    for matter, number in role.own_disputes(task_id):
        try:
            move = _move(role, task_id, matter, number)
        except PolError as error:
            failures.append(error)
            continue
        if move is not None:
            found.append(move)
    if not found:
        if failures:
            raise failures[0]
        return None
    found.sort(key=lambda move: move.due or 0)
    return replace(found[0], act=partial(_first_possible, found))


def _first_possible(moves: Sequence[Action]) -> None:
    failures = list[PolError]()
    for move in moves:
        try:
            move.act()
        except PolError as error:
            LOG.warning("task %s: %s, and it fails: %s", move.task_id.hex(), move.why, error)
            failures.append(error)
        else:
            return
    raise failures[0]


def stake_in(role: ReplayingParty, task_id: bytes, matter: Matter, number: int) -> int:
    """What this party loses with a dispute; units of the vault's asset."""
    court, terms = role.market.courts[matter], role.market.registry.terms(task_id)
    if court.game.params(number).challenger == role.wallet.address:
        return court.desk.dispute(number).bond
    stakes = {Matter.OBJECTION: terms.solver_stake, Matter.COUNTERCLAIM: role.market.objections.bond_of(task_id)}
    return stakes.get(matter, terms.verifier_stake)


def _move(role: ReplayingParty, task_id: bytes, matter: Matter, number: int) -> Action | None:
    game = role.market.courts[matter].game
    if game.winner(number) is not Side.NONE:
        return None
    if game.standing(number, role.program_in(task_id, number, matter)).on_turn != role.wallet.address:
        return None
    why, stake = f"it is this party's turn in dispute {number}", stake_in(role, task_id, matter, number)

    def act() -> object:
        return role.session(task_id, number, matter).advance()

    return Action(task_id, "move", why, Mode.DEFEND, act, game.deadline(number) - 1, stake)
