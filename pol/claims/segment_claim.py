"""The claim about a segment: a replay's roots and distances (docs/spec/verdict.md)."""

from __future__ import annotations

from dataclasses import dataclass

Three = tuple[int, int, int]
"""A number for each component: parameters, buffers, optimizer state."""


@dataclass(frozen=True)
class Claim:
    """What a verifier posts about a drawn segment; the contract's struct ``Claim``."""

    segment: int
    start: bytes
    end: bytes
    replay: bytes
    distances: Three
    references: Three
