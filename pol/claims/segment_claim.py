"""Claims about one segment, as the contracts hold them: a replay, and reruns of it (docs/spec/verdict.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pol.commitments.keccak import keccak256

Three = tuple[int, int, int]
"""A number for each component: parameters, buffers, optimizer state."""


@dataclass(frozen=True)
class SegmentClaim:
    """The roots and distances that a verifier posts about a drawn segment; the contract's struct ``SegmentClaim``."""

    segment: int
    start: bytes
    end: bytes
    replay: bytes
    distances: Three
    references: Three
    before: bytes = bytes(32)
    """In exact mode the state root before the last step; else zero."""
    receipt: bytes = bytes(32)
    """In exact mode the receipt of that step (`pol.commitments.receipt`); else zero."""

    @property
    def hidden(self) -> bytes:
        """The root that nobody knows without a replay, in which an error can be planted: the receipt, if there is one.

        In exact mode ends of replays are equal to what the solver has published.
        """
        return self.receipt if any(self.receipt) else self.replay

    def with_hidden(self, root: bytes) -> SegmentClaim:
        """The claim with another `hidden` root."""
        return replace(self, receipt=root) if any(self.receipt) else replace(self, replay=root)


@dataclass(frozen=True)
class Rerun:
    """The same segment in another order: the root of its end, and its distance; the contract's struct ``Rerun``."""

    end: bytes
    distances: Three

    @property
    def leaf(self) -> bytes:
        """The entry of the rerun root."""
        return keccak256(self.end + b"".join(distance.to_bytes(32, "big") for distance in self.distances))


@dataclass(frozen=True)
class SecondLook:
    """Public reruns of one segment, by index; the contract's struct ``Look``.

    ``distances`` of a rerun are those of its end from the claim's ``replay``.
    """

    segment: int
    reruns: tuple[Rerun, ...]
