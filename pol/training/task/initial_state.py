"""Checks that a task's initial state is the one that its start declares (docs/spec/learning_proof.md, "Start")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import tensor_root
from pol.errors import EvidenceError, Fault
from pol.graph.tensor_type import TensorType
from pol.training.storage.store import Store
from pol.training.task import initialization, learning_proof
from pol.training.task.task_document import LineageLevel, LoadedTask
from pol.training.task.task_start import TaskStart


@dataclass(frozen=True)
class InitialState:
    """A task's initial state, slot by slot, and the task's seed if its program draws."""

    names: Sequence[str]
    types: Sequence[TensorType]
    tensors: Sequence[Words]
    seed: Words | None


def require_initial_state(
    store: Store, task: str, start: TaskStart, state: InitialState, load_task: Callable[[str], LoadedTask]
) -> tuple[LineageLevel, ...]:
    """Check that a state is what its start says, down to the first training; its level, then those of its bases.

    Everything is recomputed: drawn slots by running the program, taken ones from the base's last checkpoint, whose
    task ``load_task`` checks in turn.

    Raises:
        ProtocolError: a slot is something else, or a base doesn't hold.
        OperationalError: the store failed.
    """
    places = {name: place for place, name in enumerate(state.names)}
    if unknown := sorted(({*start.slots} | {*_drawn(start)}) - places.keys()):
        raise EvidenceError(Fault.WRONG_START, f"the start names the slot {unknown[0]}, which the task doesn't have")
    rest = tuple(name for name in state.names if name not in start.slots and name not in _drawn(start))
    level = LineageLevel(start.kind, task, start.proof, dict(start.slots), _drawn(start), rest)
    if start.kind == "given":
        return (level,)
    if start.initialization is not None:
        if state.seed is not None and (state.seed != start.initialization.words()).any():
            raise EvidenceError(
                Fault.WRONG_START, "the initialization draws from another seed than the steps of the task"
            )
        shapes = {name: type_.shape for name, type_ in zip(state.names, state.types, strict=True)}
        for name, (type_, words) in initialization.run(store, start.initialization, shapes).items():
            _require_equal(state, places[name], type_, words, "what the initialization draws")
    for name in rest:
        if state.tensors[places[name]].any():
            raise EvidenceError(
                Fault.WRONG_START, f"slot {name} comes from nowhere, so it has to be zero, and it isn't"
            )
    if start.proof is None:
        return (level,)
    base, end = load_end(store, start.proof, load_task)
    slots = dict(zip(base.names.slots, zip(base.slot_types, end, strict=True), strict=True))
    for name, source in start.slots.items():
        if source not in slots:
            raise EvidenceError(Fault.WRONG_START, f"slot {name} is to come from {source}, which the base doesn't have")
        _require_equal(state, places[name], *slots[source], f"{source} at the end of the base")
    return (level, *base.lineage)


def load_end(store: Store, proof: str, load_task: Callable[[str], LoadedTask]) -> tuple[LoadedTask, list[Words]]:
    """The task of a learning proof, and the state in its last checkpoint.

    Raises:
        ProtocolError: the proof isn't whole, or isn't one of its task.
        OperationalError: the store failed.
    """
    document = learning_proof.decode(store, proof)
    task = load_task(document.task)
    learning_proof.require_proof_of(document, task)
    return task, learning_proof.load_checkpoint(store, task, document.checkpoints[-1])


def _drawn(start: TaskStart) -> tuple[str, ...]:
    return () if start.initialization is None else start.initialization.slots


def _require_equal(state: InitialState, place: int, type_: TensorType, words: Words, what: str) -> None:
    name, own = state.names[place], state.types[place]
    if own != type_:
        raise EvidenceError(Fault.WRONG_START, f"slot {name} is {own}, {what} is {type_}")
    if tensor_root(own, state.tensors[place]) != tensor_root(type_, words):
        raise EvidenceError(Fault.WRONG_START, f"slot {name} isn't {what}")
