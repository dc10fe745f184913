"""One recorded checkpoint: a document with names, types, roots and everything small, and a file with the tensors.

docs/spec/complete_state.md, "Checkpoint". The document is an object like any other, named by its digest; the file is
named by the complete root, which its content has to have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pol.commitments.array import ArrayType, ElementType, array_root
from pol.commitments.complete_state import CompleteState, Entry, complete_root, document_root
from pol.errors import ProtocolError
from pol.training import canonical_json
from pol.training.state import tensor_file
from pol.training.store import Store

VERSION = 1
DOCUMENT_LIMIT = 1 << 28
FULL = "full"


@dataclass(frozen=True)
class SavedState:
    """The document of a checkpoint: the state after ``step`` steps. ``data`` says how the tensors are stored."""

    step: int
    entries: tuple[Entry, ...]
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

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": "pol/checkpoint",
                "version": VERSION,
                "step": self.step,
                "root": self.root.hex(),
                "arrays": [
                    {"name": e.name, "dtype": e.type.element.name, "shape": list(e.type.shape), "root": e.content.hex()}
                    for e in self.entries
                    if e.type is not None
                ],
                "documents": {name: canonical_json.decode(data, name) for name, data in self.documents.items()},
                "data": dict(self.data),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> SavedState:
        """The checkpoint in a document.

        Raises:
            ProtocolError: not the canonical bytes of a checkpoint, or another root than its entries have.
        """
        what = "the checkpoint"
        names = ["kind", "version", "step", "root", "arrays", "documents", "data"]
        fields = canonical_json.Fields(canonical_json.decode(data, what), what, names)
        if fields.text("kind") != "pol/checkpoint" or fields.integer("version") != VERSION:
            raise ProtocolError(f"not a checkpoint of version {VERSION}")
        documents = {name: canonical_json.encode(value) for name, value in fields.objects("documents").items()}
        entries = [_entry(item) for item in fields.items("arrays")]
        if [entry.name for entry in entries] != sorted((e.name for e in entries), key=str.encode):
            raise ProtocolError("the arrays of the checkpoint aren't in the order of their names")
        entries += [Entry(name, None, document_root(document)) for name, document in documents.items()]
        entries.sort(key=lambda entry: entry.name.encode())
        saved = cls(fields.integer("step"), tuple(entries), documents, fields.object("data"))
        if saved.root != fields.hash("root"):
            raise ProtocolError("the root that the checkpoint states isn't that of its entries")
        return saved


def save(store: Store, step: int, state: CompleteState) -> tuple[str, SavedState]:
    """Store a state: its tensors first, then the document; the digest of the document and itself.

    Raises:
        OperationalError: the store failed; nothing points at what may be missing.
    """
    store.put_file(f"{state.root.hex()}.safetensors", tensor_file.pieces(state.arrays))
    saved = SavedState(step, tuple(state.entries), state.documents, {"form": FULL})
    return store.put(saved.encode()), saved


def load_document(store: Store, digest: str) -> SavedState:
    """The document of a checkpoint.

    Raises:
        ProtocolError: it isn't one.
        OperationalError: the store failed.
    """
    return SavedState.decode(store.get(digest, limit=DOCUMENT_LIMIT))


def load(store: Store, saved: SavedState) -> CompleteState:
    """The state of a checkpoint, with every array hashed and compared.

    Raises:
        ProtocolError: the file holds other tensors than the document says; the message names the first.
        OperationalError: the store failed.
    """
    name = f"{saved.root.hex()}.safetensors"
    with store.open_file(name) as file:
        arrays = tensor_file.read(file, saved.types, f"checkpoint file {name}")
    for entry in saved.entries:
        if entry.type is not None and array_root(arrays[entry.name]) != entry.content:
            raise ProtocolError(f"tensor {entry.name} in {name} isn't the one that the checkpoint commits to")
    return CompleteState(arrays, saved.documents)


def _entry(item: object) -> Entry:
    fields = canonical_json.Fields(item, "an array", ["name", "dtype", "shape", "root"])
    shape = tuple(fields.integers("shape"))
    return Entry(fields.text("name"), ArrayType(ElementType.of_name(fields.text("dtype")), shape), fields.hash("root"))
