"""The task document: everything a solver and a verifier need, by digest (docs/spec/learning_proof.md, "Task").

Loading checks each claim that the document makes, so that what a solver trains and what a court executes are one thing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root, tensor_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.aten_graph import AtenGraph
from pol.graph.lowering import lower
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import MAX_STEPS, StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import step_work
from pol.training.storage.store import Store
from pol.training.task import checkpoint
from pol.training.task.initial_state import GIVEN, MAX_LEVELS, SEED_CONSTANT, Level, Start, State, require

VERSION = 2
DOCUMENT_LIMIT = 1 << 20
PROGRAM_LIMIT = 1 << 30
GRAPH_LIMIT = 1 << 27
"""Bytes of the ATen graph and of the names: documents, which take some fifty times their size to read."""
ORDER = "order"


class CapturedStep(Protocol):
    """What `pol.graph.capture.capture` gives; named here without importing torch."""

    @property
    def aten(self) -> AtenGraph:
        """The step for native training."""

    @property
    def program(self) -> StepProgram:
        """The step for replay."""

    @property
    def names(self) -> ProgramNames:
        """What people call its parts."""

    @property
    def constants(self) -> list[Words]:
        """Its constant tensors, as words."""

    @property
    def state(self) -> list[Words]:
        """The state before step 0, as words."""


@dataclass(frozen=True)
class Task:
    """The task document.

    ``program``, ``names``, ``aten``, ``constants`` and ``initial_state`` are digests of stored objects; the hash and
    the roots are the commitments that the chain knows. ``work`` is the work estimate of one step, in the units of
    pol.graph.work_estimate. ``start`` says where the initial state comes from. ``model`` and ``optimizer`` are for
    people.
    """

    program: str
    program_hash: bytes
    names: str
    aten: str
    constants: str
    constants_root: bytes
    initial_state: str
    initial_state_root: bytes
    start: Start
    steps: int
    interval: int
    work: int
    model: str
    optimizer: str

    def __post_init__(self) -> None:
        if self.interval < 1 or self.steps < self.interval or self.steps % self.interval:
            raise ProtocolError(f"{self.steps} steps aren't a positive multiple of the interval {self.interval}")
        if self.steps > MAX_STEPS:
            raise ProtocolError(f"{self.steps} steps are more than a task can have ({MAX_STEPS})")

    @property
    def segments(self) -> int:
        """How many stretches of ``interval`` steps there are between checkpoints."""
        return self.steps // self.interval

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        own = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        members = {name: value.hex() if isinstance(value, bytes) else value for name, value in own.items()}
        derived = {"start": self.start.document(), "work": str(self.work), "kind": "pol/task", "version": VERSION}
        return canonical_json.encode({**members, **derived})

    @classmethod
    def decode(cls, data: bytes) -> Task:
        """The task in a document.

        Raises:
            ProtocolError: not the canonical bytes of a task.
        """
        names = [*cls.__dataclass_fields__, "kind", "version"]
        given = canonical_json.Fields(canonical_json.decode(data, "the task"), "the task", names)
        if given.text("kind") != "pol/task" or given.integer("version") != VERSION:
            raise EvidenceError(Fault.MALFORMED, f"not a task document of version {VERSION}")
        return cls(
            program=given.digest("program"),
            program_hash=given.hash("program_hash"),
            names=given.digest("names"),
            aten=given.digest("aten"),
            constants=given.digest("constants"),
            constants_root=given.hash("constants_root"),
            initial_state=given.digest("initial_state"),
            initial_state_root=given.hash("initial_state_root"),
            start=Start.of_document(given.object("start")),
            steps=given.integer("steps"),
            interval=given.integer("interval"),
            work=given.decimal("work", 128),
            model=given.text("model"),
            optimizer=given.text("optimizer"),
        )


@dataclass(frozen=True)
class LoadedTask:
    """A task with all its parts, each checked against the document.

    ``lineage`` says where its initial state comes from: its own level, then those of its bases, down to the first.
    """

    digest: str
    document: Task
    program: StepProgram
    names: ProgramNames
    aten: AtenGraph
    constants: list[Words]
    initial_state: list[Words]
    lineage: tuple[Level, ...]

    @property
    def slot_types(self) -> list[TensorType]:
        """The types of the tensors of a state."""
        return [slot.type for slot in self.program.slots]

    @property
    def order_root(self) -> bytes:
        """The commitment to which samples each step sees."""
        return order_root(self.program, self.names, self.constants)


def publish(
    store: Store,
    capture: CapturedStep,
    *,
    steps: int,
    interval: int,
    model: str = "",
    optimizer: str = "",
    start: Start = GIVEN,
) -> tuple[str, Task]:
    """Store a captured training step as a task; the digest of its document and the document.

    Raises:
        ProtocolError: steps isn't a multiple of interval, the order table isn't one row per step, or the captured state
            isn't what ``start`` says.
        OperationalError: the store failed.
    """
    program, names = capture.program, capture.names
    _require_order(program, names, steps)
    slot_types = [slot.type for slot in program.slots]
    task = Task(
        program=store.put(program.to_bytes()),
        program_hash=program_hash(program),
        names=store.put(canonical_json.encode(names.to_dict())),
        aten=store.put(canonical_json.encode(capture.aten.to_dict())),
        constants=store.put(checkpoint.encode(names.constants, program.constants, capture.constants)),
        constants_root=constants_root(program.constants, capture.constants),
        initial_state=store.put(checkpoint.encode(names.slots, slot_types, capture.state)),
        initial_state_root=state_root(slot_types, capture.state),
        start=start,
        steps=steps,
        interval=interval,
        work=step_work(program),
        model=model,
        optimizer=optimizer,
    )
    document = task.encode()
    state = State(names.slots, slot_types, capture.state, _seed(names, capture.constants))
    require(store, keccak256(document).hex(), start, state, lambda base: load(store, base, levels=MAX_LEVELS - 1))
    return store.put(document), task


def load(store: Store, digest: str, *, levels: int = MAX_LEVELS, most: int | None = None) -> LoadedTask:
    """The task whose document has this digest, with everything that it says recomputed.

    The ATen graph is lowered again and must give the published program, byte for byte: native training and canonical
    replay can't be different computations. If it goes on from another training, the task of that one is loaded too, and
    so on down to the first; ``levels`` bounds how many, and ``most`` the bytes of data and state of each.

    Raises:
        ProtocolError: something in it is wrong, or it is larger than ``most``.
        OperationalError: an object is missing or can't be read.
    """
    if levels < 1:
        raise ProtocolError(f"task {digest} stands on more trainings than are followed: {MAX_LEVELS} at most")
    task = Task.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    data = store.get(task.program, limit=PROGRAM_LIMIT)
    program = StepProgram.from_bytes(data)
    names_data = store.get(task.names, limit=GRAPH_LIMIT)
    names = ProgramNames.from_dict(canonical_json.decode(names_data, "the names"))
    aten = AtenGraph.from_dict(canonical_json.decode(store.get(task.aten, limit=GRAPH_LIMIT), "the ATen graph"))
    lowered, lowered_names = lower(aten)
    _require(lowered.to_bytes() == data, "its ATen graph doesn't lower to its step program")
    _require(lowered_names.to_dict() == names.to_dict(), "its names aren't those of its ATen graph")
    _require(program_hash(program) == task.program_hash, "its program hash is wrong")
    _require(step_work(program) == task.work, "its work estimate is wrong")
    _require_order(program, names, task.steps)
    if most is not None and held_bytes(program) > most:
        raise ProtocolError(
            f"data and first state of task {digest} are {held_bytes(program)} bytes, and {most} are admitted: leave it "
            "alone, or give the role another Policy"
        )
    limit = checkpoint.limit(names.constants, program.constants)
    constants = checkpoint.decode(store.get(task.constants, limit=limit), names.constants, program.constants)
    has_data = constants_root(program.constants, constants) == task.constants_root
    _require(has_data, "the root of its constants is wrong", Fault.WRONG_DATA)
    slot_types = [slot.type for slot in program.slots]
    limit = checkpoint.limit(names.slots, slot_types)
    state = checkpoint.decode(store.get(task.initial_state, limit=limit), names.slots, slot_types)
    has_start = state_root(slot_types, state) == task.initial_state_root
    _require(has_start, "the root of its initial state is wrong", Fault.WRONG_START)
    first = State(names.slots, slot_types, state, _seed(names, constants))
    lineage = require(store, digest, task.start, first, lambda base: load(store, base, levels=levels - 1, most=most))
    return LoadedTask(digest, task, program, names, aten, constants, state, lineage)


def held_bytes(program: StepProgram) -> int:
    """What the data and the first state of a program take in memory."""
    return 4 * sum(type_.numel for type_ in (*program.constants, *(slot.type for slot in program.slots)))


def order_root(program: StepProgram, names: ProgramNames, constants: list[Words]) -> bytes:
    """The root of the order table: row t holds the indices of the samples that step t sees."""
    index = _order_index(names)
    return tensor_root(program.constants[index], constants[index])


def _seed(names: ProgramNames, constants: list[Words]) -> Words | None:
    return constants[names.constants.index(SEED_CONSTANT)] if SEED_CONSTANT in names.constants else None


def _require_order(program: StepProgram, names: ProgramNames, steps: int) -> None:
    _require(len(names.constants) == len(program.constants), "its names don't fit its constants")
    _require(len(names.slots) == len(program.slots), "its names don't fit its slots")
    type_ = program.constants[_order_index(names)]
    is_table = type_.dtype == DType.I32 and len(type_.shape) == 2 and type_.shape[0] == steps
    problem = f"its order table has the shape {type_.shape}, expected one row of indices for each of {steps} steps"
    _require(is_table, problem, Fault.WRONG_ORDER)


def _order_index(names: ProgramNames) -> int:
    _require(names.constants.count(ORDER) == 1, f"it needs exactly one constant named {ORDER!r}", Fault.WRONG_ORDER)
    return names.constants.index(ORDER)


def _require(condition: bool, problem: str, fault: Fault = Fault.WRONG_TASK) -> None:
    if not condition:
        raise EvidenceError(fault, f"the task can't be used: {problem}")
