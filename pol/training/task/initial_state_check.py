"""Checks that a task's initial state is the one that its start declares (docs/spec/learning_proof.md, "Start")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import tensor_root
from pol.errors import EvidenceError, Fault
from pol.training.storage.store import Store
from pol.training.task import initialization, learning_proof
from pol.training.task.initialization import TypedWords
from pol.training.task.task_document import LineageLevel, LoadedTask
from pol.training.task.task_start import TaskStart


@dataclass(frozen=True)
class InitialState:
    """A task's initial state by slot, and the task's seed if its program draws."""

    slots: Mapping[str, TypedWords]
    seed: Words | None


def require_initial_state(
    store: Store, task: str, start: TaskStart, state: InitialState, load_task: Callable[[str], LoadedTask]
) -> tuple[LineageLevel, ...]:
    """Check a state against its start, down to the first training; its own level, then those of its bases.

    Everything is recomputed: drawn slots by running the program, taken ones from the last checkpoint of the base, whose
    task ``load_task`` checks in turn.
    """
    drawn = () if start.initialization is None else start.initialization.slots
    if unknown := sorted({*start.slots, *drawn} - state.slots.keys()):
        raise EvidenceError(Fault.WRONG_START, f"the start names the slot {unknown[0]}, which the task doesn't have")
    rest = tuple(name for name in state.slots if name not in start.slots and name not in drawn)
    level = LineageLevel(start.kind, task, start.proof, dict(start.slots), drawn, rest)
    if start.kind == "given":
        return (level,)
    if start.initialization is not None:
        if state.seed is not None and (state.seed != start.initialization.words()).any():
            problem = "the initialization draws from another seed than the steps of the task"
            raise EvidenceError(Fault.WRONG_START, problem)
        shapes = {name: type_.shape for name, (type_, _) in state.slots.items()}
        for name, found in initialization.run(store, start.initialization, shapes).items():
            _require_equal(state, name, found, "the tensor that the initialization draws")
    for name in rest:
        if state.slots[name][1].any():
            raise EvidenceError(Fault.WRONG_START, f"slot {name} has no source, so it has to be zero, and it isn't")
    if start.proof is None:
        return (level,)
    base, end = load_end(store, start.proof, load_task)
    slots = dict(zip(base.names.slots, zip(base.slot_types, end, strict=True), strict=True))
    for name, source in start.slots.items():
        if source not in slots:
            raise EvidenceError(Fault.WRONG_START, f"slot {name} is to come from {source}, which the base doesn't have")
        _require_equal(state, name, slots[source], f"{source} at the end of the base")
    return (level, *base.lineage)


def load_end(store: Store, proof: str, load_task: Callable[[str], LoadedTask]) -> tuple[LoadedTask, list[Words]]:
    """The task of a learning proof, and the state in its last checkpoint."""
    document = learning_proof.decode(store, proof)
    task = load_task(document.task)
    learning_proof.require_proof_of(document, task)
    return task, learning_proof.load_checkpoint(store, task, document.checkpoints[-1])


def _require_equal(state: InitialState, name: str, expected: TypedWords, what: str) -> None:
    (own, words), (type_, values) = state.slots[name], expected
    if own != type_:
        raise EvidenceError(Fault.WRONG_START, f"slot {name} is {own}, {what} is {type_}")
    if tensor_root(own, words) != tensor_root(type_, values):
        raise EvidenceError(Fault.WRONG_START, f"slot {name} isn't {what}")
