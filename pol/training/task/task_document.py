"""The task document, and a task with all its parts (docs/spec/learning_proof.md, "Task")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.tensor import tensor_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.aten_graph import AtenGraph
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import MAX_STEPS, StepProgram
from pol.graph.tensor_type import TensorType
from pol.training.task.task_start import TaskStart
from pol.zk.network import StepNetwork

KIND, VERSION = "pol/task", 2
DOCUMENT_LIMIT = 1 << 20
ORDER = "order"
"""The constant whose row t holds the indices of the samples that step t sees."""
NO_ORDER = bytes(32)
"""The order root of a circuit's task, whose steps have data of their own."""
SOURCES = ("aten", "network")
"""Members of which a document has one: what its program is made from."""

TaskSource: TypeAlias = AtenGraph | StepNetwork


@dataclass(frozen=True)
class TaskDocument:
    """The task document.

    ``program``, ``names``, ``aten`` or ``network``, ``constants`` and ``initial_state`` are digests of stored objects;
    the hash and the roots are the commitments on chain. ``start`` is the source of the initial state. ``work`` is the
    work estimate of one step, in the units of `pol.graph.work_estimate`. ``model`` and ``optimizer`` are for people.
    """

    program: str
    program_hash: bytes
    names: str
    aten: str | None
    network: str | None
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
        own = {name: value for name, value in own.items() if value is not None}
        members = {name: value.hex() if isinstance(value, bytes) else value for name, value in own.items()}
        derived = {"start": self.start.document(), "work": str(self.work), "kind": KIND, "version": VERSION}
        return canonical_json.encode({**members, **derived})

    @classmethod
    def decode(cls, data: bytes) -> TaskDocument:
        """The task in a document. Raises ProtocolError: not the canonical bytes of a task."""
        what, document = "the task", canonical_json.decode(data, "the task")
        canonical_json.require_version(document, what, KIND, VERSION)
        named = [name for name in SOURCES if name in document]
        if len(named) != 1:
            problem = (
                f"{what} names {' and '.join(named) or 'no source'}: its program is made from aten or from network"
            )
            raise EvidenceError(Fault.MALFORMED, problem)
        members = [name for name in cls.__dataclass_fields__ if name not in SOURCES or name in named]
        given = canonical_json.Fields.of_document(data, what, KIND, VERSION, members)
        return cls(
            program=given.digest("program"),
            program_hash=given.hash("program_hash"),
            names=given.digest("names"),
            aten=given.digest("aten") if "aten" in named else None,
            network=given.digest("network") if "network" in named else None,
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

    ``first_state`` gives the initial state; ``lineage`` its sources: its own level, then those of its bases, down to
    the first.
    """

    digest: str
    document: TaskDocument
    program: StepProgram
    names: ProgramNames
    source: TaskSource
    constants: list[Words]
    first_state: Callable[[], list[Words]]
    lineage: tuple[LineageLevel, ...]

    @property
    def initial_state(self) -> list[Words]:
        """The state before the first step; a large one is read anew, so ask once."""
        return self.first_state()

    @property
    def slot_types(self) -> list[TensorType]:
        """The types of the tensors of a state."""
        return [slot.type for slot in self.program.slots]

    @property
    def is_circuit(self) -> bool:
        """Whether the steps are a circuit's: they have their bits everywhere, so the task is trained exactly."""
        return isinstance(self.source, StepNetwork)

    @property
    def aten(self) -> AtenGraph:
        """The graph that torch executes. Raises ProtocolError: a circuit has none."""
        if isinstance(self.source, AtenGraph):
            return self.source
        raise ProtocolError(
            f"the steps of task {self.digest} are a circuit's, and stock torch can't take them: train and replay it "
            "exactly (docs/guides/zk.md)"
        )

    @property
    def order_root(self) -> bytes:
        """The commitment to the samples of each step; `NO_ORDER` for a circuit."""
        return NO_ORDER if self.is_circuit else order_root(self.program, self.names, self.constants)


def order_root(program: StepProgram, names: ProgramNames, constants: list[Words]) -> bytes:
    """The root of the order table. Raises EvidenceError: the task has no such table."""
    index = order_index(names)
    return tensor_root(program.constants[index], constants[index])


def order_index(names: ProgramNames) -> int:
    """The place of the order table among the constants. Raises EvidenceError: there is none, or more than one."""
    if names.constants.count(ORDER) != 1:
        problem = f"the task can't be used: it needs exactly one constant named {ORDER!r}"
        raise EvidenceError(Fault.WRONG_ORDER, problem)
    return names.constants.index(ORDER)
