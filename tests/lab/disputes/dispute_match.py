"""A whole dispute off chain: two players, one claim, until one has won or has nothing left to say."""

from collections.abc import Sequence
from dataclasses import dataclass

from pol.commitments.merkle import tree
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import DisputedClaim, ReceiptClaim
from pol.dispute.moves import DisputeEnded, IllegalMove, Move
from pol.dispute.openings import WrongInclusionProof
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import NothingToDispute, Player, leaves_of, leaves_place, published_leaves
from pol.dispute.position import HASH_BITS, Position, Side
from pol.dispute.rules import apply
from pol.graph.step_program import StepProgram


@dataclass(frozen=True)
class Match:
    """A dispute that is over."""

    record: DisputeRecord
    winner: Side
    last: Position
    """Where it ended: a proof refuted, or the side on turn had no move."""
    refuted: bool
    """Whether a proof decided; else the loser gives up or runs out of time."""
    attempt: Move | None
    """What the loser tried in vain: a proof that refutes nothing, or any other illegal move."""
    detail: str

    @property
    def transactions(self) -> int:
        """Of both sides together: the challenge, every move, and the one that ends it if no proof did."""
        return 1 + len(self.record.moves) + (not self.refuted)


def play(
    claim: DisputedClaim,
    header: bytes,
    asserter: Player,
    challenger: Player,
    bits: int = HASH_BITS,
    payload: bytes | None = None,
) -> Match:
    """Let two players dispute about a claim.

    Args:
        claim: what is disputed.
        header: of its program.
        asserter: has made the claim.
        challenger: opens first.
        bits: levels of a tree that one move opens.
        payload: what the challenger begins with; about a receipt it shows what the receipt names (`open_receipt`).

    Whoever is the first to make an illegal move has lost.

    Raises:
        IllegalMove: what the challenger begins with is none.
    """
    if payload is None:
        assert not isinstance(claim, ReceiptClaim), "what is shown beside an opening is given"
        payload = challenger.open(claim.first(header, bits))
    position = DisputeRecord(claim, header, payload, (), bits).start
    moves: list[Move] = []
    while True:
        attempt: Move | None = None
        try:
            player = asserter if position.turn is Side.ASSERTER else challenger
            attempt = player.move(position)
            after = apply(position, attempt)
        except (NothingToDispute, IllegalMove, WrongInclusionProof) as stuck:
            record = DisputeRecord(claim, header, payload, tuple(moves), bits)
            return Match(record, position.turn.other, position, False, attempt, str(stuck))
        moves.append(attempt)
        if isinstance(after, DisputeEnded):
            record = DisputeRecord(claim, header, payload, tuple(moves), bits)
            return Match(record, after.winner, position, True, None, after.detail)
        position = after


class KnownTraces:
    """The traces of all steps of these executions; with the leaf hashes of their outputs if ``with_leaves``."""

    def __init__(self, *published: SegmentTrace, with_leaves: bool) -> None:
        self._rows: dict[bytes, Sequence[bytes]] = {}
        self._leaves: dict[bytes, bytes] = {}
        for trace in published:
            for step in range(trace.first_step, trace.first_step + trace.steps):
                row = list(trace.node_roots(step))
                self._rows[tree(row)] = row
                if with_leaves:
                    self._leaves[tree(row)] = b"".join(published_leaves(trace, step))

    def row(self, trace: bytes, nodes: int) -> Sequence[bytes] | None:
        """As `PublishedTraces.row`."""
        return self._rows.get(trace)

    def leaves(self, trace: bytes, program: StepProgram, number: int, row: Sequence[bytes]) -> bytes | None:
        """As `PublishedTraces.leaves`."""
        place = leaves_place(program, number)
        joined = self._leaves.get(trace, b"")[place.start : place.stop]
        return leaves_of(joined, program.nodes[number].type, row[number]) if place else None
