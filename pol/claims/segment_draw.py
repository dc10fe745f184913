"""The draw of the segments to replay, by a public beacon after the commitment (docs/spec/verdict.md, "Draw")."""

from bisect import bisect_left
from fractions import Fraction
from math import ceil, perm

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError

MAX_DRAWS = 32
"""The contract's limit. Verification off chain may draw more."""


def draw(seed: bytes, segments: int, draws: int, most: int = MAX_DRAWS) -> list[int]:
    """The ``draws`` distinct segments of ``segments`` that ``seed`` (32 bytes) selects, in the order drawn.

    Raises:
        ProtocolError: a seed of another length, or a number of draws that isn't 1 .. min(segments, most).
    """
    if len(seed) != 32:
        raise ProtocolError(f"a beacon seed has 32 bytes, not {len(seed)}")
    if not 1 <= draws <= min(segments, most):
        raise ProtocolError(f"can't draw {draws} of {segments} segments: 1 to {min(segments, most)} are possible")
    drawn: dict[int, None] = {}
    j = 0
    while len(drawn) < draws:
        candidate = int.from_bytes(keccak256(seed + j.to_bytes(4, "big")), "big") % segments
        drawn[candidate] = None
        j += 1
    return list(drawn)


def detection_probability(segments: int, cheated: int, draws: int) -> Fraction:
    """The probability that a draw of ``draws`` distinct segments hits at least one of the ``cheated`` ones, exactly.

    Raises:
        ProtocolError: impossible counts.
    """
    if not (0 <= cheated <= segments and 0 <= draws <= segments):
        raise ProtocolError(f"no such draw: {draws} of {segments} segments, {cheated} of them cheated")
    missed, all_draws = _missing(segments, cheated, draws)
    return 1 - Fraction(missed, all_draws)


def draws_for(segments: int, cheated: int, probability: Fraction, most: int = MAX_DRAWS) -> int:
    """The fewest draws that detect ``cheated`` bad segments with at least ``probability``; 0 if none is asked for.

    Raises:
        ProtocolError: not even replaying every segment reaches it, or more than ``most`` draws would be needed.
    """
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

    Raises:
        ProtocolError: impossible counts.
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
    """The least number of bad segments if that fraction of them is bad.

    Raises:
        ProtocolError: the fraction isn't in (0, 1], or there are no segments.
    """
    if segments < 1 or not 0 < fraction <= 1:
        raise ProtocolError(f"no cheating: {fraction} of {segments} segments; name a fraction above 0 and up to 1")
    return ceil(fraction * segments)


def detectable_segments(segments: int, draws: int, probability: Fraction) -> int | None:
    """The fewest bad segments that ``draws`` draws find with ``probability``; None if they can't find any so surely.

    Raises:
        ProtocolError: impossible counts.
    """
    bad = range(segments + 1)
    found = bisect_left(bad, probability, key=lambda cheated: detection_probability(segments, cheated, draws))
    return found if found in bad else None


def _missing(segments: int, cheated: int, draws: int) -> tuple[int, int]:
    """The number of draws that hit no bad segment, and of all draws: C(n - c, d) and C(n, d), up to a common factor.

    The counts of bad segments and of draws may be exchanged: the hypergeometric distribution is symmetric in them.
    """
    fewer, more = sorted((cheated, draws))
    return perm(segments - more, fewer), perm(segments, fewer)
