"""One recorded checkpoint in a store (docs/spec/complete_state.md, "Checkpoint").

A document holds names, types, roots and everything small; it is an object under its digest. The tensors are in a file
named by the complete root, or in an object that updates an earlier checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pol.commitments import canonical_json
from pol.commitments.array import ArrayType
from pol.commitments.complete_state import CompleteState, StateEntry, complete_root, document_root
from pol.errors import OperationalError, ProtocolError
from pol.training.storage import safetensors_format, sharded_files, updates
from pol.training.storage.commitment import array_entry, array_members
from pol.training.storage.sealing import MAGIC as SEALED
from pol.training.storage.store import Store

KIND, VERSION = "pol/checkpoint", 1
DOCUMENT_LIMIT = 1 << 28
FULL, UPDATES = "full", "updates"
MAX_UPDATES = 1000
"""Updates that a reader follows, at most, down to a checkpoint in full."""


@dataclass(frozen=True)
class UpdateBase:
    """A stored checkpoint that the next one may update; its arrays are kept unchanged until then.

    ``updates`` counts the updates since a checkpoint in full.
    """

    object: str
    state: CompleteState
    updates: int = 0


@dataclass(frozen=True)
class StoredCheckpoint:
    """The document of a checkpoint: the state after ``step`` steps. ``data`` describes the storage of the tensors."""

    step: int
    entries: tuple[StateEntry, ...]
    documents: Mapping[str, bytes]
    data: Mapping[str, Any]

    @property
    def root(self) -> bytes:
        """The complete root."""
        return complete_root(self.entries)

    @property
    def types(self) -> dict[str, ArrayType]:
        """The types of the arrays by name."""
        return {entry.name: entry.type for entry in self.entries if entry.type is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(type_.nbytes for type_ in self.types.values())

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "step": self.step,
                "root": self.root.hex(),
                "arrays": array_members(self.entries),
                "documents": {name: canonical_json.parse(data, name) for name, data in self.documents.items()},
                "data": dict(self.data),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> StoredCheckpoint:
        """The checkpoint in a document."""
        names = ["step", "root", "arrays", "documents", "data"]
        fields = canonical_json.Fields.of_document(data, "the checkpoint", KIND, VERSION, names)
        documents = {name: canonical_json.encode(value) for name, value in fields.objects("documents").items()}
        entries = [array_entry(item) for item in fields.items("arrays")]
        if [entry.name for entry in entries] != sorted((e.name for e in entries), key=str.encode):
            raise ProtocolError("the arrays of the checkpoint aren't in the order of their names")
        entries += [StateEntry(name, None, document_root(document)) for name, document in documents.items()]
        entries.sort(key=lambda entry: entry.name.encode())
        saved = cls(fields.integer("step"), tuple(entries), documents, fields.object("data"))
        if saved.root != fields.hash("root"):
            raise ProtocolError("the root that the checkpoint states isn't that of its entries")
        return saved


def save(store: Store, step: int, state: CompleteState, base: UpdateBase | None = None) -> tuple[str, StoredCheckpoint]:
    """Store a state, first its tensors, then the document; the digest of the document and itself.

    With a base, only the changes since are stored.

    Raises:
        OperationalError: the store failed; nothing points at what may be missing.
    """
    data: dict[str, Any] = {"form": FULL}
    if base is None:
        store.put_file(full_file(state.root), safetensors_format.pieces(state.arrays))
    else:
        known = {entry.name: entry for entry in base.state.entries}
        changed = [e.name for e in state.entries if e.type is not None and known.get(e.name) != e]
        parts: list[updates.UpdatePart] = []

        def content() -> Iterator[bytes | memoryview]:
            for part, encoded in updates.encode(state.arrays, base.state.arrays, changed):
                parts.append(part)
                yield encoded

        object_ = store.put_pieces(content())
        data = {"form": UPDATES, "base": base.object, "object": object_, "arrays": [part.to_json() for part in parts]}
    saved = StoredCheckpoint(step, tuple(state.entries), state.documents, data)
    return store.put(saved.encode()), saved


def load_document(store: Store, digest: str) -> StoredCheckpoint:
    """The document of a checkpoint. Raises ProtocolError: it isn't one."""
    data = store.get(digest, limit=DOCUMENT_LIMIT)
    if data.startswith(SEALED):
        raise OperationalError(f"the checkpoint {digest} is sealed: give a key to open it")
    return StoredCheckpoint.decode(data)


def sizes(saved: StoredCheckpoint) -> dict[str, int]:
    """Names and sizes of the files that hold the tensors of a checkpoint, without those of its bases."""
    form = saved.data.get("form")
    if form == sharded_files.FORM:
        return sharded_files.sizes(saved.types, saved.data)
    if form == FULL:
        return {full_file(saved.root): safetensors_format.size(saved.types)}
    fields = update_fields(saved)
    return {fields.digest("object"): sum(updates.UpdatePart.of_json(item).size for item in fields.items("arrays"))}


def bases(store: Store, saved: StoredCheckpoint) -> list[StoredCheckpoint]:
    """The checkpoint and its chain of bases, newest first; the last one is stored in full."""
    chain = [saved]
    while chain[-1].data.get("form") not in (FULL, sharded_files.FORM):
        after = chain[-1]
        before = load_document(store, update_fields(after).digest("base"))
        if before.step >= after.step:
            raise ProtocolError(f"the checkpoint of step {after.step} is an update of one of step {before.step}")
        if len(chain) > MAX_UPDATES:
            raise ProtocolError(f"the checkpoint of step {saved.step} lies on more than {MAX_UPDATES} updates")
        chain.append(before)
    if chain[-1].data.get("form") == FULL and len(chain[-1].data) != 1:
        raise ProtocolError(f"the checkpoint of step {chain[-1].step} is stored in an unknown form")
    return chain


def full_file(root: bytes) -> str:
    """The name of the file that holds all tensors of the state with this complete root."""
    return f"{root.hex()}.safetensors"


def update_fields(saved: StoredCheckpoint) -> canonical_json.Fields:
    """The members that describe an update; ProtocolError if the tensors are stored in another form."""
    if saved.data.get("form") != UPDATES:
        raise ProtocolError(f"the checkpoint of step {saved.step} is stored in an unknown form")
    return canonical_json.Fields(saved.data, "the data of the checkpoint", ["form", "base", "object", "arrays"])
