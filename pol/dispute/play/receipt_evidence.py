"""Receipts of execution from a party's own trace, and its opening against somebody else's."""

from __future__ import annotations

from pol.commitments.merkle import branch
from pol.commitments.receipt import receipt_nodes, receipt_of
from pol.dispute.disputed_claim import ReceiptClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import opened_by
from pol.dispute.position import HASH_BITS
from pol.dispute.receipt_start import receipt_position


def trace_receipt(trace: SegmentTrace, step: int, seed: bytes) -> bytes:
    """The receipt of a step of a trace."""
    roots = trace.node_roots(step)
    return receipt_of([roots[number] for number in receipt_nodes(seed, len(roots))])


def open_receipt(trace: SegmentTrace, claim: ReceiptClaim, bits: int = HASH_BITS) -> bytes:
    """The payload with which a challenger begins a dispute about a receipt: its own trace of the step."""
    roots = trace.node_roots(claim.step)
    drawn = receipt_nodes(claim.seed, len(roots))
    shown = b"".join(roots[number] + b"".join(branch(roots, number)) for number in drawn)
    return shown + opened_by(trace, receipt_position(claim, trace.commitment.header, bits))
