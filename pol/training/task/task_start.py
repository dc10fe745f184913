"""The part of a task document that says where its initial state comes from (docs/spec/learning_proof.md, "Start")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.training.task.initialization import Initialization

MAX_LEVELS = 32
"""Trainings that a lineage has at most."""


@dataclass(frozen=True)
class TaskStart:
    """The source of a task's initial state. Without proof and initialization the submitter gives it, unproven.

    ``slots`` maps slots of this task to slots of the proof's task: they begin with the values of its last checkpoint.
    ``initialization`` draws further slots; all others are zero.
    """

    proof: str | None = None
    slots: Mapping[str, str] = field(default_factory=dict)
    initialization: Initialization | None = None

    def __post_init__(self) -> None:
        if bool(self.slots) != (self.proof is not None):
            raise ProtocolError("a start takes slots from a learning proof: name both, or neither")
        drawn = set(self.initialization.slots) if self.initialization is not None else set()
        if twice := drawn & self.slots.keys():
            raise ProtocolError(f"slot {sorted(twice)[0]} is taken from the proof and drawn: choose one of the two")

    @property
    def kind(self) -> str:
        """given, initialisation or proof."""
        if self.proof is not None:
            return "proof"
        return "given" if self.initialization is None else "initialisation"

    def document(self) -> canonical_json.Document:
        """The JSON object."""
        drawn = None if self.initialization is None else self.initialization.document()
        if self.proof is not None:
            return {"kind": "proof", "proof": self.proof, "slots": dict(self.slots), "initialisation": drawn}
        return {"kind": "given"} if drawn is None else {"kind": "initialisation", "initialisation": drawn}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> TaskStart:
        """The start in a JSON object. Raises ProtocolError: not the start of a task."""
        what, kind = "the start", document.get("kind")
        if kind == "given":
            canonical_json.Fields(document, what, ["kind"])
            return cls()
        if kind == "initialisation":
            fields = canonical_json.Fields(document, what, ["kind", "initialisation"])
            return cls(initialization=Initialization.of_document(fields.value("initialisation")))
        if kind != "proof":
            raise ProtocolError(f"a start of the kind {kind!r} is unknown: expected given, initialisation or proof")
        fields = canonical_json.Fields(document, what, ["kind", "proof", "slots", "initialisation"])
        drawn = fields.value("initialisation")
        return cls(
            fields.digest("proof"), fields.texts("slots"), None if drawn is None else Initialization.of_document(drawn)
        )


GIVEN = TaskStart()
"""The submitter gives the whole initial state."""
