"""What a dispute about a step program can take: moves, calldata, gas, memory and work, before anything is staked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pol.dispute.encoding.move_sizes import (
    MoveSize,
    dearest_proof,
    gas_of,
    moves_in_node,
    moves_of_sum,
    moves_to_node,
    moves_to_state,
    show_size,
)
from pol.dispute.position import HASH_BITS, Level
from pol.graph.node import Node, Source
from pol.graph.step_program import StepProgram
from pol.graph.work_estimate import live_bytes

KEPT_BYTES = 256 << 20
"""Of the states between the first and the last that was asked for. Large states are computed again."""
RESTING_BYTES = 1 << 29
"""Of an execution that stays in memory between two moves, if the disk remembers it."""
FEWEST_STATES = 2
"""The one that a dispute has come down to, and the last that was asked for. The first can be read again."""


@dataclass(frozen=True)
class LevelNeeds:
    """The moves that are made from one level."""

    level: Level
    size: int
    """What the longest way narrows down: steps, nodes, leaves, elements, terms, instructions, slots."""
    moves: int
    """The most of both sides together."""
    calldata: int
    """Bytes of the largest."""
    gas: int
    """The most of one."""


@dataclass(frozen=True)
class DisputeNeeds:
    """The needs of a dispute about a segment of ``steps`` steps of a program.

    Args:
        program: the step program.
        steps: of the segment.
        bits: levels of a tree that one move opens; the deployment fixes it.
        kept_bytes: of states that a party keeps besides the few that it needs.
    """

    program: StepProgram
    steps: int
    bits: int = HASH_BITS
    kept_bytes: int = KEPT_BYTES

    @cached_property
    def longest(self) -> tuple[MoveSize, ...]:
        """The moves of the longest dispute about a replay, after the challenge."""
        before = moves_to_node(self.program, self.steps, self.bits)
        state = moves_to_state(self.program, self.bits)
        inside = max((moves_in_node(self.program, n, self.bits) for n in self._nodes_by_shape), key=len)
        before_state = [move for move in before if move.level is Level.STEPS]
        return max((*before, *inside), (*before_state, *state), key=len)

    @cached_property
    def possible(self) -> tuple[MoveSize, ...]:
        """The dearest of each kind of move from each level, over all nodes, sums included."""
        dearest = dict[tuple[Level, str], MoveSize]()
        for move in self._all():
            key = (move.level, move.move)
            if key not in dearest or gas_of(dearest[key]) < gas_of(move):
                dearest[key] = move
        return tuple(dearest[key] for key in sorted(dearest))

    @cached_property
    def levels(self) -> tuple[LevelNeeds, ...]:
        """The needs by level, in the order of a dispute; distances last."""
        moves = self._moves_by_level()
        return tuple(
            LevelNeeds(
                level,
                self._size(level),
                moves[level],
                max(move.calldata for move in self.possible if move.level is level),
                max(gas_of(move) for move in self.possible if move.level is level),
            )
            for level in sorted(moves)
        )

    @property
    def moves(self) -> int:
        """The most moves of both sides after the challenge."""
        return len(self.longest)

    @property
    def dearest_move(self) -> MoveSize:
        """The move that takes most gas."""
        return max(self.possible, key=gas_of)

    @cached_property
    def dearest_proof(self) -> tuple[int, MoveSize]:
        """The node whose proof takes most gas, and that proof."""
        proofs = ((n, dearest_proof(self.program, n, self.bits)) for n in range(len(self.program.nodes)))
        return max(proofs, key=lambda each: gas_of(each[1]))

    @cached_property
    def state_bytes(self) -> int:
        """Of one state."""
        return 4 * sum(slot.type.numel for slot in self.program.slots)

    @cached_property
    def constant_bytes(self) -> int:
        """Of all constants: a party holds them, and hashes them for a proof that reads one."""
        return 4 * sum(type_.numel for type_ in self.program.constants)

    @cached_property
    def trace_bytes(self) -> int:
        """Of all outputs of a step. They are hashed as they are computed, and not held."""
        return 4 * sum(node.type.numel for node in self.program.nodes)

    @cached_property
    def largest_node(self) -> int:
        """The node whose output and operands are the largest."""
        return max(range(len(self.program.nodes)), key=lambda number: node_bytes(self.program, number))

    @property
    def node_bytes(self) -> int:
        """Of the largest node's output and operands, which a party holds."""
        return node_bytes(self.program, self.largest_node)

    @property
    def held_state_bytes(self) -> int:
        """Of the states that a party holds."""
        return held_state_bytes(self.state_bytes, self.steps, self.kept_bytes)

    @property
    def rests_in_memory(self) -> bool:
        """Whether an execution stays in memory between two moves; of a larger one the disk holds a state."""
        return self.held_state_bytes + self.node_bytes <= RESTING_BYTES

    @property
    def steps_again(self) -> int:
        """Steps that are executed a second time until the disputed one is reached: from the last state that is kept."""
        places = self.kept_bytes // self.state_bytes if self.state_bytes else self.steps
        return -(-self.steps // places) - 1 if self.rests_in_memory and places else self.steps - 1

    @cached_property
    def live_bytes(self) -> int:
        """Of the outputs of a step in work: the next state, and of the others as many as are needed at once."""
        return live_bytes(self.program)

    @property
    def memory(self) -> int:
        """Bytes that a party holds at the worst moment: constants, states, a step in work, and the largest node."""
        return self.constant_bytes + self.held_state_bytes + self.live_bytes + self.node_bytes

    @cached_property
    def longest_fold(self) -> Node:
        """The node with most work in one element: terms times instructions."""
        return max(self.program.nodes, key=element_work)

    @cached_property
    def _nodes_by_shape(self) -> list[int]:
        """One node for each number of leaves, terms and instructions, on which the number of moves depends."""
        nodes = enumerate(self.program.nodes)
        found = {(node.type.leaves, node.terms, len(node.body.instructions) > 1): n for n, node in nodes}
        return list(found.values())

    def _all(self) -> Iterator[MoveSize]:
        yield from moves_to_node(self.program, self.steps, self.bits)
        yield from moves_to_state(self.program, self.bits)
        yield from moves_of_sum(self.program, self.bits)
        for number in range(len(self.program.nodes)):
            yield from moves_in_node(self.program, number, self.bits)
            yield show_size(self.program, number, self.bits)

    def _moves_by_level(self) -> dict[Level, int]:
        most = defaultdict[Level, int](int)
        ways: list[Sequence[MoveSize]] = [
            moves_to_node(self.program, self.steps, self.bits),
            moves_to_state(self.program, self.bits),
            moves_of_sum(self.program, self.bits),
            *(moves_in_node(self.program, number, self.bits) for number in self._nodes_by_shape),
        ]
        for number, way in enumerate(ways):
            for level in {move.level for move in way}:
                count = sum(move.level is level for move in way)
                # A description follows the answers among nodes; the state takes the place of both.
                if level is Level.NODES and number > 1:
                    count += sum(move.level is level for move in ways[0])
                most[level] = max(most[level], count)
        return most

    def _size(self, level: Level) -> int:
        nodes = self.program.nodes
        return {
            Level.STEPS: self.steps,
            Level.NODES: len(nodes),
            Level.LEAVES: max(node.type.leaves for node in nodes),
            Level.LEAF: 64,
            Level.TERMS: max(node.terms for node in nodes),
            Level.BODY: max(len(node.body.instructions) for node in nodes),
            Level.STATE: len(self.program.slots),
            Level.SUM_SLOTS: len(self.program.slots),
            Level.SUM_LEAVES: max(slot.type.leaves for slot in self.program.slots),
        }[level]


def node_bytes(program: StepProgram, number: int) -> int:
    """Bytes of a node's output and of the outputs that it reads."""
    return 4 * sum(program.nodes[each].type.numel for each in read_with(program, number))


def read_with(program: StepProgram, number: int) -> set[int]:
    """A node, and those that it reads."""
    return {operand.index for operand in program.nodes[number].operands if operand.source is Source.NODE} | {number}


def held_state_bytes(state_bytes: int, steps: int, kept_bytes: int = KEPT_BYTES) -> int:
    """Bytes of states that a party holds of a segment: those that it needs, and as many more as it keeps."""
    places = kept_bytes // state_bytes if state_bytes else steps
    return state_bytes * (FEWEST_STATES + min(places, steps))


def element_work(node: Node) -> int:
    """Instructions that one element takes."""
    return node.terms * len(node.body.instructions)


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
