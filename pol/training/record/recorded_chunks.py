"""One leaf of a recorded checkpoint with its proof, as a document (docs/spec/complete_state.md, "Chunk document")."""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.commitments.array import LEAF_SIZE, ArrayType, ElementType
from pol.commitments.complete_state import ChunkProof, DocumentType

KIND, VERSION = "pol/chunk", 1


def encode(proof: ChunkProof) -> bytes:
    """The canonical bytes of a proof's document."""
    type_ = proof.type
    form: canonical_json.Document = (
        {"dtype": type_.element.name, "shape": list(type_.shape)}
        if isinstance(type_, ArrayType)
        else {"bytes": type_.nbytes}
    )
    return canonical_json.encode(
        {
            "kind": KIND,
            "version": VERSION,
            "entry": proof.entry,
            "type": form,
            "index": proof.index,
            "leaf": proof.leaf.hex(),
            "array_branch": [node.hex() for node in proof.array_branch],
            "position": proof.position,
            "count": proof.count,
            "state_branch": [node.hex() for node in proof.state_branch],
        }
    )


def decode(data: bytes) -> ChunkProof:
    """The proof in a document; its `root` is still to be compared with the checkpoint's."""
    fields = canonical_json.Fields.of_document(data, "the chunk", KIND, VERSION, ChunkProof.__dataclass_fields__)
    form: ArrayType | DocumentType
    if "bytes" in fields.object("type"):
        form = DocumentType(fields.member("type", ["bytes"]).integer("bytes", 0, (1 << 53) - 1))
    else:
        type_ = fields.member("type", ["dtype", "shape"])
        form = ArrayType(ElementType.of_name(type_.text("dtype")), tuple(type_.integers("shape")))
    return ChunkProof(
        entry=fields.text("entry"),
        type=form,
        index=fields.integer("index"),
        leaf=fields.octets("leaf", 0, LEAF_SIZE),
        array_branch=tuple(fields.hashes("array_branch")),
        position=fields.integer("position"),
        count=fields.integer("count"),
        state_branch=tuple(fields.hashes("state_branch")),
    )
