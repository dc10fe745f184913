"""How many segments have to be drawn (docs/guides/sample.md)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, perm
from typing import Any

from pol.claims.segment_draw import MAX_DRAWS
from pol.errors import ProtocolError


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
    segments: int, cheat_fraction: Fraction | float = Fraction(1, 20), confidence: Fraction | float = Fraction(99, 100)
) -> Sample:
    """How many segments have to be drawn to find a share of cheated ones with a confidence, exactly.

    The odds are hypergeometric: segments are drawn without replacement. Floats are taken as they are printed.

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


def detection_probability(segments: int, cheated: int, draws: int) -> Fraction:
    """The probability that a draw of ``draws`` distinct segments hits at least one of the ``cheated`` ones, exactly."""
    if not (0 <= cheated <= segments and 0 <= draws <= segments):
        raise ProtocolError(f"no such draw: {draws} of {segments} segments, {cheated} of them cheated")
    missed, all_draws = _missing(segments, cheated, draws)
    return 1 - Fraction(missed, all_draws)


def draws_for(segments: int, cheated: int, probability: Fraction, most: int = MAX_DRAWS) -> int:
    """The fewest draws that detect ``cheated`` bad segments with at least ``probability``; 0 if none is asked for."""
    draws = required_draws(segments, cheated, probability)
    if draws is not None and draws <= most:
        return draws
    raise ProtocolError(
        f"{min(segments, most)} draws of {segments} segments can't find {cheated} bad ones with probability "
        f"{probability}"
    )


def required_draws(segments: int, cheated: int, probability: Fraction) -> int | None:
    """As `draws_for` without a limit; None if not even replaying every segment is enough.

    Exact for any number of segments: hypergeometric, as segments are drawn without replacement.
    """
    if not 0 <= cheated <= segments:
        raise ProtocolError(f"{cheated} of {segments} segments can't be cheated")
    if probability <= 0:
        return 0
    if probability > 1 or cheated == 0:
        return None
    most = segments - cheated + 1  # finds one for certain
    if probability == 1:
        return most

    def enough(draws: int) -> bool:
        missed, all_draws = _missing(segments, cheated, draws)
        return (all_draws - missed) * probability.denominator >= probability.numerator * all_draws

    bound = 1
    while bound < most and not enough(bound):
        bound *= 2
    return bisect_left(range(min(bound, most)), True, key=enough)


def cheated_segments(segments: int, fraction: Fraction) -> int:
    """The least number of bad segments if that fraction of them is bad."""
    if segments < 1 or not 0 < fraction <= 1:
        raise ProtocolError(f"no cheating: {fraction} of {segments} segments; name a fraction above 0 and up to 1")
    return ceil(fraction * segments)


def detectable_segments(segments: int, draws: int, probability: Fraction) -> int | None:
    """The fewest bad segments that ``draws`` draws find with ``probability``; None if they can't find any so surely."""
    bad = range(segments + 1)
    found = bisect_left(bad, probability, key=lambda cheated: detection_probability(segments, cheated, draws))
    return found if found in bad else None


def _missing(segments: int, cheated: int, draws: int) -> tuple[int, int]:
    """The number of draws that hit no bad segment, and of all draws: C(n - c, d) and C(n, d), up to a common factor.

    The counts of bad segments and of draws may be exchanged: the hypergeometric distribution is symmetric in them.
    """
    fewer, more = sorted((cheated, draws))
    return perm(segments - more, fewer), perm(segments, fewer)
