"""Redundant replays: how many keys do each job, what a comparison shows, and how often lies pass (guides/engines.md).

As in BOINC each job is done by several keys, and results have to be equal. Unlike there the majority doesn't decide:
whoever verifies replays what differs, so a lie of most keys is still a lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from pol.errors import ProtocolError
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.engines.replay_result_document import MARKS, are_equal, are_same_replay
from pol.verification.verdict.verdict import Outcome

MAX_COPIES = 16


@dataclass(frozen=True)
class Redundancy:
    """``copies`` keys do each job; with probability ``audited`` the verifier repeats it, if all of them agree.

    Raises ProtocolError for impossible numbers.
    """

    copies: int = 2
    audited: Fraction = Fraction(1, 20)

    def __post_init__(self) -> None:
        if not 1 <= self.copies <= MAX_COPIES or not 0 <= self.audited <= 1:
            raise ProtocolError(
                f"{self.copies} copies and audits of {self.audited} are impossible: name 1 to {MAX_COPIES} copies, and "
                "a share from 0 to 1"
            )

    def is_audited(self, entropy: bytes) -> bool:
        """Whether 8 fresh bytes draw a job whose keys agree."""
        return int.from_bytes(entropy, "big") * self.audited.denominator < self.audited.numerator << 64


def needs_referee(answers: Mapping[bytes, ExaminedSegment]) -> bool:
    """Whether the answers to one job have to be checked by a replay of one's own.

    They do if they differ, and if they speak against the solver: nobody is rejected on a stranger's word.
    """
    first, *others = answers.values()
    accuses = first.verdict.outcome is not Outcome.ACCEPTED or bool(MARKS & set(first.verdict.reasons))
    return accuses or not all(are_equal(first, other) for other in others)


def liars(answers: Mapping[bytes, ExaminedSegment], own: ExaminedSegment) -> list[bytes]:
    """The keys whose answers aren't those of one's own replay; none if that couldn't look."""
    if own.verdict.outcome is Outcome.INCONCLUSIVE:
        return []
    return [key for key, answer in answers.items() if not are_same_replay(answer, own)]


def escape_probability(keys: int, colluding: int, redundancy: Redundancy) -> Fraction:
    """The probability that a lie about one segment passes if ``colluding`` of the keys agree on it.

    The keys of each segment are drawn without replacement, and apart from those of other segments.
    """
    if not 0 <= colluding <= keys or redundancy.copies > keys:
        raise ProtocolError(f"no such draw: {redundancy.copies} of {keys} keys, {colluding} of them colluding")
    return Fraction(comb(colluding, redundancy.copies), comb(keys, redundancy.copies)) * (1 - redundancy.audited)


def detection_rate(segments: int, false: int, draws: int, escape: Fraction) -> Fraction:
    """The probability that a training with ``false`` segments is rejected if ``draws`` of them are replayed.

    A false one that is drawn passes with probability ``escape``; 0 is a replay of one's own
    (`pol.claims.sample_size.detection_probability`).
    """
    if not (0 <= false <= segments and 0 <= draws <= segments):
        raise ProtocolError(f"no such draw: {draws} of {segments} segments, {false} of them false")
    hits = range(max(0, draws + false - segments), min(false, draws) + 1)
    missed = sum(comb(false, hit) * comb(segments - false, draws - hit) * escape**hit for hit in hits)
    return 1 - missed / Fraction(comb(segments, draws))
