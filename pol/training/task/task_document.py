"""The task document, and a task with all its parts (docs/spec/learning_proof.md, "Task")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.tensor import tensor_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.aten_graph import AtenGraph
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import MAX_STEPS, StepProgram
from pol.graph.tensor_type import TensorType
from pol.training.task.task_start import TaskStart

KIND, VERSION = "pol/task", 2
DOCUMENT_LIMIT = 1 << 20
ORDER = "order"
"""The constant whose row t holds the indices of the samples that step t sees."""


@dataclass(frozen=True)
class TaskDocument:
    """The task document.

    ``program``, ``names``, ``aten``, ``constants`` and ``initial_state`` are digests of stored objects; the hash and
    the roots are the commitments on chain. ``start`` is the source of the initial state. ``work`` is the work estimate
    of one step, in the units of `pol.graph.work_estimate`. ``model`` and ``optimizer`` are for people.
    """

    program: str
    program_hash: bytes
    names: str
    aten: str
    constants: str
    constants_root: bytes
    initial_state: str
    initial_state_root: bytes
    start: TaskStart
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
        """Number of segments: runs of ``interval`` steps between two checkpoints."""
        return self.steps // self.interval

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        own = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        members = {name: value.hex() if isinstance(value, bytes) else value for name, value in own.items()}
        derived = {"start": self.start.document(), "work": str(self.work), "kind": KIND, "version": VERSION}
        return canonical_json.encode({**members, **derived})

    @classmethod
    def decode(cls, data: bytes) -> TaskDocument:
        """The task in a document.

        Raises:
            ProtocolError: not the canonical bytes of a task.
        """
        given = canonical_json.Fields.of_document(data, "the task", KIND, VERSION, cls.__dataclass_fields__)
        return cls(
            program=given.digest("program"),
            program_hash=given.hash("program_hash"),
            names=given.digest("names"),
            aten=given.digest("aten"),
            constants=given.digest("constants"),
            constants_root=given.hash("constants_root"),
            initial_state=given.digest("initial_state"),
            initial_state_root=given.hash("initial_state_root"),
            start=TaskStart.of_document(given.object("start")),
            steps=given.integer("steps"),
            interval=given.integer("interval"),
            work=given.decimal("work", 128),
            model=given.text("model"),
            optimizer=given.text("optimizer"),
        )


@dataclass(frozen=True)
class LineageLevel:
    """One training of a lineage: its document and the source of each part of its first state.

    ``kind`` is that of its start, ``document`` the digest of the task or record, ``base`` that of the proof, record or
    task that it continues, if any. ``taken`` maps own names to names of the base. ``rest`` names what is neither taken
    nor drawn: zeros in a task whose start says so, elsewhere values that its author chose.
    """

    kind: str
    document: str
    base: str | None
    taken: Mapping[str, str]
    drawn: tuple[str, ...]
    rest: tuple[str, ...]


@dataclass(frozen=True)
class LoadedTask:
    """A task with all its parts, each checked against the document.

    ``lineage`` gives the sources of its initial state: its own level, then those of its bases, down to the first.
    """

    digest: str
    document: TaskDocument
    program: StepProgram
    names: ProgramNames
    aten: AtenGraph
    constants: list[Words]
    initial_state: list[Words]
    lineage: tuple[LineageLevel, ...]

    @property
    def slot_types(self) -> list[TensorType]:
        """The types of the tensors of a state."""
        return [slot.type for slot in self.program.slots]

    @property
    def order_root(self) -> bytes:
        """The commitment to the samples of each step."""
        return order_root(self.program, self.names, self.constants)


def order_root(program: StepProgram, names: ProgramNames, constants: list[Words]) -> bytes:
    """The root of the order table.

    Raises:
        EvidenceError: the task has no such table.
    """
    index = order_index(names)
    return tensor_root(program.constants[index], constants[index])


def order_index(names: ProgramNames) -> int:
    """The place of the order table among the constants.

    Raises:
        EvidenceError: there is none, or more than one.
    """
    if names.constants.count(ORDER) != 1:
        problem = f"the task can't be used: it needs exactly one constant named {ORDER!r}"
        raise EvidenceError(Fault.WRONG_ORDER, problem)
    return names.constants.index(ORDER)
