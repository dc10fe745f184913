"""Reads a whole market into a `MarketView`: tasks, their events and verdicts, and disputes move by move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pol.arithmetic.primitives import ARITY, Op
from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.court.dispute_from_events import Verb
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.market import Court, Market, Matter
from pol.chain.node.connection import Connection
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.node_names import NodeName, ProgramNames
from pol.graph.step_program import StepProgram
from pol.roles.monitor.market_view import DisputeView, EndReason, EvmOperation, MarketView, TaskEvent, TaskView
from pol.roles.party.decisions import Action
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.public_calls import public_call
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.verification.examination.training_course import TrainingCourse, course_of

_TOLD: dict[str, tuple[str, str | None]] = {
    "Pinned": ("says which proofs it will take", "submitter"),
    "TaskSubmitted": ("submitted, with an escrow of {escrow}", "submitter"),
    "SeatOpened": ("a seat is open", None),
    "SeatTaken": ("took the seat", "holder"),
    "SeatLeft": ("left the seat", "holder"),
    "ProfilePosted": ("posted a profile", "verifier"),
    "ProfileChallenged": ("challenged the profile", "challenger"),
    "ProfileDisputeSettled": ("a dispute about the profile is settled", None),
    "ProfileGone": ("the profile is gone", None),
    "ProfileConcluded": ("the profile stands", "verifier"),
    "Awarded": ("won the auction at {price}", "solver"),
    "SolverGone": ("was removed", "solver"),
    "ProgressPosted": ("the solver posted checkpoint {size}", None),
    "ProofCommitted": ("the solver committed to {size} checkpoints", None),
    "VerdictPosted": ("posted a verdict: {rejecting} claims reject", "verifier"),
    "WatchOpened": ("watchers are drawn", None),
    "Watched": ("committed to an error", "account"),
    "Disclosed": ("the verifier disclosed whether it had to err", None),
    "DutyBroken": ("lost its stake: broken secret or duty", "verifier"),
    "Challenged": ("challenged the verdict", "challenger"),
    "SettledByProof": ("a zero-knowledge proof ends a dispute about the verdict", None),
    "StepProven": ("step {step} is proved in zero knowledge", None),
    "Tied": ("a state is shown, to tie proofs to it", None),
    "DisputeSettled": ("a dispute about the verdict is settled", None),
    "DisputeMoot": ("a dispute about the verdict is moot", None),
    "Objected": ("objected to segment {segment} of the log", "objector"),
    "ObjectionSettled": ("a dispute about a segment of the log is settled", None),
    "ObjectionMoot": ("an objection is moot", None),
    "ObjectionProven": ("a zero-knowledge proof ends a dispute about a segment", None),
    "ZeroShown": ("showed that entry {entry} of the log is zero", "objector"),
    "Counterclaimed": ("says that the rule rejects a segment of the log", "objector"),
    "Contested": ("contests what an objector says", "challenger"),
    "ContestSettled": ("a dispute about a counterclaim is settled", None),
    "ContestMoot": ("a dispute about a counterclaim is moot", None),
    "CounterclaimConcluded": ("a counterclaim is over", None),
    "ObjectorPaid": ("was paid {amount} for a false segment", "objector"),
    "Demanded": ("data are demanded from the solver", None),
    "Answered": ("answered a demand for data", "answerer"),
    "Expired": ("a demand for data is over", None),
    "LooksPaid": ("paid {amount} for second looks", "solver"),
    "Withheld": ("lost its stake for withheld data", "solver"),
    "Settled": ("settled: the price is {price}, the verifier's fee {verifierFee}", None),
    "TaskClosed": ("closed", None),
    "Caught": ("was paid a watch reward of {amount}", "account"),
}
"""Events of a task in words, and the argument that names the actor."""
_AMOUNTS = ("escrow", "price", "verifierFee", "amount")
COIN = 10**18
"""Smallest units in one coin; for a token, by convention."""


class MarketReader:
    """Reads a market; holds no key. Tasks and their lines of code come from the store, if it has them.

    With ``replay`` it executes the drawn segments of disputed verdicts, and one step from each committed checkpoint: it
    says which side is right, and how high the loss is.
    """

    def __init__(
        self,
        connection: Connection,
        deployment: Deployment,
        store_url: str,
        policy: Policy = PUBLIC_CHAIN,
        replay: bool = False,
    ) -> None:
        self._reader = Whistleblower.reader(connection, deployment, store_url, policy)
        self._auditor = Auditor(self._reader.market, deployment.treasury)
        self._replay = replay
        self._times: dict[int, int] = {}
        self._closed: dict[bytes, TaskView] = {}
        self._courses: dict[bytes, TrainingCourse] = {}

    def view(self) -> MarketView:
        """The market at the latest block."""
        reader = self._reader
        with reader.connection.cached():
            tasks = tuple(self.task(bytes(e["taskId"])) for e in reader.market.registry.events("TaskSubmitted"))
            block, now = reader.connection.block_number(), reader.connection.now()
        return MarketView(reader.connection.chain_id, block, now, reader.market.vault.address, tasks)

    def task(self, task_id: bytes) -> TaskView:
        """One task at the latest block."""
        if task_id in self._closed:
            return self._closed[task_id]
        market = self._reader.market
        decision = public_call(self._reader, task_id)
        waits, until = decision.why, None
        if isinstance(decision, Action):
            waits = f"anybody may {decision.verb}: {waits}"
        else:
            until = decision.until
        posted = market.verdicts.events("VerdictPosted", taskId=task_id)
        is_drawn = market.proofs.is_drawn(task_id)
        view = TaskView(
            task_id=task_id,
            task=market.registry.task(task_id),
            terms=market.registry.terms(task_id),
            waits=waits,
            until=until,
            happenings=tuple(self._happenings(task_id)),
            thresholds=self._auditor.thresholds(task_id),
            verdicts=tuple(self._auditor.verdicts(task_id, int(posted[-1]["seating"]))) if posted else (),
            disputes=tuple(self._disputes(task_id)),
            checkpoints=market.proofs.proof(task_id).size,
            drawn=tuple(market.proofs.drawn_segments(task_id)) if is_drawn else (),
            objections=market.objections.objected(task_id),
            counterclaims=len(market.counterclaims.open_for(task_id)),
            course=self._course(task_id) if is_drawn else None,
        )
        if not isinstance(decision, Action) and decision.final:
            self._closed[task_id] = view
        return view

    def _happenings(self, task_id: bytes) -> Iterator[TaskEvent]:
        market, found = self._reader.market, list[tuple[int, int, str, dict[str, Any]]]()
        desks = (market.registry, market.seats, market.profiles, market.proofs, market.verdicts, market.jackpot)
        for order, desk in enumerate(
            (
                *desks,
                market.proven_steps,
                market.challenges,
                market.objections,
                market.counterclaims,
                market.demands,
                market.settlement,
            )
        ):
            told = tuple(name for name in desk.abi.events if name in _TOLD)
            found += [(e["block"], order, name, e) for name, e in desk.log.read(told, taskId=task_id)]
        for block, _, name, event in sorted(found, key=lambda entry: entry[:2]):
            words, who = _TOLD[name]
            shown = {key: _coins(value) if key in _AMOUNTS else value for key, value in event.items()}
            yield TaskEvent(self._time(block), words.format(**shown), event[who] if who else None)

    def _time(self, block: int) -> int:
        if block not in self._times:
            self._times[block] = self._reader.connection.time_of(block)
        return self._times[block]

    def _disputes(self, task_id: bytes) -> Iterator[DisputeView]:
        for court in self._reader.market.courts.values():
            names = court.desk.EVENTS
            for event in court.desk.events(names.challenged, taskId=task_id):
                yield self._dispute(task_id, int(event[names.number]), court)

    def _dispute(self, task_id: bytes, number: int, court: Court) -> DisputeView:
        market, game = self._reader.market, court.game
        known, params = court.desk.dispute(number), game.params(number)
        resolved = game.events("Resolved", number=number)
        record = names = last = None
        missing = ""
        try:
            program, names = self._program(task_id, number, court.matter)
            record, last = game.reconstruct(number, program)
        except (OperationalError, ProtocolError) as error:
            missing = str(error)
        return DisputeView(
            number=number,
            matter=court.matter,
            about=about(market, number, court.matter),
            asserter=params.asserter,
            challenger=params.challenger,
            bond=known.bond,
            clock=params.clock,
            winner=game.winner(number),
            reason=EndReason(resolved[0]["reason"]) if resolved else EndReason.NONE,
            settled=known.is_settled,
            until=game.deadline(number),
            record=record,
            names=names,
            last=last,
            executed=_executed(game, number),
            missing=missing,
            right=self._right(task_id, number) if court.matter is Matter.VERDICT else Side.NONE,
        )

    def _right(self, task_id: bytes, number: int) -> Side:
        """The side that is right about the current verdict, by a replay; NONE if it can't be replayed."""
        market = self._reader.market
        if not self._replay or market.verdicts.verdict(task_id).seating != market.challenges.dispute(number).subject:
            return Side.NONE
        try:
            claim, charge = self._reader.disputed(task_id, number)
            self._reader.examine_again(task_id)
            checked = self._reader.examined_twice(task_id)
        except (OperationalError, ProtocolError):
            return Side.NONE
        if any(each.segment == claim.segment for each in checked.unseen):
            return Side.NONE
        found = {(each.charge.index, int(each.charge.kind)) for each in checked.findings}
        return Side.CHALLENGER if (charge.index, int(charge.kind)) in found else Side.ASSERTER

    def _course(self, task_id: bytes) -> TrainingCourse | None:
        """Loss and movement by the committed checkpoints; None if they can't be read here."""
        if not self._replay:
            return None
        try:
            proof, task = self._reader.proof(task_id), self._reader.task(task_id)
            if proof.log_root not in self._courses:
                self._courses[proof.log_root] = course_of(self._reader.store, task, proof.checkpoints, CpuExecutor)
        except (OperationalError, ProtocolError):
            return None
        return self._courses[proof.log_root]

    def _program(self, task_id: bytes, number: int, matter: Matter) -> tuple[StepProgram, ProgramNames]:
        task, program = self._reader.task(task_id), self._reader.program_in(task_id, number, matter)
        if program is task.program:
            return program, task.names
        # A rerun numbers its nodes otherwise, so the task's names don't fit.
        nodes = tuple(NodeName(f"node {number}", "a rerun", "") for number in range(len(program.nodes)))
        return program, replace(task.names, nodes=nodes)


