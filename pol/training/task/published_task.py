"""Tasks in a store (docs/spec/learning_proof.md, "Task").

Loading checks each claim of the document, so that solvers train exactly the computation that a court executes.
"""

from __future__ import annotations

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.aten_graph import AtenGraph
from pol.graph.captured_step import Capture
from pol.graph.lowering import lower
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import step_work
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.initial_state_check import InitialState, require_initial_state
from pol.training.task.task_document import DOCUMENT_LIMIT, LoadedTask, TaskDocument, order_index
from pol.training.task.task_start import GIVEN, MAX_LEVELS, TaskStart

PROGRAM_LIMIT = 1 << 30
GRAPH_LIMIT = 1 << 27
"""Bytes of the ATen graph and of the names: documents, which take some fifty times their size to read."""
SEED_CONSTANT = "seed"


def publish(
    store: Store,
    capture: Capture,
    *,
    steps: int,
    interval: int,
    model: str = "",
    optimizer: str = "",
    start: TaskStart = GIVEN,
) -> tuple[str, TaskDocument]:
    """Store a captured training step as a task; the digest of its document and the document.

    Raises:
        ProtocolError: steps isn't a multiple of interval, the order table isn't one row per step, or the captured state
            doesn't follow from ``start``.
        OperationalError: the store failed.
    """
    program, names = capture.program, capture.names
    _require_order(program, names, steps)
    slot_types = [slot.type for slot in program.slots]
    task = TaskDocument(
        program=store.put(program.to_bytes()),
        program_hash=program_hash(program),
        names=store.put(canonical_json.encode(names.to_dict())),
        aten=store.put(canonical_json.encode(capture.aten.to_dict())),
        constants=store.put(task_tensors.encode(names.constants, program.constants, capture.constants)),
        constants_root=constants_root(program.constants, capture.constants),
        initial_state=store.put(task_tensors.encode(names.slots, slot_types, capture.state)),
        initial_state_root=state_root(slot_types, capture.state),
        start=start,
        steps=steps,
        interval=interval,
        work=step_work(program),
        model=model,
        optimizer=optimizer,
    )
    document = task.encode()
    state = _first_state(names, slot_types, capture.state, capture.constants)
    digest = keccak256(document).hex()
    require_initial_state(store, digest, start, state, lambda base: load(store, base, levels=MAX_LEVELS - 1))
    return store.put(document), task


def load(store: Store, digest: str, *, levels: int = MAX_LEVELS, most: int | None = None) -> LoadedTask:
    """The task whose document has this digest; each of its claims is recomputed.

    The ATen graph is lowered again and must give the published program, byte for byte: native training and canonical
    replay can't be different computations. The tasks of all trainings that this one continues are loaded too;
    ``levels`` bounds their number, and ``most`` the bytes of data and state of each.

    Raises:
        ProtocolError: a claim is wrong, or the task is larger than ``most``.
        OperationalError: an object is missing or can't be read.
    """
    if levels < 1:
        raise ProtocolError(f"task {digest} continues more trainings than are followed: {MAX_LEVELS} at most")
    task = TaskDocument.decode(store.get(digest, limit=DOCUMENT_LIMIT))
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
    constants = task_tensors.load(store, task.constants, names.constants, program.constants)
    has_data = constants_root(program.constants, constants) == task.constants_root
    _require(has_data, "the root of its constants is wrong", Fault.WRONG_DATA)
    slot_types = [slot.type for slot in program.slots]
    state = task_tensors.load(store, task.initial_state, names.slots, slot_types)
    has_start = state_root(slot_types, state) == task.initial_state_root
    _require(has_start, "the root of its initial state is wrong", Fault.WRONG_START)
    first = _first_state(names, slot_types, state, constants)
    lineage = require_initial_state(
        store, digest, task.start, first, lambda base: load(store, base, levels=levels - 1, most=most)
    )
    return LoadedTask(digest, task, program, names, aten, constants, state, lineage)


def held_bytes(program: StepProgram) -> int:
    """Bytes of the data and the first state of a program in memory."""
    return 4 * sum(type_.numel for type_ in (*program.constants, *(slot.type for slot in program.slots)))


def _first_state(
    names: ProgramNames, types: list[TensorType], state: list[Words], constants: list[Words]
) -> InitialState:
    seed = constants[names.constants.index(SEED_CONSTANT)] if SEED_CONSTANT in names.constants else None
    return InitialState(dict(zip(names.slots, zip(types, state, strict=True), strict=True)), seed)


def _require_order(program: StepProgram, names: ProgramNames, steps: int) -> None:
    _require(len(names.constants) == len(program.constants), "its names don't fit its constants")
    _require(len(names.slots) == len(program.slots), "its names don't fit its slots")
    type_ = program.constants[order_index(names)]
    is_table = type_.dtype == DType.I32 and len(type_.shape) == 2 and type_.shape[0] == steps
    problem = f"its order table has the shape {type_.shape}, expected one row of indices for each of {steps} steps"
    _require(is_table, problem, Fault.WRONG_ORDER)


def _require(condition: bool, problem: str, fault: Fault = Fault.WRONG_TASK) -> None:
    if not condition:
        raise EvidenceError(fault, f"the task can't be used: {problem}")
