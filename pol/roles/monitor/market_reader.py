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
from pol.claims.segment_claim import SegmentClaim
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.node_names import NodeName, ProgramNames
from pol.graph.step_program import StepProgram
from pol.roles.monitor.market_view import DisputeView, EndReason, EvmOperation, MarketView, TaskEvent, TaskView
from pol.roles.monitor.task_story import EVENTS, event_told, state_of
from pol.roles.party.evidence import Evidence
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.training.storage.store import Store
from pol.verification.examination.training_course import TrainingCourse, course_of


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
        self._reader = Evidence(connection, deployment, Store(store_url), policy)
        self._auditor = Auditor(self._reader.market, deployment.treasury)
        self._replay = replay
        self._own_claims: dict[tuple[bytes, SegmentClaim], SegmentClaim] = {}
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
        state = state_of(self._reader, task_id)
        posted = market.verdicts.events("VerdictPosted", taskId=task_id)
        is_drawn = market.proofs.is_drawn(task_id)
        view = TaskView(
            **vars(state),
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
        if state.final:
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
            told = tuple(name for name in desk.abi.events if name in EVENTS)
            found += [(e["block"], order, name, e) for name, e in desk.log.read(told, taskId=task_id)]
        for block, _, name, event in sorted(found, key=lambda entry: entry[:2]):
            what, who = event_told(name, event)
            yield TaskEvent(self._time(block), what, who)

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
        reader, seating = self._reader, market.registry.task(task_id).seating
        try:
            claim, charge = reader.disputed(task_id, number)
            own = self._own_claims.get((task_id, claim))
            if own is None:
                own = reader.own_claim(task_id, claim.segment, 0, reader.receipt_seed(task_id, claim.segment))
            if own is None:
                return Side.NONE  # what can't be replayed says nothing
            self._own_claims[task_id, claim] = own
            look = market.verdicts.looks(task_id, seating).get(charge.index)
            false = {each.kind for each in reader.charges(task_id, charge.index, claim, own, look)}
        except (OperationalError, ProtocolError):
            return Side.NONE
        return Side.CHALLENGER if charge.kind in false else Side.ASSERTER

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
