"""The four figures of a trainer of many workers: cost of proofs, bytes sent, what is learned, lies that are found."""

from __future__ import annotations

from lab.benchmarks.figure import Figure

OVERHEAD, BYTES, LOSS, FOUND = "overhead", "bytes_vs_ddp", "loss_vs_plain", "lie_found_when_drawn"


def system_figures(
    overhead: float, sent: float, ddp: float, loss: float, plain: float, found: float
) -> dict[str, Figure]:
    """The four figures that each system has: a share of a round, bytes of a worker and a round, losses, a share."""
    return {
        OVERHEAD: Figure(overhead, "of the processor time of a round"),
        BYTES: Figure(sent, "bytes of a worker and a round", "all-reduced float32 gradients", sent / ddp),
        LOSS: Figure(loss, "nats, text not seen", "plain AdamW on the same rows", loss / plain),
        FOUND: Figure(found, "of the liars whose claims are replayed"),
    }
