"""A view of a whole market at one block, for people: tasks with their events, verdicts and disputes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from eth_typing import ChecksumAddress

from pol.chain.desks.market import Matter
from pol.chain.desks.objections import ObjectionCount
from pol.chain.desks.task_registry import MarketTask, Terms
from pol.claims.segment_claim import Three
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.position import Position, Side
from pol.graph.node_names import ProgramNames
from pol.verification.examination.training_course import TrainingCourse
from pol.verification.verdict.verdict import Verdict


class EndReason(IntEnum):
    """How a dispute ended (contracts/dispute/DisputeStorage.sol)."""

    NONE = 0
    TIMEOUT = 1
    STEP = 2
    SLOT = 3
    SUM = 4
    OTHER_COMPONENT = 5
    RESIGNED = 6


@dataclass(frozen=True)
class TaskEvent:
    """An event of a task in words."""

    time: int
    what: str
    who: ChecksumAddress | None = None


@dataclass(frozen=True)
class EvmOperation:
    """The scalar operation that the chain executed."""

    op: str
    operands: tuple[int, ...]
    claimed: int
    computed: int


@dataclass(frozen=True)
class DisputeView:
    """One dispute; the record is missing where the store doesn't have the task."""

    number: int
    matter: Matter
    about: str
    asserter: ChecksumAddress
    challenger: ChecksumAddress
    bond: int
    clock: int
    """Seconds that each side had at the start."""
    winner: Side
    reason: EndReason
    settled: bool
    until: int
    """End of the clock of the side on turn; 0 if the dispute is over."""
    record: DisputeRecord | None
    names: ProgramNames | None
    last: Position | None
    executed: EvmOperation | None
    missing: str = ""
    """Why there is no record."""
    right: Side = Side.NONE
    """The side that is right by a replay on this machine; NONE if nothing was replayed."""

    @property
    def key(self) -> str:
        """Unique key: each game numbers its disputes from 1."""
        return f"{'' if self.matter is Matter.VERDICT else f'{self.matter}-'}{self.number}"


@dataclass(frozen=True)
class TaskState:
    """The state of one task, and what it waits for."""

    task_id: bytes
    task: MarketTask
    terms: Terms
    waits: str
    until: int | None
    """The deadline of what it waits for, in chain time; None if anybody may call."""
    call: str
    """The call that anybody may make; empty if there is none."""
    final: bool
    """Nothing more can happen to it."""
    unserved: tuple[ChecksumAddress, ...]
    """Verifiers that say that they can't read the solver's states."""


@dataclass(frozen=True)
class TaskView(TaskState):
    """One task, with its events, verdicts and disputes."""

    happenings: tuple[TaskEvent, ...]
    thresholds: Three
    verdicts: tuple[Verdict, ...]
    """The verdicts of the current or last seating."""
    disputes: tuple[DisputeView, ...]
    checkpoints: int
    """How many the solver has posted, that of the start included."""
    drawn: tuple[int, ...]
    """The segments that a beacon has drawn; empty before."""
    objections: ObjectionCount
    """Objections to the log of the current solver."""
    counterclaims: int
    """Of these, those by thresholds that are open."""
    course: TrainingCourse | None = None
    """Loss and movement by the published checkpoints; None if nothing was replayed here."""


@dataclass(frozen=True)
class MarketView:
    """The whole market at one block."""

    chain_id: int
    block: int
    time: int
    vault: ChecksumAddress
    tasks: tuple[TaskView, ...]
