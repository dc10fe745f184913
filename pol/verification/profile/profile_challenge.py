"""False parts of a posted profile, found by measuring it again (docs/spec/profile.md, "Challenges")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pol.errors import ProtocolError
from pol.graph.step_program import Component
from pol.verification.profile.profile_claim import ProfileClaim, greatest


class ProfileChargeKind(IntEnum):
    """The kind of a false part, most basic first; zero means nothing."""

    PORTION = 1
    RERUN = 2
    DISTANCE = 3
    REFERENCE = 4
    UNDERSTATED = 5


@dataclass(frozen=True)
class ProfileCharge:
    """One false part. ``index`` is that of a portion for PORTION and REFERENCE, else that of a rerun (k * R + j)."""

    kind: ProfileChargeKind
    index: int
    component: Component | None = None


def find_false_parts(own: ProfileClaim, posted: ProfileClaim) -> list[ProfileCharge]:
    """All false parts of ``posted`` that can be challenged now, most basic first; none if the thresholds are right.

    ``own`` is measured on the same terms. After a false portion nothing is listed that begins or is measured at its
    end: the state behind a false root doesn't exist. UNDERSTATED needs no dispute and comes last; another witness with
    the same threshold is no ground for a challenge.
    """
    shapes = [(p.margin, len(p.portions), p.rerun_count) for p in (own, posted)]
    if shapes[0] != shapes[1]:
        raise ProtocolError(
            f"profiles on different terms (margin, portions, reruns of each): {shapes[0]} and {shapes[1]}"
        )
    kinds = ProfileChargeKind
    found: list[ProfileCharge] = []
    for k, (mine, theirs) in enumerate(zip(own.portions, posted.portions, strict=True)):
        stands = mine.end == theirs.end
        if not stands:
            found.append(ProfileCharge(kinds.PORTION, k))
        for index in range(k * own.rerun_count, (k + 1) * own.rerun_count):
            rerun, other = own.reruns[index], posted.reruns[index]
            if not any(other.end):
                continue
            if rerun.end != other.end:
                found.append(ProfileCharge(kinds.RERUN, index))
            elif stands:
                wrong = _differing(rerun.distances, other.distances)
                found += [ProfileCharge(kinds.DISTANCE, index, component) for component in wrong]
        if not stands:
            break
        wrong = _differing(mine.references, theirs.references)
        found += [ProfileCharge(kinds.REFERENCE, k, component) for component in wrong]
    return sorted([*found, *_understated(posted)], key=lambda charge: (charge.kind, charge.index))


def _understated(posted: ProfileClaim) -> list[ProfileCharge]:
    """For each component, the rerun that demands the greatest threshold, if the posted one is below it."""
    if not posted.reruns:
        return []
    # A zero end is no state: no dispute could be about it.
    zeros = [index for index, rerun in enumerate(posted.reruns) if not any(rerun.end)]
    found = [ProfileCharge(ProfileChargeKind.UNDERSTATED, index, Component.PARAMETER) for index in zeros]
    for component, witness in zip(Component, posted.witnesses, strict=True):
        worst = greatest(posted.ratios(component))
        demanded, stated = posted.demanded(component, worst), posted.demanded(component, witness)
        if demanded is None or stated is None or demanded > stated:
            found.append(ProfileCharge(ProfileChargeKind.UNDERSTATED, worst, component))
    return found


def _differing(own: tuple[int, int, int], posted: tuple[int, int, int]) -> list[Component]:
    return [component for component, a, b in zip(Component, own, posted, strict=True) if a != b]
