"""Tasks in a store (docs/spec/learning_proof.md, "Task").

Loading checks each claim of the document, so that solvers train exactly the computation that a court executes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.aten_graph import AtenGraph
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import TensorType
from pol.graph.work_estimate import step_work
from pol.training.storage.store import Store
from pol.training.task import task_source, task_tensors
from pol.training.task.initial_state_check import InitialState, require_initial_state
from pol.training.task.task_document import DOCUMENT_LIMIT, LoadedTask, TaskDocument, TaskSource
from pol.training.task.task_source import GRAPH_LIMIT, TaskStep
from pol.training.task.task_start import GIVEN, MAX_LEVELS, TaskStart

PROGRAM_LIMIT = 1 << 26
"""Bytes of a step program, which takes some fourteen times as many in memory; 4,000 nodes of a Llama take two MiB."""
HELD_BYTES = 1 << 26
"""Of a first state in memory, where it can be read again for certain."""
SEED_CONSTANT = "seed"
TaskLoader: TypeAlias = Callable[[Store, str], LoadedTask]


def publish(
    store: Store,
    capture: TaskStep,
    *,
    steps: int,
    interval: int,
    model: str = "",
    optimizer: str = "",
    start: TaskStart = GIVEN,
) -> tuple[str, TaskDocument]:
    """Store a captured training step, or a circuit's, as a task; the digest of its document and the document.

    Raises:
        ProtocolError: steps isn't a multiple of interval, the data aren't those of so many steps (of a captured step:
            the order table isn't one row per step), the first state doesn't follow from ``start``, or the program is
            too large.
    """
    program, names, source = capture.program, capture.names, task_source.source_of(capture)
    task_source.require_steps(source, program, names, steps)
    task_source.require_numbers(source, capture.constants, capture.state)
    data = program.to_bytes()
    if len(data) > PROGRAM_LIMIT:
        raise ProtocolError(f"the step program has {len(data)} bytes, and parties read {PROGRAM_LIMIT} at most")
    stored = store.put(task_source.encode(source))
    slot_types = [slot.type for slot in program.slots]
    task = TaskDocument(
        program=store.put(data),
        program_hash=program_hash(program),
        names=store.put(canonical_json.encode(names.to_dict())),
        aten=stored if isinstance(source, AtenGraph) else None,
        network=None if isinstance(source, AtenGraph) else stored,
        constants=store.put_pieces(task_tensors.pieces(names.constants, program.constants, capture.constants)),
        constants_root=constants_root(program.constants, capture.constants),
        initial_state=store.put_pieces(task_tensors.pieces(names.slots, slot_types, capture.state)),
        initial_state_root=state_root(slot_types, capture.state),
        start=start,
        steps=steps,
        interval=interval,
        work=step_work(program),
        model=model,
        optimizer=optimizer,
    )
    document = task.encode()
    state = _first_state(source, names, slot_types, capture.state, capture.constants)
    digest = keccak256(document).hex()
    require_initial_state(store, digest, start, state, lambda base: load(store, base, levels=MAX_LEVELS - 1))
    return store.put(document), task


def load(store: Store, digest: str, *, levels: int = MAX_LEVELS, most: int | None = None) -> LoadedTask:
    """The task whose document has this digest; each of its claims is recomputed.

    The ATen graph is lowered again, or the circuit's network, and must give the published program, byte for byte:
    native training and canonical replay can't be different computations. The tasks of all trainings that this one
    continues are loaded too; ``levels`` bounds their number, and ``most`` the bytes of data and state of each.

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
    source = task_source.load(store, task)
    what = "ATen graph" if isinstance(source, AtenGraph) else "network"
    lowered, lowered_names = task_source.program_of(source, task.steps)
    _require(lowered.to_bytes() == data, f"its {what} doesn't lower to its step program")
    _require(lowered_names.to_dict() == names.to_dict(), f"its names aren't those of its {what}")
    _require(program_hash(program) == task.program_hash, "its program hash is wrong")
    _require(step_work(program) == task.work, "its work estimate is wrong")
    task_source.require_steps(source, program, names, task.steps)
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
    task_source.require_numbers(source, constants, state)
    first = _first_state(source, names, slot_types, state, constants)
    lineage = require_initial_state(
        store, digest, task.start, first, lambda base: load(store, base, levels=levels - 1, most=most)
    )
    loaded = LoadedTask(digest, task, program, names, source, constants, lambda: state, lineage)
    is_large = sum(words.nbytes for words in state) > HELD_BYTES
    return let_go(loaded, store) if is_large and store.keeps else loaded


def held_bytes(program: StepProgram) -> int:
    """Bytes of the data and the first state of a program in memory."""
    return 4 * sum(type_.numel for type_ in (*program.constants, *(slot.type for slot in program.slots)))


def let_go(task: LoadedTask, store: Store) -> LoadedTask:
    """The task without its first state in memory: whoever asks for that reads it from the store."""
    document, names, types = task.document, task.names.slots, task.slot_types
    return replace(task, first_state=lambda: task_tensors.load(store, document.initial_state, names, types))


def _first_state(
    source: TaskSource, names: ProgramNames, types: list[TensorType], state: list[Words], constants: list[Words]
) -> InitialState:
    # A circuit draws nothing, whatever the names of its inputs are.
    has_seed = isinstance(source, AtenGraph) and SEED_CONSTANT in names.constants
    seed = constants[names.constants.index(SEED_CONSTANT)] if has_seed else None
    return InitialState(dict(zip(names.slots, zip(types, state, strict=True), strict=True)), seed)


def _require(condition: bool, problem: str, fault: Fault = Fault.WRONG_TASK) -> None:
    if not condition:
        raise EvidenceError(fault, f"the task can't be used: {problem}")
