"""A profile's claim on chain: portions, reruns, witnesses, and the thresholds that follow (docs/spec/profile.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pol.claims.acceptance_rule import EXACT, THRESHOLD_BITS, travelled
from pol.claims.distance import SATURATION, UNEQUAL
from pol.claims.segment_claim import Rerun, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.step_program import Component

FLOOR = 1 << (THRESHOLD_BITS - 40)
"""The least threshold: 2^-20 of the distance travelled, which is a few roundings of a binary32."""
MOST = 1 << (THRESHOLD_BITS - 12)
"""The greatest one: 2^-6 of the distance travelled, as in second looks. A cheat goes anywhere within more than that."""


def ratio(distance: int, reference: int) -> int | None:
    """``distance / reference * 2^64``, rounded up; both are squared. None if it doesn't exist (`require_ratio`)."""
    if distance >= UNEQUAL or reference >= SATURATION:
        return None
    if distance == 0:
        return 0
    if travelled(reference) == 0:
        return None
    return -(-(distance << THRESHOLD_BITS) // travelled(reference))


def require_ratio(distance: int, reference: int) -> int:
    """The `ratio`.

    Raises:
        UnsupportedError: there is none: something isn't finite, or moves in the rerun that the canonical run leaves in
            place.
    """
    found = ratio(distance, reference)
    if found is not None:
        return found
    if distance >= SATURATION or reference >= SATURATION:
        raise UnsupportedError(
            "a profiled segment has state that isn't finite or exceeds 2^23: it has no distance (docs/spec/verdict.md),"
            " so no solver could be accepted"
        )
    if distance >= UNEQUAL:
        raise UnsupportedError("honest runs of this task differ in an integer, so no solver could be accepted")
    raise UnsupportedError("a profiled segment doesn't move, but a rerun of it does; use a longer interval")


def threshold(found: int, margin: int) -> int | None:
    """The threshold for a ratio (of squares): ``ratio * margin^2``, at least `FLOOR`; None above `MOST`."""
    result = max(found * margin * margin, FLOOR)
    return result if result <= MOST else None


def require_threshold(distance: int, reference: int, margin: int) -> int:
    """The `threshold` that follows from a rerun.

    Raises:
        UnsupportedError: it has no ratio, or diverges too far: by more than 2^-6 / margin of the way travelled.
    """
    result = threshold(require_ratio(distance, reference), margin)
    if result is None:
        raise UnsupportedError(
            f"honest runs of this task diverge by {math.sqrt(require_ratio(distance, reference) / 2**64):.2g} of the "
            f"way travelled, and {margin} times that is more than the 1/64 that thresholds may allow: a cheat could go "
            "anywhere within. Use exact mode; or weigh each tensor by its own noise (`pol profile --scale`); or remove "
            "the source of noise: a bias before a normalization, or on the keys of attention, has a gradient of zero "
            "but for rounding, and Adam takes full steps by such noise (use bias=False there); else take a shorter "
            "checkpoint interval or a lower margin"
        )
    return result


# Profiles cover early segments and reduction orders only. Measured on the digits example: late segments diverge four
# times as far as early ones, torch on other instruction sets as far as reorderings, and the mildest cheats (float16
# weights, 1 % off the learning rate) a thousand times as far. 64 lies in the middle.
MARGIN = 64
MAX_MARGIN = (1 << 16) - 1
NO_RERUNS = bytes(32)


@dataclass(frozen=True)
class Portion:
    """Canonical execution of one segment: the root of its end, and the way there; the contract's struct ``Portion``."""

    end: bytes
    references: Three


@dataclass(frozen=True)
class ProfileClaim:
    """All that the poster of a profile answers for. ``reruns`` begin with those of portion 0; exact mode has none.

    ``witnesses`` are indices of reruns, one for each component. This class doesn't check that they are the right ones:
    `pol.verification.profile.profile_challenge.find_false_parts` does.
    """

    margin: int
    portions: tuple[Portion, ...]
    reruns: tuple[Rerun, ...]
    witnesses: Three

    def __post_init__(self) -> None:
        if self.margin == 0:
            if self.portions or self.reruns or self.witnesses != (0, 0, 0):
                raise ProtocolError("in exact mode (margin 0) nothing is profiled, but the profile has portions")
            return
        if not 0 < self.margin <= MAX_MARGIN:
            raise ProtocolError(f"the margin of a profile is 0 (exact mode) to {MAX_MARGIN}, not {self.margin}")
        if not self.portions or not self.reruns or len(self.reruns) % len(self.portions):
            raise ProtocolError(
                f"a profile needs as many reruns for each portion, at least one; this one has {len(self.portions)} "
                f"portions and {len(self.reruns)} reruns"
            )
        if not all(0 <= index < len(self.reruns) for index in self.witnesses):
            raise ProtocolError(f"of {len(self.reruns)} reruns there are no witnesses {list(self.witnesses)}")

    @property
    def rerun_count(self) -> int:
        """The number of reruns of each portion."""
        return len(self.reruns) // len(self.portions) if self.portions else 0

    @property
    def log(self) -> CheckpointLog:
        """The log over the reruns, for inclusion paths."""
        return CheckpointLog([rerun.leaf for rerun in self.reruns])

    @property
    def root(self) -> bytes:
        """The rerun root; zero in exact mode."""
        return self.log.root() if self.reruns else NO_RERUNS

    @property
    def thresholds(self) -> Three:
        """The thresholds that follow from the witnesses, as the chain computes them.

        Raises:
            UnsupportedError: a witness has no ratio, or a threshold would exceed 2^-6 of the way: nobody can post such
                a profile.
        """
        if self.margin == 0:
            return EXACT
        parameter, buffer, optimizer = (
            require_threshold(*self.sums(component, index), self.margin)
            for component, index in zip(Component, self.witnesses, strict=True)
        )
        return parameter, buffer, optimizer

    def sums(self, component: Component, index: int) -> tuple[int, int]:
        """Distance and reference of one component of a rerun."""
        place = component - 1
        portion = self.portions[index // self.rerun_count]
        return self.reruns[index].distances[place], portion.references[place]

    def ratios(self, component: Component) -> list[int | None]:
        """The ratio of every rerun, by index; None where there is none."""
        return [ratio(*self.sums(component, index)) for index in range(len(self.reruns))]

    def demanded(self, component: Component, index: int) -> int | None:
        """The threshold that follows from one rerun; None if there is none."""
        found = ratio(*self.sums(component, index))
        return None if found is None else threshold(found, self.margin)


def claim(margin: int, portions: Sequence[Portion], reruns: Sequence[Rerun]) -> ProfileClaim:
    """The claim over what was measured, with the witnesses that it has to name."""
    bare = ProfileClaim(margin, tuple(portions), tuple(reruns), (0, 0, 0))
    if margin == 0:
        return bare
    parameter, buffer, optimizer = (greatest(bare.ratios(component)) for component in Component)
    return ProfileClaim(margin, bare.portions, bare.reruns, (parameter, buffer, optimizer))


def greatest(ratios: Sequence[int | None]) -> int:
    """The least index of a greatest ratio; a rerun that has none exceeds all others."""
    keys = [(found is None, found or 0) for found in ratios]
    return keys.index(max(keys))
