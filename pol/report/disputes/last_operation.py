"""The scalar operation that ends a dispute, for people: its place in the model, and its operands."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from pol.arithmetic.primitives import Op
from pol.dispute.agreed_facts import step_of
from pol.dispute.moves import ProveStep
from pol.dispute.one_step import disputed, executed
from pol.dispute.position import Position
from pol.dispute.rules import picked
from pol.graph.node_names import ProgramNames


@dataclass(frozen=True)
class OneStep:
    """The scalar operation, or the chunk of an fma chain, that the chain executed."""

    step: int
    node: str
    source: str
    element: int
    terms: tuple[int, int]
    """First and last term of the fold."""
    instruction: int
    op: str
    operands: tuple[int, ...]
    """Empty for a chunk."""
    claimed: int
    """The word claimed by the losing side."""
    computed: int

    @property
    def place(self) -> str:
        """The scalar of the node in words."""
        first, last = self.terms
        terms = f"k = {first}" if first == last else f"k = {first} to {last}"
        return f"element {self.element}, {terms}, instruction {self.instruction}"

    @property
    def expression(self) -> str:
        """The operation and its operands."""
        if self.operands:
            return f"{self.op}({', '.join(shown(word, self.op) for word in self.operands)})"
        return f"{self.terms[1] - self.terms[0] + 1} {self.op} in a row"

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "step": self.step,
            "node": self.node,
            "source": self.source,
            "element": self.element,
            "terms": list(self.terms),
            "instruction": self.instruction,
            "op": self.op,
            "operands": [f"0x{word:08x}" for word in self.operands],
            "claimed": f"0x{self.claimed:08x}",
            "computed": f"0x{self.computed:08x}",
        }


def one_step(position: Position, proof: ProveStep, names: ProgramNames, claimed: int | None = None) -> OneStep:
    """The operation that a proof executes; ``claimed`` replaces the word that the proof was to refute."""
    what, found = disputed(position, proof.index), executed(position, proof.index, picked(position, proof.index), proof)
    node = names.nodes[what.facts.number]
    return OneStep(
        step=step_of(position.facts).step,
        node=node.name,
        source=node.source,
        element=what.element,
        terms=(what.begin, what.end - 1),
        instruction=what.instruction,
        op=(found.op or Op.FFMA).name,
        operands=found.operands,
        claimed=found.claimed if claimed is None else claimed,
        computed=found.computed,
    )


def shown(word: int, op: str) -> str:
    """A word in hexadecimal and as the number that the primitive reads."""
    if op.startswith("F"):
        return f"0x{word:08x} = {struct.unpack('<f', struct.pack('<I', word))[0]:.9g}"
    return f"0x{word:08x} = {word}"
