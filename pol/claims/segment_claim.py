"""Claims about one segment, as the contracts hold them: a replay, and reruns of it (docs/spec/verdict.md)."""

from __future__ import annotations

from dataclasses import dataclass

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
