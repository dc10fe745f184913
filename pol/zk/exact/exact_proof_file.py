"""Exact proofs of steps that follow each other, as a file (docs/spec/zk.md, "File of exact proofs")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import rfc8785

from pol.errors import ProtocolError
from pol.zk.bn254 import R
from pol.zk.exact import groth16
from pol.zk.exact.exact_prover import ExactStep
from pol.zk.exact.groth16 import Proof, VerifyingKey
from pol.zk.network import read_document

KIND = "pol/exact-steps"
VERSION = 1
MAX_STEPS = 1 << 16
_HASH = 32


@dataclass(frozen=True)
class ExactProofs:
    """Steps with the contexts that they are bound to (32 bytes each), and the key that they hold for.

    Raises ProtocolError unless each begins with the vector that the one before ends with.
    """

    circuit: str
    key: VerifyingKey
    contexts: tuple[bytes, ...]
    steps: tuple[ExactStep, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= MAX_STEPS or len(self.contexts) != len(self.steps):
            raise ProtocolError(f"a file has 1 to {MAX_STEPS} steps, each with its context")
        hashes = [part for step in self.steps for part in (step.before, *step.data, step.after)]
        if any(len(part) != _HASH for part in (*self.contexts, *hashes)):
            raise ProtocolError("a context and a hash have 32 bytes")
        for place, (earlier, later) in enumerate(pairwise(self.steps), 1):
            if later.before != earlier.after:
                raise ProtocolError(f"step {place} doesn't begin with the vector that the step before it ends with")

    def verify(self) -> None:
        """By py_ecc's pairing, some two seconds a step.

        Raises ProtocolError for the first one that doesn't hold, or isn't a proof for the key.
        """
        for place, (context, step) in enumerate(zip(self.contexts, self.steps, strict=True)):
            hashes = (int.from_bytes(part) for part in (step.before, *step.data, step.after))
            if not groth16.verify(self.key, step.proof, [int.from_bytes(context) % R, *hashes]):
                raise ProtocolError(f"the proof of step {place} does not hold")

    def to_json(self) -> bytes:
        """Canonical JSON."""
        return rfc8785.dumps(
            {
                "kind": KIND,
                "version": VERSION,
                "circuit": self.circuit,
                "key": self.key.encode().hex(),
                "steps": [_raw(context, step) for context, step in zip(self.contexts, self.steps, strict=True)],
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> ExactProofs:
        """The proofs in a file. Raises ProtocolError for anything that `to_json` would not write."""
        return read_document(
            data,
            "not exact proofs of steps",
            lambda raw: cls(
                raw["circuit"],
                VerifyingKey.decode(bytes.fromhex(raw["key"])),
                tuple(bytes.fromhex(step["context"]) for step in raw["steps"]),
                tuple(_step(step) for step in raw["steps"]),
            ),
        )


def _raw(context: bytes, step: ExactStep) -> dict[str, Any]:
    return {
        "context": context.hex(),
        "before": step.before.hex(),
        "data": [part.hex() for part in step.data],
        "after": step.after.hex(),
        "proof": step.proof.encode().hex(),
    }


def _step(raw: Any) -> ExactStep:
    before, after = bytes.fromhex(raw["before"]), bytes.fromhex(raw["after"])
    data = tuple(bytes.fromhex(part) for part in raw["data"])
    return ExactStep(before, data, after, Proof.decode(bytes.fromhex(raw["proof"])))
