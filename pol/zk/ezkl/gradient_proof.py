"""A proof of one gradient step, and its file (docs/spec/zk.md, "Proof file")."""

from __future__ import annotations

from dataclasses import dataclass

import rfc8785

from pol.errors import ProtocolError
from pol.zk.bn254 import R
from pol.zk.circuits import Visibility
from pol.zk.network import read_document

KIND = "pol/gradient-proof"
VERSION = 1
MAX_PROOF_BYTES = 1 << 16
MAX_INSTANCES = 1 << 20
_POINT = 64


@dataclass(frozen=True)
class GradientProof:
    """The proof of a prover, with the digest of its keys and the public numbers.

    ``vectors``: the number of input vectors of the step, plus one. Raises ProtocolError for numbers outside the field.
    """

    circuit: str
    keys: str
    visibility: Visibility
    vectors: int
    instances: tuple[int, ...]
    proof: bytes

    def __post_init__(self) -> None:
        if not all(0 <= instance < R for instance in self.instances):
            raise ProtocolError("a public number of the proof is not below the order of the field")
        if not 1 <= len(self.proof) <= MAX_PROOF_BYTES or len(self.instances) > MAX_INSTANCES:
            raise ProtocolError(f"a proof has up to {MAX_PROOF_BYTES} bytes and {MAX_INSTANCES} public numbers")
        if self.visibility is Visibility.HASHED and len(self.instances) != self.vectors:
            raise ProtocolError(f"a proof over {self.vectors} hashed vectors shows as many hashes")
        if self.visibility is Visibility.COMMITTED and len(self.proof) < self.vectors * _POINT:
            raise ProtocolError("the proof is too short for its commitments")

    @property
    def commitments(self) -> tuple[bytes, ...]:
        """Commitments to the inputs of the step, in order, and to its result: 32 bytes each, or points of 64.

        Raises ProtocolError for a public proof, which shows the numbers.
        """
        if self.visibility is Visibility.HASHED:
            return tuple(instance.to_bytes(32) for instance in self.instances)
        if self.visibility is Visibility.COMMITTED:
            return tuple(self.proof[place * _POINT : (place + 1) * _POINT] for place in range(self.vectors))
        raise ProtocolError("a proof that shows every number has no commitments")

    @property
    def before(self) -> bytes:
        """Commitment to the vector before the step."""
        return self.commitments[0]

    @property
    def after(self) -> bytes:
        """Commitment to the vector after the step: the next step's `before`."""
        return self.commitments[-1]

    @property
    def data(self) -> tuple[bytes, ...]:
        """Commitments to the other inputs of the step: its batch, or a gradient."""
        return self.commitments[1:-1]

    def to_json(self) -> bytes:
        """Canonical JSON."""
        return rfc8785.dumps(
            {
                "kind": KIND,
                "version": VERSION,
                "circuit": self.circuit,
                "keys": self.keys,
                "visibility": str(self.visibility),
                "vectors": self.vectors,
                "instances": [f"{instance:064x}" for instance in self.instances],
                "proof": self.proof.hex(),
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> GradientProof:
        """The proof in a file. Raises ProtocolError for anything that `to_json` would not write."""
        return read_document(
            data,
            "not a proof of a gradient step",
            lambda raw: cls(
                raw["circuit"],
                raw["keys"],
                Visibility(raw["visibility"]),
                raw["vectors"],
                tuple(int(instance, 16) for instance in raw["instances"]),
                bytes.fromhex(raw["proof"]),
            ),
        )
