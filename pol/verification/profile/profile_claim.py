"""A profile's claim on chain: portions, reruns, witnesses, and the thresholds that follow (docs/spec/profile.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import Rerun, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import ProtocolError
from pol.graph.step_program import Component
from pol.verification.profile.profile_threshold import ratio, require_threshold, threshold

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

    Raises:
        ProtocolError: not as many reruns for each portion, no such witness, or a margin that doesn't fit.
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
