"""How many segments have to be drawn (docs/guides/sample.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pol.claims.segment_draw import (
    MAX_DRAWS,
    cheated_segments,
    detectable_segments,
    detection_probability,
    required_draws,
)


@dataclass(frozen=True)
class Sample:
    """How many draws find a share of cheated segments, and what the chain's limit finds."""

    segments: int
    cheat_fraction: Fraction
    cheated: int
    """The least number of segments that is that share."""
    confidence: Fraction
    draws: int
    detection_probability: Fraction
    reexecution: Fraction
    """Share of the training that is replayed."""
    chain_draws: int
    """What a task on chain can have drawn."""
    chain_enough: bool
    chain_detection_probability: Fraction
    chain_detectable: int | None
    """The fewest cheated segments that they find with the confidence."""

    def as_json(self) -> dict[str, Any]:
        """Numbers as numbers, shares rounded to the nearest double."""
        return {k: float(value) if isinstance(value, Fraction) else value for k, value in vars(self).items()}


def sample(
    segments: int, cheat_fraction: Fraction = Fraction(1, 20), confidence: Fraction = Fraction(99, 100)
) -> Sample:
    """How many segments have to be drawn to find a share of cheated ones with a confidence, exactly.

    The odds are hypergeometric: segments are drawn without replacement.

    Raises:
        ProtocolError: impossible counts.
    """
    cheat_fraction, confidence = Fraction(str(cheat_fraction)), Fraction(str(confidence))
    cheated = cheated_segments(segments, cheat_fraction)
    draws = required_draws(segments, cheated, confidence) or 0
    chain = min(segments, MAX_DRAWS)
    return Sample(
        segments=segments,
        cheat_fraction=cheat_fraction,
        cheated=cheated,
        confidence=confidence,
        draws=draws,
        detection_probability=detection_probability(segments, cheated, draws),
        reexecution=Fraction(draws, segments),
        chain_draws=chain,
        chain_enough=draws <= chain,
        chain_detection_probability=detection_probability(segments, cheated, chain),
        chain_detectable=detectable_segments(segments, chain, confidence),
    )
