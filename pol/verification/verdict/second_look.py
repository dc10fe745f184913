"""A second look: a segment that the thresholds reject is judged by reruns of itself (docs/spec/verdict.md).

Thresholds come from the first segments. Honest runs of later segments may diverge further: another machine takes
another branch, or the training hardly moves. Reruns from the solver's own start show how much honest runs of this
segment diverge; they add up in another order and perturb numbers by the error of the least accurate kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from math import sqrt

from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import EXACT, is_accepted, relative_distance, relative_limit, travelled
from pol.claims.distance import SATURATION, UNEQUAL, component_distances
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim, Three
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.graph.state_perturbation import perturb
from pol.graph.step_program import Component, StepProgram
from pol.graph.sum_reordering import reorder
from pol.training.task.task_document import LoadedTask
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.rerun_span import BUCKETS, Differences, is_explained, outside_shares
from pol.verification.verdict.state_sketch import differences
from pol.verification.verdict.verdict import Outcome, Reason, Verdict

LOOKS = 16
"""Reruns of a segment. Eight met every branch that honest runs took (docs/adr/0021); each may miss one by chance."""
MAX_LOOKS = 64
LOOK_MARGIN = 2
"""A rerun that takes the solver's branch diverges as far as the solver: a factor of 1.00 was enough."""
MAX_LOOK_MARGIN = (1 << 16) - 1
CAP_BITS = 12
"""The cap for unstable segments: 2^-6 of the distance travelled. Distances are squared, hence 12 bits."""


class SecondLookChallenge(IntEnum):
    """The false part of a second look; the numbers continue those of a claim's challenges."""

    RERUN = 5
    DISTANCE = 6


def look_program(program: StepProgram, index: int) -> StepProgram:
    """The program of a rerun."""
    return reorder(perturb(program, index), index)


def look_programs(program: StepProgram, count: int = LOOKS) -> list[StepProgram]:
    """The programs of all reruns; `Terms.reruns` commits to their hashes after those of the profile."""
    _require_count(count)
    return [look_program(program, index) for index in range(count)]


def needs_second_look(claim: SegmentClaim, thresholds: Three) -> bool:
    """Whether the thresholds reject a claim that a second look may accept."""
    if thresholds == EXACT or not any(claim.start) or not any(claim.end):
        return False
    # A rejected component with a distance of 0 has no reference.
    rows = zip(claim.distances, claim.references, thresholds, strict=True)
    rejected = [(distance, reference) for distance, reference, t in rows if not is_accepted(distance, reference, t)]
    return bool(rejected) and all(0 < distance <= _cap(distance, reference) for distance, reference in rejected)


def measure_second_look(
    task: LoadedTask,
    executor: ExecutorFactory,
    start: Sequence[Words],
    replayed: Sequence[Words],
    segment: int,
    programs: Sequence[StepProgram],
    on_rerun: Callable[[Sequence[Words]], None] = lambda end: None,
) -> SecondLook:
    """Run a segment again by each of ``programs``; ``start`` is the solver's, ``replayed`` its canonical end.

    ``on_rerun`` receives the end of each rerun.
    """
    program, interval = task.program, task.document.interval
    types = [slot.type for slot in program.slots]
    reruns = []
    for other in programs:
        end = replay_end(other, executor(other, task.constants), start, segment * interval, interval)
        on_rerun(end)
        reruns.append(Rerun(state_root(types, end), component_distances(program, replayed, end)))
    return SecondLook(segment, tuple(reruns))


def allowances(claim: SegmentClaim, found: SecondLook, margin: int = LOOK_MARGIN) -> Three:
    """The greatest squared distance of each component that a second look excuses.

    ``margin^2`` times the furthest rerun's, at most 2^-`CAP_BITS` of the way; 0 if a rerun has no distance.
    """
    parameter, buffer, optimizer = (_allowance(claim, found, c - 1, margin) for c in Component)
    return parameter, buffer, optimizer


def decide_with_second_look(
    claim: SegmentClaim, thresholds: Three, found: SecondLook, count: int = LOOKS, margin: int = LOOK_MARGIN
) -> Verdict:
    """The verdict on a claim with its second look; the contract decides the same."""
    _require_look(claim, thresholds, found, count, margin)
    details, allowed = [], allowances(claim, found, margin)
    for component in Component:
        c = component - 1
        distance, reference = claim.distances[c], claim.references[c]
        if is_accepted(distance, reference, thresholds[c]) or distance <= allowed[c]:
            continue
        details.append(
            f"{component.name.lower()}: {relative_distance(distance, reference):.3g} of the distance travelled, limit "
            f"{relative_limit(thresholds[c]):.3g}, by a second look {relative_distance(allowed[c], reference):.3g}"
        )
    if details:
        reasons = (Reason.DISTANCE_ABOVE_THRESHOLD,)
        return Verdict(claim.segment, Outcome.REJECTED, reasons, "; ".join(details), claim, found)
    detail = f"segment {claim.segment} is beyond the threshold, but no further than {count} reruns of it explain"
    return Verdict(claim.segment, Outcome.ACCEPTED, (Reason.WITHIN_SECOND_LOOK,), detail, claim, found)


