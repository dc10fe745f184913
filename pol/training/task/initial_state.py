"""Where the initial state of a task comes from (docs/spec/learning_proof.md, "Start")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.tensor import tensor_root
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.tensor_type import TensorType
from pol.training.storage.store import Store
from pol.training.task import initialization, learning_proof
from pol.training.task.initialization import Initialisation

if TYPE_CHECKING:
    from pol.training.task.task import LoadedTask

MAX_LEVELS = 32
SEED_CONSTANT = "seed"


@dataclass(frozen=True)
class Start:
    """What a task begins with. Without proof and initialisation the submitter gives it, and it proves nothing.

    ``slots`` maps slots of this task to slots of the proof's task: they begin as its last checkpoint ends.
    ``initialisation`` draws further ones; all that is left is zero.
    """

    proof: str | None = None
    slots: Mapping[str, str] = field(default_factory=dict)
    initialisation: Initialisation | None = None

    def __post_init__(self) -> None:
        if bool(self.slots) != (self.proof is not None):
            raise ProtocolError("a start takes slots from a learning proof: name both, or neither")
        drawn = set(self.initialisation.slots) if self.initialisation is not None else set()
        if twice := drawn & self.slots.keys():
            raise ProtocolError(f"slot {sorted(twice)[0]} is taken from the proof and drawn: choose one of the two")

    @property
    def kind(self) -> str:
        """given, initialisation or proof."""
        if self.proof is not None:
            return "proof"
        return "given" if self.initialisation is None else "initialisation"

    def document(self) -> canonical_json.Document:
        """The JSON object."""
        drawn = None if self.initialisation is None else self.initialisation.document()
        if self.proof is not None:
            return {"kind": "proof", "proof": self.proof, "slots": dict(self.slots), "initialisation": drawn}
        return {"kind": "given"} if drawn is None else {"kind": "initialisation", "initialisation": drawn}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Start:
        """What a JSON object says.

        Raises:
            ProtocolError: not the start of a task.
        """
        what, kind = "the start", document.get("kind")
        if kind == "given":
            canonical_json.Fields(document, what, ["kind"])
            return cls()
        if kind == "initialisation":
            fields = canonical_json.Fields(document, what, ["kind", "initialisation"])
            return cls(initialisation=Initialisation.of_document(fields.value("initialisation")))
        if kind != "proof":
            raise ProtocolError(f"a start of the kind {kind!r} is unknown: given, initialisation or proof")
        fields = canonical_json.Fields(document, what, ["kind", "proof", "slots", "initialisation"])
        drawn = fields.value("initialisation")
        return cls(
            fields.digest("proof"),
            fields.texts("slots"),
            None if drawn is None else Initialisation.of_document(drawn),
        )


GIVEN = Start()
"""The submitter gives all of it."""


@dataclass(frozen=True)
class Level:
    """One training of a chain: what it is and where each part of its first state comes from.

    ``kind`` is that of its start, ``document`` the digest of the task or record, ``base`` of the proof, record or task
    that it goes on from, if any. ``taken`` maps names to names of the base. ``rest`` are the names of what is neither
    taken nor drawn: zeros in a task whose start says so; elsewhere whatever its author has put there.
    """

    kind: str
    document: str
    base: str | None
    taken: Mapping[str, str]
    drawn: tuple[str, ...]
    rest: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """A task's initial state, slot by slot, and the task's seed if its program draws."""

    names: Sequence[str]
    types: Sequence[TensorType]
    tensors: Sequence[Words]
    seed: Words | None


def require(
    store: Store, task: str, start: Start, state: State, load_task: Callable[[str], LoadedTask]
) -> tuple[Level, ...]:
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
    level = Level(start.kind, task, start.proof, dict(start.slots), _drawn(start), rest)
    if start.kind == "given":
        return (level,)
    if start.initialisation is not None:
        if state.seed is not None and (state.seed != start.initialisation.words()).any():
            raise EvidenceError(
                Fault.WRONG_START, "the initialisation draws from another seed than the steps of the task"
            )
        shapes = {name: type_.shape for name, type_ in zip(state.names, state.types, strict=True)}
        for name, (type_, words) in initialization.run(store, start.initialisation, shapes).items():
            _require_equal(state, places[name], type_, words, "what the initialisation draws")
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


def _drawn(start: Start) -> tuple[str, ...]:
    return () if start.initialisation is None else start.initialisation.slots


def _require_equal(state: State, place: int, type_: TensorType, words: Words, what: str) -> None:
    name, own = state.names[place], state.types[place]
    if own != type_:
        raise EvidenceError(Fault.WRONG_START, f"slot {name} is {own}, {what} is {type_}")
    if tensor_root(own, state.tensors[place]) != tensor_root(type_, words):
        raise EvidenceError(Fault.WRONG_START, f"slot {name} isn't {what}")
