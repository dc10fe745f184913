"""A commitment to tensors, as a document (docs/spec/complete_state.md, "Commitment"): names, types and roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.commitments import canonical_json
from pol.commitments.array import ArrayType, ElementType
from pol.commitments.complete_state import StateEntry, complete_root
from pol.errors import ProtocolError

KIND = "pol/commitment"
VERSION = 1
DOCUMENT_LIMIT = 1 << 28


@dataclass(frozen=True)
class Commitment:
    """The entries of a complete state, without their content.

    Raises ProtocolError if they aren't in the order of their names.
    """

    entries: tuple[StateEntry, ...]

    def __post_init__(self) -> None:
        complete_root(self.entries)

    @property
    def root(self) -> bytes:
        """The complete root."""
        return complete_root(self.entries)

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(self.document())

    def document(self) -> canonical_json.Document:
        """The document, in plain values."""
        return {
            "kind": KIND,
            "version": VERSION,
            "root": self.root.hex(),
            "arrays": array_members(self.entries),
            "documents": [{"name": e.name, "root": e.content.hex()} for e in self.entries if e.type is None],
        }

    @classmethod
    def decode(cls, data: bytes) -> Commitment:
        """The commitment in a document."""
        names = ["root", "arrays", "documents"]
        fields = canonical_json.Fields.of_document(data, "the commitment", KIND, VERSION, names)
        entries = [array_entry(item) for item in fields.items("arrays")]
        entries += [_document(item) for item in fields.items("documents")]
        found = cls(tuple(sorted(entries, key=lambda entry: entry.name.encode())))
        if found.root != fields.hash("root"):
            raise ProtocolError("the root that the commitment states isn't that of its entries")
        if found.encode() != data:
            raise ProtocolError("the entries of the commitment aren't in the order of their names")
        return found


@dataclass(frozen=True)
class EntryMismatch:
    """An entry that differs from the commitment; ``how`` is missing, extra, differs or another type."""

    name: str
    how: str


def compare(committed: Sequence[StateEntry], found: Sequence[StateEntry]) -> list[EntryMismatch]:
    """Every entry in which two states differ, in the order of names."""
    before, after = {e.name: e for e in committed}, {e.name: e for e in found}
    mismatches = []
    for name in sorted(before.keys() | after.keys(), key=str.encode):
        if name not in after:
            mismatches.append(EntryMismatch(name, "missing"))
        elif name not in before:
            mismatches.append(EntryMismatch(name, "extra"))
        elif before[name].type != after[name].type:
            mismatches.append(EntryMismatch(name, "another type"))
        elif before[name].content != after[name].content:
            mismatches.append(EntryMismatch(name, "differs"))
    return mismatches


def array_members(entries: Sequence[StateEntry]) -> list[dict[str, object]]:
    """The arrays among some entries, as documents hold them."""
    return [
        {"name": e.name, "dtype": e.type.element.name, "shape": list(e.type.shape), "root": e.content.hex()}
        for e in entries
        if e.type is not None
    ]


def array_entry(item: object) -> StateEntry:
    """An array of a document; ProtocolError if it isn't one."""
    fields = canonical_json.Fields(item, "an array", ["name", "dtype", "shape", "root"])
    type_ = ArrayType(ElementType.of_name(fields.text("dtype")), tuple(fields.integers("shape")))
    return StateEntry(fields.text("name"), type_, fields.hash("root"))


def _document(item: object) -> StateEntry:
    fields = canonical_json.Fields(item, "a document", ["name", "root"])
    return StateEntry(fields.text("name"), None, fields.hash("root"))
