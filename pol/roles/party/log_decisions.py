"""Decisions about objections to a solver's log (docs/spec/market.md, "Objections")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from eth_typing import ChecksumAddress

from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.counterclaims import Counterclaim, SaidClaim
from pol.chain.desks.dispute_desk import DisputeDesk, Ending
from pol.chain.desks.market import Court, Matter
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import MarketTask
from pol.dispute.position import Side
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.replaying_party import LogDisputant
from pol.roles.party.role import PublicCall, Role
from pol.roles.party.task_reader import TaskReader


def finished_dispute(reader: TaskReader, task_id: bytes, court: Court) -> PublicCall | None:
    """The call that pays out a dispute which the game has ended or that is moot, or that claims a timeout."""
    desk, game = court.desk, court.game
    for number in desk.disputes(task_id):
        if game.winner(number) is not Side.NONE or desk.dispute(number).ending is not Ending.NONE:
            why = f"the game has ended dispute {number}"
            return PublicCall(task_id, "settle a dispute", why, partial(_settle, desk, number))
        if reader.connection.now() >= game.deadline(number):
            why = f"the clock of the side on turn in dispute {number} has run down"
            return PublicCall(task_id, "claim a timeout", why, partial(_claim_timeout, game, number))
    return None


def objection_call(
    reader: TaskReader, task_id: bytes, task: MarketTask, by: ChecksumAddress | None
) -> PublicCall | None:
    """The public call that takes an objection further; None if none waits for anybody.

    A solver concludes no counterclaim about its own log: that would help a false one that it could still refute.
    """
    market = reader.market
    if task.status not in DISPUTABLE or not market.objections.objected(task_id).open:
        return None
    return next((deed for deed in _calls(reader, task_id, task, by) if deed is not None), None)


def objections_until(reader: TaskReader, task_id: bytes) -> int:
    """The last second before a clock or a window of an open objection runs down; chain time if none does."""
    market = reader.market
    ends = [market.objection_game.deadline(number) - 1 for number in market.objections.disputes(task_id)]
    ends += [market.counterclaims.counterclaimed(number).until for number in market.counterclaims.open_for(task_id)]
    ends += [market.counterclaim_game.deadline(number) - 1 for number in market.counterclaims.disputes(task_id)]
    now = reader.connection.now()
    return min((end for end in ends if end >= now), default=now)


def contestable(role: Role, task_id: bytes) -> list[tuple[SaidClaim, Counterclaim]]:
    """The counterclaims about a log that this party may still contest and hasn't contested, the oldest first."""
    market, own, now = role.market, role.wallet.address, role.connection.now()
    if market.objections.objected(task_id).fell:
        return []
    desk = market.counterclaims
    contested = {int(event["number"]) for event in desk.events("Contested", taskId=task_id, challenger=own)}
    found = [(number, desk.counterclaimed(number)) for number in desk.open_for(task_id) if number not in contested]
    return [(desk.said(number), each) for number, each in found if not each.fell and now <= each.until]


def contest_decision(role: LogDisputant, task_id: bytes, said: SaidClaim, found: Counterclaim) -> Decision | None:
    """The contest of a false counterclaim about this party's own log; None if it is true."""
    charges = role.false_parts(task_id, said)
    if not charges:
        return None
    why = f"counterclaim {said.number} about segment {said.claim.segment} of its log is false"
    # Windows leave time for one after the other, with one bond and one machine (docs/spec/market.md, "Objections").
    desk, latest = role.market.counterclaims, found.until - role.market.registry.terms(task_id).challenge_window // 2
    is_busy = any(desk.dispute(number).challenger == role.wallet.address for number in desk.disputes(task_id))
    if is_busy and role.connection.now() < latest:
        return Wait(task_id, f"{why}: it contests one after the other, and this one by second {latest}", latest)
    free = role.market.vault.free(role.wallet.address)
    if free < found.bond:
        why += f", but a contest's bond is {found.bond} wei, and it has {free} wei free in the vault"
        return Wait(task_id, f"{why}: deposit {found.bond - free} wei by second {found.until}", found.until)
    act = partial(role.contest, task_id, said, charges[0])
    return Action(task_id, "contest a counterclaim", why, Mode.DEFEND, act, found.until)


def _calls(
    reader: TaskReader, task_id: bytes, task: MarketTask, by: ChecksumAddress | None
) -> Iterator[PublicCall | None]:
    market, now = reader.market, reader.connection.now()
    desk, fell = market.counterclaims, market.objections.objected(task_id).fell
    yield finished_dispute(reader, task_id, market.courts[Matter.OBJECTION])
    for number in market.objections.disputes(task_id) if fell else ():
        why = f"objection {number} is moot: the proof has fallen"
        yield PublicCall(task_id, "settle a dispute", why, partial(_settle, market.objections, number))
    for number in desk.disputes(task_id):
        if desk.is_moot(number):
            why = f"dispute {number} about a counterclaim is moot"
            yield PublicCall(task_id, "settle a dispute", why, partial(_settle, desk, number))
    yield finished_dispute(reader, task_id, market.courts[Matter.COUNTERCLAIM])
    for number in desk.open_for(task_id) if task.solver != by else ():
        found = desk.counterclaimed(number)
        if not found.fell and (fell or (now > found.until and not found.open)):
            why = f"nobody has refuted counterclaim {number}" if not fell else "the proof has fallen otherwise"
            yield PublicCall(task_id, "conclude a counterclaim", why, partial(_conclude, number))


def _settle(desk: DisputeDesk, number: int, role: Role) -> None:
    desk.settle(role.wallet, number)


def _claim_timeout(game: DisputeGame, number: int, role: Role) -> None:
    game.timeout(role.wallet, number)


def _conclude(number: int, role: Role) -> None:
    role.market.counterclaims.conclude(role.wallet, number)
