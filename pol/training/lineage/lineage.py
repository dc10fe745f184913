"""The lineage of a training: its base, the base's base, down to the first (docs/spec/learning_record.md, "Lineage").

Only documents are read, and the programs of drawings and tasks: no torch, and no tensor of a record's base.
"""

from __future__ import annotations

from collections.abc import Mapping

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.array import array_root
from pol.commitments.complete_state import StateEntry
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.state.plain_data import WEIGHTS, entry_of, name_in_model
from pol.training.state.words import of_words
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint
from pol.training.task import initialization, learning_proof, published_task
from pol.training.task.initialization import Initialization
from pol.training.task.task_document import LineageLevel
from pol.training.task.task_start import MAX_LEVELS

KINDS = ("given", "record", "initialisation", "task")


def verify_lineage(store: Store, digest: str | None = None) -> tuple[LineageLevel, ...]:
    """The levels of a learning record, a learning proof or a task, the newest training first; each was checked.

    ``digest`` names the document; without it, the store's newest record is read. Later checkpoints of a record or proof
    aren't examined: verdicts judge the training of each level.

    Raises:
        ProtocolError: a level doesn't hold, the lineage is cyclic, or there are more than 32 levels.
        OperationalError: the store failed, or a base isn't in it.
    """
    if digest is None:
        return of_record(store, learning_record.load_record(store))
    data = store.get(digest, limit=learning_record.DOCUMENT_LIMIT)
    kind = canonical_json.decode(data, f"object {digest}").get("kind")
    if kind == "pol/learning-record":
        return of_record(store, LearningRecord.decode(data))
    if kind == "pol/learning-proof":
        proof = learning_proof.LearningProof.decode(data)
        loaded = published_task.load(store, proof.task)
        learning_proof.require_proof_of(proof, loaded)
        return loaded.lineage
    if kind == "pol/task":
        return published_task.load(store, digest).lineage
    raise ProtocolError(
        f"object {digest} is of the kind {kind!r}: expected a learning record, a learning proof or a task"
    )


def of_record(
    store: Store, record: LearningRecord, load: published_task.TaskLoader = published_task.load
) -> tuple[LineageLevel, ...]:
    """The levels of a learning record."""
    levels: list[LineageLevel] = []
    runs: set[bytes] = set()
    while True:
        if record.run in runs:
            raise ProtocolError(f"run {record.run.hex()} continues itself: a base is an earlier training")
        if len(levels) == MAX_LEVELS:
            raise ProtocolError(f"the record continues more trainings than are followed: {MAX_LEVELS} at most")
        runs.add(record.run)
        level, below = _level(store, record, load)
        levels.append(level)
        if not isinstance(below, LearningRecord):
            return (*levels, *below)
        record = below


def _level(
    store: Store, record: LearningRecord, load: published_task.TaskLoader
) -> tuple[LineageLevel, LearningRecord | tuple[LineageLevel, ...]]:
    """The level of one record, and its base."""
    saved = _document(store, record, 0)
    if saved.step:
        raise ProtocolError(f"the record begins at step {saved.step}: its start isn't recorded")
    weights = {entry.name: entry for entry in saved.entries if entry.name.startswith(WEIGHTS)}
    below: LearningRecord | tuple[LineageLevel, ...] = ()
    base: str | None = None
    taken: Mapping[str, str] = {}
    drawn: tuple[str, ...] = ()
    kind = record.start.get("kind")
    match kind:
        case "given":
            canonical_json.Fields(record.start, "the start", ["kind"])
        case "record":
            fields = canonical_json.Fields(record.start, "the start", ["kind", "record", "index", "arrays"])
            base, taken = fields.digest("record"), fields.texts("arrays")
            below = learning_record.load_record(store, base)
            _require_taken(weights, _document(store, below, fields.integer("index")), taken)
        case "initialisation":
            fields = canonical_json.Fields(record.start, "the start", ["kind", "initialisation"])
            drawing = Initialization.of_document(fields.value("initialisation"))
            shapes = {
                name_in_model(entry.name): entry.type.shape for entry in weights.values() if entry.type is not None
            }
            tensors = initialization.run(store, drawing, shapes)
            drawn = _require_words(weights, {name: words for name, (_, words) in tensors.items()}, "is drawn")
        case "task":
            fields = canonical_json.Fields(record.start, "the start", ["kind", "task"])
            base = fields.digest("task")
            loaded = load(store, base)
            state = dict(zip(loaded.names.slots, loaded.initial_state, strict=True))
            known = {name: words for name, words in state.items() if entry_of(weights, name)}
            names = _require_words(weights, known, f"task {base} begins with")
            taken, below = {name: name_in_model(name) for name in names}, loaded.lineage
        case _:
            raise ProtocolError(f"a start of the kind {kind!r} is unknown: expected one of {', '.join(KINDS)}")
    rest = tuple(name for name in weights if name not in taken and name not in drawn)
    digest = keccak256(record.encode()).hex()
    return LineageLevel(str(kind), digest, base, dict(taken), drawn, rest), below


def _document(store: Store, record: LearningRecord, index: int) -> StoredCheckpoint:
    run = RecordedRun(store, record)
    return run.document(run.at(index))


def _require_taken(weights: Mapping[str, StateEntry], end: StoredCheckpoint, taken: Mapping[str, str]) -> None:
    known = {entry.name: entry for entry in end.entries}
    if not taken:
        raise ProtocolError("a record that starts from another one takes at least one array from it")
    for name, source in taken.items():
        if name not in weights or source not in known:
            raise ProtocolError(f"{name} is to come from {source}, and one of the two records lacks it")
        own, base = weights[name], known[source]
        if own.type != base.type:
            raise ProtocolError(f"{name} is {_shown(own)}, {source} of the base is {_shown(base)}")
        if own.content != base.content:
            raise ProtocolError(f"{name} isn't {source} of the base: its root is {own.content.hex()}")


def _require_words(weights: Mapping[str, StateEntry], tensors: Mapping[str, Words], what: str) -> tuple[str, ...]:
    """The names of the arrays that hold these words."""
    found = []
    for name, words in tensors.items():
        entry = entry_of(weights, name)
        if entry is None or entry.type is None:
            raise ProtocolError(f"the record has no parameter or buffer {name}, which {what}")
        if entry.type.shape != words.shape:
            raise ProtocolError(f"{name} is {_shown(entry)}, what {what} has the shape {words.shape}")
        if array_root(of_words(words, entry.type.element)) != entry.content:
            raise ProtocolError(f"{name} isn't what {what}")
        found.append(entry.name)
    return tuple(found)


def _shown(entry: StateEntry) -> str:
    return "a document" if entry.type is None else f"{entry.type.element.name} {entry.type.shape}"
