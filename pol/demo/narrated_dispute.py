"""One dispute of the demo, move by move."""

from __future__ import annotations

from dataclasses import replace

from rich.markup import escape

from pol.chain.court.dispute_game import packed
from pol.chain.desks.market import Matter
from pol.demo.scenario_report import DisputeReport, ether
from pol.dispute.moves import ProveStep
from pol.dispute.position import Side, state_hash
from pol.dispute.rules import apply, picked
from pol.errors import OperationalError, ProtocolError
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.report.disputes.last_operation import OneStep, one_step, shown
from pol.report.disputes.move_descriptions import HEADING, MoveRow, line, opening_row, resignation_row, row, side_name
from pol.report.narrator import Narrator
from pol.roles.party.dispute_session import DisputeSession, MoveMade
from pol.roles.solver.solver import Solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.objector import FalseSegment
from pol.roles.whistleblower.whistleblower import Whistleblower


def narrated_challenge(tell: Narrator, defender: Verifier, attacker: Whistleblower, task_id: bytes) -> DisputeReport:
    """Challenge the first false claim of a verdict and play both sides to the end, narrating each move.

    Raises:
        ProtocolError: nothing is false in the verdict, or contract and library disagree.
    """
    findings = attacker.check(task_id)
    if not findings:
        raise ProtocolError("the whistleblower finds nothing wrong in a verdict with a lie; please report this")
    bond = ether(attacker.market.challenges.bond_of(task_id))
    number = attacker.challenge(task_id, findings[0])
    tell.say(
        f"A challenger puts up {bond} against the replay of segment {findings[0].claim.segment} and opens its own "
        "version. Now both sides move in turn: pick the first part that is wrong, open one's own."
    )
    sides = (defender.session(task_id, number), attacker.session(task_id, number))
    task = attacker.task(task_id)
    return narrated(tell, sides, task.program, task.names, task_id, "verifier")


def narrated_objection(
    tell: Narrator, solver: Solver, objector: Whistleblower, task_id: bytes, found: FalseSegment
) -> DisputeReport:
    """Object to a false segment and play both sides to the end, narrating each move. Raises as `narrated_challenge`."""
    bond = ether(objector.market.objections.bond_of(task_id))
    number = objector.object(task_id, found)
    tell.say(f"An objector puts up {bond} against segment {found.segment} and opens its own states along it.")
    sides = tuple(party.session(task_id, number, Matter.OBJECTION) for party in (solver, objector))
    task = objector.task(task_id)
    return narrated(tell, (sides[0], sides[1]), task.program, task.names, task_id, "solver")


def narrated(
    tell: Narrator,
    sides: tuple[DisputeSession, DisputeSession],
    program: StepProgram,
    names: ProgramNames,
    task_id: bytes,
    defender: str,
) -> DisputeReport:
    """Play a dispute that is open to its end, narrating each move; ``defender`` is what the asserter is called."""
    dispute, game = sides[0].dispute, sides[0].game
    tell.say(f"{HEADING}{'gas':>8}")
    _tell_row(tell, opening_row(game.record(dispute, program).start), 0)
    made = _play(tell, sides, dispute)
    moves = tuple(m.move for m in made if m.move is not None)
    record, params = replace(game.record(dispute, program), moves=moves), game.params(dispute)
    players = (packed(params.asserter), packed(params.challenger))
    report = DisputeReport(
        task_id=task_id,
        dispute=dispute,
        winner=side_name(game.winner(dispute)),
        ended_by="proof" if made[-1].move is not None else "resignation",
        rows=tuple(_row_of(m) for m in made),
        gas=tuple(_gas_of(m) for m in made),
        record=record,
        heads=tuple(state_hash(m.position, players[m.position.turn is Side.CHALLENGER]) for m in made),
        players=players,
        one_step=_one_step(made[-1], sides, names),
    )
    loser = defender if report.winner == "challenger" else "challenger"
    if report.one_step is not None:
        _tell_one_step(tell, report.one_step, report, loser)
    lost = f"the {loser}'s stake is slashed" if loser == defender else "the challenger loses its bond"
    tell.say(f"The {report.winner} wins after {len(made)} transactions and {sum(report.gas):,} gas: {lost}.")
    return report


def _play(tell: Narrator, sides: tuple[DisputeSession, DisputeSession], dispute: int) -> list[MoveMade]:
    made: list[MoveMade] = []
    while sides[0].game.winner(dispute) is Side.NONE:
        move = sides[0].advance() or sides[1].advance()
        if move is None:
            raise OperationalError(f"neither side of dispute {dispute} is on turn; is the node in sync?")
        made.append(move)
        _tell_row(tell, _row_of(move), _gas_of(move))
    return made


def _one_step(last: MoveMade, sides: tuple[DisputeSession, DisputeSession], names: ProgramNames) -> OneStep | None:
    """The deciding operation: of the proof, or of the one that the losing side couldn't make."""
    if isinstance(last.move, ProveStep):
        found = one_step(last.position, last.move, names)
        _require_executed(found, sides[0])
        return found
    if isinstance(last.upheld, ProveStep):
        loser = sides[0] if last.position.turn is Side.ASSERTER else sides[1]
        own = replace(last.position, opened=loser.player.open(last.position))
        claimed = int.from_bytes(picked(own, last.upheld.index), "big")
        return one_step(last.position, last.upheld, names, claimed)
    return None


def _require_executed(found: OneStep, side: DisputeSession) -> None:
    (refuted,) = side.game.events("Refuted", number=side.dispute)
    words = [int.from_bytes(bytes(refuted["detail"])[i : i + 4], "big") for i in (13, 17)]
    if words != [found.claimed, found.computed]:
        raise ProtocolError("the contract and the library compute different results; please report this")


def _tell_row(tell: Narrator, told: MoveRow, gas: int) -> None:
    tell.say(f"[dim]{escape(line(told, gas))}[/dim]")


def _tell_one_step(tell: Narrator, one: OneStep, report: DisputeReport, loser: str) -> None:
    tell.say(f"step {one.step}, node [bold]{escape(one.node)}[/bold], from: {escape(one.source)}")
    tell.say(f"{one.place}: [bold]{escape(one.expression)}[/bold]")
    tell.say(f"the {loser} claimed {shown(one.claimed, one.op)}")
    if report.ended_by == "proof":
        tell.say(f"the EVM computes     {shown(one.computed, one.op)}   ({report.gas[-1]:,} gas)")
    else:
        tell.say(f"the EVM computes     {shown(one.computed, one.op)}   and refuses the {loser}'s proof")


def _row_of(made: MoveMade) -> MoveRow:
    """A move in words."""
    if made.move is None:
        return resignation_row(made.position)
    return row(made.position, made.move, apply(made.position, made.move))


def _gas_of(made: MoveMade) -> int:
    """Gas of a transaction; 0 if it was made before and its receipt is lost."""
    return int(made.receipt["gasUsed"]) if made.receipt is not None else 0
