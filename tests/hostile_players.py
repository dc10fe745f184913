"""Adversaries of the dispute game: one that lies about a sum, one that plays at random."""

from dataclasses import dataclass
from random import Random

from pol.commitments.array import LEAF_SIZE
from pol.commitments.program_hash import ProgramCommitment
from pol.dispute.moves import Answer, Describe, IllegalMove, Move, OpenBody, Unfold
from pol.dispute.play.honest_players import NothingToDispute, SumEvidence
from pol.dispute.position import TREES, Level, Position
from pol.dispute.rules import answered, described, opened_body, unfolded
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import LEAF_WORDS


class LyingSums(SumEvidence):
    """A distance that is wrong in one leaf."""

    def __init__(self, honest: SumEvidence, slot: int, leaf: int, excess: int) -> None:
        super().__init__(honest.program, honest.component, *honest.states)
        self._lie = (slot, leaf, excess)

    def leaf_sums(self, slot: int) -> list[int]:
        """As claimed."""
        sums = super().leaf_sums(slot)
        if slot == self._lie[0]:
            sums[self._lie[1]] += self._lie[2]
        return sums


@dataclass(frozen=True)
class RandomPlayer:
    """Picks any part and opens any bytes: knows nothing but the rules."""

    random: Random
    program: StepProgram

    def open(self, position: Position) -> bytes:
        """Bytes of the right length; zeros where a leaf must have them."""
        payload = self.random.randbytes(position.expected_bytes)
        if position.level is not Level.LEAF:
            return payload
        words = min(LEAF_WORDS, position.count - LEAF_WORDS * position.lo)
        return payload[: 4 * words].ljust(LEAF_SIZE, b"\0")

    def move(self, position: Position) -> Move:
        """Any move but a proof.

        Raises:
            NothingToDispute: only a proof is left.
        """
        p, commitment = position, ProgramCommitment.of(self.program)
        index = self.random.randrange(len(p.items))
        if p.level is Level.LEAF:
            index %= min(LEAF_WORDS, p.count - LEAF_WORDS * p.lo)
        leaves = p.level in TREES and p.opened_height == p.height
        if p.level is Level.NODES and leaves:
            number = p.lo + index
            descriptor, branch = self.program.nodes[number].encode(), tuple(commitment.node_branch(number))
            return Describe(index, commitment.header, branch, descriptor, self.open(described(p, index, descriptor)))
        try:
            if p.level is Level.LEAF:
                return Unfold(index, self.open(unfolded(p, index)))
            if p.level is Level.TERMS and p.boundaries[index + 1] - p.boundaries[index] == 1:
                return OpenBody(index, self.open(opened_body(p, index)))
            return Answer(index, self.open(answered(p, index)))
        except IllegalMove as error:
            raise NothingToDispute("only a proof is left") from error
