"""The first position of a dispute about a receipt of execution (docs/spec/dispute.md#receipts)."""

from __future__ import annotations

from pol.commitments.merkle import climb, depth, tree
from pol.commitments.receipt import receipt_nodes, receipt_of
from pol.dispute.agreed_facts import AtStep, Replayed
from pol.dispute.disputed_claim import ProgramHeader, ReceiptClaim
from pol.dispute.encoding.packed_bytes import PackedReader
from pol.dispute.moves import IllegalMove
from pol.dispute.openings import WrongInclusionProof
from pol.dispute.position import HASH_BITS, Level, Position, Side
from pol.dispute.rules import lay_open

NOTHING = bytes(32)
"""Stands for the state after the step, which is no part of the claim."""


def receipt_position(claim: ReceiptClaim, header: bytes, bits: int = HASH_BITS) -> Position:
    """The position at which the challenger opens its trace of the step."""
    counts = ProgramHeader.decode(header, claim.program)
    facts = AtStep(Replayed(claim.id, claim.program, claim.constants), NOTHING, claim.before, claim.step)
    height = depth(counts.nodes)
    return Position(Level.NODES, Side.CHALLENGER, facts, height=height, count=counts.nodes, bits=bits)


def start_receipt(claim: ReceiptClaim, header: bytes, payload: bytes, bits: int = HASH_BITS) -> Position:
    """The position after the challenger's opening.

    Args:
        claim: what is disputed.
        header: of its program.
        payload: the drawn roots with their branches, and then the children of the challenger's trace.
        bits: levels of a tree that one move opens.

    Raises:
        IllegalMove: bytes are missing, or the trace has the receipt that was claimed.
        WrongInclusionProof: a drawn root doesn't stand in the trace that is opened.
    """
    position, reader = receipt_position(claim, header, bits), PackedReader(payload)
    roots, above = [], set[bytes]()
    for number in receipt_nodes(claim.seed, position.count):
        (root,) = reader.hashes(1)
        roots.append(root)
        above.add(climb(root, number, reader.hashes(depth(position.count))))
    # A trace that agrees with the claim disputes nothing.
    if receipt_of(roots) == claim.receipt:
        raise IllegalMove("the trace has the receipt that was claimed; there is nothing to dispute about it")
    opened = lay_open(position, reader.rest(), b"")
    if above != {tree(opened.row)}:
        raise WrongInclusionProof("a drawn root doesn't stand in the trace that lies open")
    return opened
