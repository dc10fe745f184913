"""The draw of the segments to replay, by a public beacon after the commitment (docs/spec/verdict.md, "Draw")."""

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
