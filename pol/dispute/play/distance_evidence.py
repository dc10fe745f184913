"""Evidence for a distance between two states: its parts, slot by slot and leaf by leaf."""

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.claims.distance import leaf_distances, saturating_sum
from pol.commitments.tensor import tensor_roots
from pol.dispute.openings import Opening
from pol.dispute.play.execution_evidence import open_leaves
from pol.graph.step_program import Component, StepProgram


class SumEvidence:
    """The distance of one component between the states ``x`` and ``y``."""

    def __init__(self, program: StepProgram, component: int, x: Sequence[Words], y: Sequence[Words]) -> None:
        self.program = program
        self.component = Component(component)
        self.states = (list(x), list(y))

    def leaf_sums(self, slot: int) -> list[int]:
        """The distance in each leaf of a slot; zero for a slot of another component."""
        descriptor = self.program.slots[slot]
        if descriptor.component != self.component:
            return [0] * descriptor.type.leaves
        return leaf_distances(descriptor.type.dtype, self.states[0][slot], self.states[1][slot], descriptor.scale)

    def slot_sum(self, slot: int) -> int:
        """The distance in a slot."""
        return saturating_sum(self.leaf_sums(slot))

    def total(self) -> int:
        """The distance of the component."""
        return saturating_sum(self.slot_sum(slot) for slot in range(len(self.program.slots)))

    def open_leaves(self, slot: int, leaf: int) -> tuple[Opening, Opening]:
        """The openings of one leaf in both states."""
        types = [s.type for s in self.program.slots]
        x, y = (open_leaves(state, tensor_roots(types, state), slot, range(leaf, leaf + 1)) for state in self.states)
        return x, y
