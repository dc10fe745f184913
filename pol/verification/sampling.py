"""Which segments are replayed: drawn by a public beacon after the commitment (docs/spec/verdict.md, "Draw")."""

from fractions import Fraction
from math import comb

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError

MAX_DRAWS = 32
"""Of the contract. Whoever verifies off chain may draw more."""


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
    return 1 - Fraction(comb(segments - cheated, draws), comb(segments, draws))


def draws_for(segments: int, cheated: int, probability: Fraction, most: int = MAX_DRAWS) -> int:
    """The fewest draws that detect ``cheated`` bad segments with at least ``probability``; 0 if none is asked for.

    Raises:
        ProtocolError: not even replaying every segment reaches it, or more than ``most`` draws would be needed.
    """
    for draws in range(min(segments, most) + 1):
        if detection_probability(segments, cheated, draws) >= probability:
            return draws
    raise ProtocolError(
        f"{min(segments, most)} draws of {segments} segments can't find {cheated} bad ones so surely ({probability})"
    )