def about(market: Market, number: int, matter: Matter) -> str:
    """The subject of a dispute, in words."""
    if matter is Matter.PROFILE:
        told = market.profiles.charge(number)
        part = "" if told.component is None else f", {told.component.name.lower()}"
        return f"{told.kind.name.lower()} {told.index} of the profile{part}"
    if matter is Matter.OBJECTION:
        return f"segment {market.objections.segment(number)} of the solver's log"
    if matter is Matter.COUNTERCLAIM:
        charge, subject = market.counterclaims.charge(number), market.counterclaims.dispute(number).subject
        segment = market.counterclaims.said(subject).claim.segment
        where = f"counterclaim {subject} about segment {segment}"
    else:
        charge = market.challenges.charge(number)
        where = f"claim {charge.index} of the verdict"
    part = f", component {charge.component}" if charge.component else ""
    return f"{charge.kind.name.lower()} in {where}{part}"


def _coins(amount: int) -> str:
    return f"{amount / COIN:.6f}".rstrip("0").rstrip(".")


def _executed(game: DisputeGame, number: int) -> EvmOperation | None:
    for event in game.events("Refuted", number=number):
        if Verb(event["verb"]) is Verb.PROVE_STEP:
            detail = bytes(event["detail"])
            words = [int.from_bytes(detail[at : at + 4], "big") for at in range(1, len(detail), 4)]
            with suppress(ValueError):
                op = Op(detail[0])
                return EvmOperation(op.name, tuple(words[: ARITY[op]]), words[3], words[4])
            return EvmOperation("a chunk of FFMA", (), words[3], words[4])
    return None
