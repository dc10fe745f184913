"""The time that an honest side's moves take a machine of known speeds."""

from __future__ import annotations

from dataclasses import dataclass

from pol.dispute.dispute_needs import DisputeNeeds, element_work


@dataclass(frozen=True)
class Speeds:
    """Measured speeds of a machine."""

    step: float
    """Seconds of a canonical step of the task."""
    hashing: float
    """Bytes of tensors a second."""
    folding: float
    """Instructions of one element a second."""


@dataclass(frozen=True)
class DisputeSeconds:
    """Seconds of one side's work in a dispute."""

    replay: float
    """To execute the segment from its first state, and to hash each state: before the first move, and after a restart
    of the party."""
    again: float
    """To execute the segment again up to the disputed step, from a state that is kept."""
    trace: float
    """To execute the disputed step, and to hash all of its outputs."""
    node: float
    """To execute the step again for one node, and to hash the node's output; before that, to read and hash the state
    that the disk holds, unless the execution rests in memory."""
    fold: float
    """To follow the longest fold."""
    proof: float
    """To hash the tensors that a proof shows, with the state or the constants around them."""
    own_moves: int
    """The most moves of this side."""
    executions: int
    """How often the step is executed for one node: for each move, unless the execution rests in memory."""

    @property
    def at_trace(self) -> float:
        """The longest move where a segment or a step is executed, after a restart: the replay and the trace."""
        return self.replay + self.trace

    @property
    def later(self) -> float:
        """The longest move below the trace."""
        return self.node + max(self.fold, self.proof)

    @property
    def all(self) -> float:
        """All moves of this side, without a restart."""
        below = self.executions * self.node + self.proof + self.own_moves * self.fold
        return self.at_trace + self.again + below


def dispute_seconds(needs: DisputeNeeds, speeds: Speeds, steps: int | None = None) -> DisputeSeconds:
    """Seconds of one side's work; ``steps`` are executed before its first move, by default those of the segment."""
    steps = needs.steps if steps is None else steps
    read = 4 * needs.program.nodes[needs.largest_node].type.numel
    read += 0 if needs.rests_in_memory else needs.state_bytes
    own_moves = -(-needs.moves // 2)
    return DisputeSeconds(
        replay=steps * (speeds.step + needs.state_bytes / speeds.hashing),
        again=needs.steps_again * speeds.step,
        trace=speeds.step + needs.trace_bytes / speeds.hashing,
        node=speeds.step + read / speeds.hashing,
        fold=element_work(needs.longest_fold) / speeds.folding,
        proof=(needs.node_bytes + max(needs.state_bytes, needs.constant_bytes)) / speeds.hashing,
        own_moves=own_moves,
        executions=1 if needs.rests_in_memory else own_moves,
    )
