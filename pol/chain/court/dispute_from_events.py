"""A dispute rebuilt from events alone; they omit what follows from the program and from earlier moves."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pol.commitments.merkle import depth
from pol.commitments.program_hash import ProgramCommitment
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import DisputedClaim
from pol.dispute.encoding.packed_bytes import PackedReader
from pol.dispute.moves import Answer, Describe, DescribeSlot, DisputeEnded, Move, OpenBody, OpenState, Show, Unfold
from pol.dispute.openings import ShownLeaf
from pol.dispute.position import Position
from pol.dispute.rules import apply
from pol.errors import OperationalError
from pol.graph.step_program import StepProgram


class Verb(IntEnum):
    """The kind of a move in an event (contracts/dispute/DisputeStorage.sol)."""

    NONE = 0
    ANSWER = 1
    DESCRIBE = 2
    OPEN_STATE = 3
    UNFOLD = 4
    OPEN_BODY = 5
    DESCRIBE_SLOT = 6
    PROVE_STEP = 7
    PROVE_SLOT = 8
    PROVE_SUM = 9
    SHOW = 10


def dispute_from_events(
    claim: DisputedClaim, header: bytes, payload: bytes, bits: int, moved: Iterable[bytes], program: StepProgram
) -> tuple[DisputeRecord, Position]:
    """The record of a dispute, and the position after its last move.

    claim, header, payload: of the event ``Started``. moved: the moves of the events ``Moved``, oldest first; a proof
    that ended the dispute is left out of the record.

    Raises:
        ProtocolError: a move breaks a rule.
        OperationalError: an event holds no move.
    """
    commitment, moves = ProgramCommitment.of(program), list[Move]()
    position = DisputeRecord(claim, header, payload, (), bits).start
    for data in moved:
        move = read_move(data, position, program, commitment)
        after = apply(position, move)
        if isinstance(after, DisputeEnded):
            break
        moves.append(move)
        position = after
    return DisputeRecord(claim, header, payload, tuple(moves), bits), position


def read_move(data: bytes, position: Position, program: StepProgram, commitment: ProgramCommitment) -> Move:
    """The move at ``position`` from its published bytes: u8 verb, u8 index, payload.

    Raises:
        OperationalError: the bytes are no move at this position.
    """
    if len(data) < 2:
        raise OperationalError("an event of the game is too short for a move; ask another node")
    verb, index, payload = data[0], data[1], data[2:]
    match verb:
        case Verb.ANSWER:
            return Answer(index, payload)
        case Verb.DESCRIBE:
            node = _within(position.lo + index, len(program.nodes))
            branch, descriptor = tuple(commitment.node_branch(node)), program.nodes[node].encode()
            return Describe(index, commitment.header, branch, descriptor, payload)
        case Verb.OPEN_STATE:
            return OpenState(commitment.header, payload)
        case Verb.SHOW:
            return _shown(index, payload, program, commitment)
        case Verb.UNFOLD:
            return Unfold(index, payload)
        case Verb.OPEN_BODY:
            return OpenBody(index, payload)
        case Verb.DESCRIBE_SLOT:
            slot = position.boundaries[_within(index, len(position.items))]
            branch, descriptor = tuple(commitment.slot_branch(slot)), program.slots[slot].encode()
            return DescribeSlot(index, commitment.header, branch, descriptor, payload)
        case _:
            raise OperationalError(
                f"an event of the game has verb {verb}, which is no move; check the address of the game"
            )


def _shown(index: int, shown: bytes, program: StepProgram, commitment: ProgramCommitment) -> Show:
    """A shown node or leaf: `u32 node || root || branch || (of a leaf: u64 leaf || hash || branch) || payload`."""
    reader = PackedReader(shown)
    number = _within(reader.number(4), len(program.nodes))
    (root,), trace_branch = reader.hashes(1), reader.hashes(depth(len(program.nodes)))
    node = program.nodes[number]
    leaf: tuple[ShownLeaf, ...] = ()
    if index > 1:
        place, (hash_,) = reader.number(8), reader.hashes(1)
        leaf = (ShownLeaf(place, hash_, reader.hashes(depth(node.type.leaves))),)
    branch = tuple(commitment.node_branch(number))
    return Show(number, commitment.header, root, trace_branch, branch, node.encode(), leaf, reader.rest())


def _within(number: int, count: int) -> int:
    if number >= count:
        raise OperationalError(f"an event of the game names part {number} of {count}; check the address of the game")
    return number