def compare_second_looks(
    own: SecondLook, posted: SecondLook
) -> list[tuple[SecondLookChallenge, int, Component | None]]:
    """The parts of a posted second look that differ from one's own: kind, index of the rerun, and component."""
    if (own.segment, len(own.reruns)) != (posted.segment, len(posted.reruns)):
        raise ProtocolError("can't compare second looks at different segments, or with different numbers of reruns")
    found: list[tuple[SecondLookChallenge, int, Component | None]] = []
    for index, (mine, other) in enumerate(zip(own.reruns, posted.reruns, strict=True)):
        if mine.end != other.end:
            # Distances to a false end mean nothing.
            found.append((SecondLookChallenge.RERUN, index, None))
            continue
        wrong = (c for c in Component if mine.distances[c - 1] != other.distances[c - 1])
        found += [(SecondLookChallenge.DISTANCE, index, component) for component in wrong]
    return found


def second_look_shares(claim: SegmentClaim, found: SecondLook, margin: int = LOOK_MARGIN) -> list[float]:
    """Distances in units of what the second look allows, unsquared, for people; infinite where it allows nothing."""
    pairs = zip(claim.distances, allowances(claim, found, margin), strict=True)
    return [0.0 if d == 0 else sqrt(d / allowed) if allowed else float("inf") for d, allowed in pairs]


@dataclass(frozen=True)
class SecondLooker:
    """The second look of one task: a `segment_verification.SecondLookCallback`.

    Verdicts that a second look can't change are returned as they are. ``seed``, which the solver couldn't know: what
    the look accepts is marked if it doesn't lie in the span of the reruns (`pol.verification.verdict.rerun_span`);
    empty: nothing is compared.
    """

    task: LoadedTask
    executor: ExecutorFactory
    thresholds: Three
    count: int = LOOKS
    margin: int = LOOK_MARGIN
    seed: bytes = b""

    @cached_property
    def programs(self) -> list[StepProgram]:
        """The programs of the reruns, made when the first segment needs them."""
        return look_programs(self.task.program, self.count)

    def __call__(self, verdict: Verdict, start: Sequence[Words], end: Sequence[Words]) -> Verdict:
        """The verdict on the segment from ``start`` to ``end``, by a second look if one is due."""
        claim = verdict.claim
        if claim is None or self.count == 0 or not needs_second_look(claim, self.thresholds):
            return verdict
        program, interval = self.task.program, self.task.document.interval
        canonical = self.executor(program, self.task.constants)
        replayed = replay_end(program, canonical, start, claim.segment * interval, interval)
        spans: list[Differences] = []

        def note(rerun: Sequence[Words]) -> None:
            if self.seed:
                spans.append(differences(program, replayed, rerun, self.seed, BUCKETS))

        found = measure_second_look(self.task, self.executor, start, replayed, claim.segment, self.programs, note)
        decided = decide_with_second_look(claim, self.thresholds, found, self.count, self.margin)
        if not spans or decided.outcome is not Outcome.ACCEPTED:
            return decided
        outside = outside_shares(differences(program, replayed, end, self.seed, BUCKETS), spans)
        return decided if is_explained(claim, self.thresholds, outside) else _unexplained(decided, claim, outside)


def _unexplained(decided: Verdict, claim: SegmentClaim, outside: Sequence[float]) -> Verdict:
    rows = zip(Component, claim.distances, claim.references, outside, strict=True)
    told = [
        f"{c.name.lower()} {sqrt(share) * relative_distance(distance, reference):.3g} of the distance travelled"
        for c, distance, reference, share in rows
        if distance
    ]
    detail = f"{decided.detail}; but they point elsewhere: outside of their span are {', '.join(told)}"
    return replace(decided, reasons=(*decided.reasons, Reason.OUTSIDE_SPAN), detail=detail)


def _allowance(claim: SegmentClaim, found: SecondLook, c: int, margin: int) -> int:
    furthest = max(rerun.distances[c] for rerun in found.reruns)
    return min(margin * margin * furthest, _cap(furthest, claim.references[c]))


def _cap(distance: int, reference: int) -> int:
    """The most that any second look allows: 0 where a distance doesn't exist."""
    if distance >= UNEQUAL or reference >= SATURATION:
        return 0
    return travelled(reference) >> CAP_BITS


def _require_look(claim: SegmentClaim, thresholds: Three, found: SecondLook, count: int, margin: int) -> None:
    _require_count(count)
    if not 1 <= margin <= MAX_LOOK_MARGIN:
        raise ProtocolError(f"the margin of a second look is 1 to {MAX_LOOK_MARGIN}, not {margin}")
    if not needs_second_look(claim, thresholds):
        raise ProtocolError(f"segment {claim.segment} has no second look: none could change its verdict")
    if found.segment != claim.segment or len(found.reruns) != count:
        raise ProtocolError(
            f"a second look at segment {claim.segment} has {count} reruns; this one is at segment {found.segment} and "
            f"has {len(found.reruns)}"
        )
    if not all(any(rerun.end) for rerun in found.reruns):
        raise ProtocolError(f"a rerun of segment {claim.segment} ends in a zero root, which is no state")


def _require_count(count: int) -> None:
    if not 1 <= count <= MAX_LOOKS:
        raise ProtocolError(f"a second look has 1 to {MAX_LOOKS} reruns, not {count}")
