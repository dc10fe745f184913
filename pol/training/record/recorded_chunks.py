"""One leaf of a recorded checkpoint with its proof: the answer to a demand (docs/spec/learning_log.md).

`pol serve` answers with it as a document (docs/spec/complete_state.md, "Chunk document").
"""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.commitments.array import LEAF_SIZE, ArrayType, ElementType
from pol.commitments.complete_state import ChunkProof, DocumentType, prove_at
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage.store import Store

KIND, VERSION = "pol/chunk", 1


def prove_recorded(store: Store, record: LearningRecord, index: int, position: int, leaf: int) -> ChunkProof:
    """The proof of a leaf of checkpoint ``index``; position and leaf wrap around at their counts.

    The array that holds the leaf is read and hashed, so that no false leaf is sent to a chain.

    Raises:
        ProtocolError: no such checkpoint, or it isn't what the record says.
    """
    run = RecordedRun(store, record)
    saved = run.document(run.at(index))
    with run.tensors(saved) as tensors:
        return prove_at(saved.entries, saved.documents, tensors, position, leaf)


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
    """The proof in a document; its `root` is still to be compared with the checkpoint's.

    Raises:
        ProtocolError: not the canonical bytes of a proof.
    """
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
