"""What verification makes of a forgery: every segment by tolerance and, beside it, in exact mode."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lab.attacks.attack_target import SEED, Target
from lab.attacks.forgery import Attack, Forgery, Workshop, publish
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import EXACT, relative_distance, relative_limit
from pol.claims.sample_size import detection_probability
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.verification.verdict.drift import Direction, Drift, direction, drifts
from pol.verification.verdict.rerun_span import are_too_many
from pol.verification.verdict.second_look import allowances
from pol.verification.verdict.segment_pairs import paired_entry, paired_task, pairs_of
from pol.verification.verdict.segment_verification import verify_entries
from pol.verification.verdict.slot_residual import SlotExaminer
from pol.verification.verdict.verdict import Outcome, Reason, decide


@dataclass(frozen=True)
class SegmentFinding:
    """One segment: the verdict by tolerance, whether exact mode accepts it, and each component's relative distance.

    ``alone`` is the verdict by the thresholds alone, without a second look; ``direction`` that of the residual.
    ``is_outside`` and ``is_apart``: it is marked, by the span of its reruns or by one of its slots.
    """

    outcome: Outcome
    alone: Outcome
    exact: bool
    distances: tuple[float, float, float]
    allowed: tuple[float, float, float]
    direction: Direction | None = None
    is_outside: bool = False
    is_apart: bool = False


@dataclass(frozen=True)
class Findings:
    """What a verifier that replays all of it would find.

    ``refused`` is why the learning proof isn't even one of this task, or None. ``cost`` is the share of the honest
    training that the cheating solver executed.
    """

    attack: Attack
    cost: float
    refused: str | None
    segments: tuple[SegmentFinding, ...]
    forgery: Forgery
    pairs: Mapping[int, Outcome]
    """What comes out of pairs of segments, by pair: of all, as `pol verify --all` replays them."""

    @cached_property
    def touched(self) -> list[int]:
        """The segments that aren't what training from their start gives: known from the bits, not from the attack."""
        return [i for i, finding in enumerate(self.segments) if not finding.exact]

    @cached_property
    def cheated(self) -> list[int]:
        """The touched segments that weren't trained in another way."""
        return [i for i in self.touched if i not in self.forgery.trained]

    @cached_property
    def rejected(self) -> list[int]:
        """The segments that aren't accepted: by their distance, or because there is no evidence to look at."""
        return [i for i, finding in enumerate(self.segments) if finding.outcome is not Outcome.ACCEPTED]

    @cached_property
    def rejected_alone(self) -> list[int]:
        """The segments that the thresholds alone wouldn't accept."""
        return [i for i, finding in enumerate(self.segments) if finding.alone is not Outcome.ACCEPTED]

    @property
    def detection(self) -> float | None:
        """The share of cheated segments that are rejected if they are drawn; None if there is none."""
        return self._share(self.rejected)

    @property
    def detection_alone(self) -> float | None:
        """As `detection`, by the thresholds alone."""
        return self._share(self.rejected_alone)

    @property
    def passes_tolerance(self) -> bool:
        """Whether every segment is accepted, and all of them together."""
        if self.refused is not None or self.rejected:
            return False
        return not self.found_by

    @cached_property
    def found_by(self) -> set[Reason]:
        """The rules over several segments that reject the training, though each segment is accepted."""
        found = {Reason.DRIFT} if any(drift.is_found for drift in self.drifts) else set()
        for reason, marks in (
            (Reason.OUTSIDE_SPAN, [finding.is_outside for finding in self.segments]),
            (Reason.SLOT, [finding.is_apart for finding in self.segments]),
            (Reason.PAIR, [outcome is Outcome.REJECTED for outcome in self.pairs.values()]),
        ):
            if are_too_many(sum(marks), len(marks)):
                found.add(reason)
        return found

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """What the residuals of all segments have in common."""
        return drifts([found.direction for found in self.segments if found.direction is not None])

    @property
    def passes_exact(self) -> bool:
        """Whether exact mode accepts every segment."""
        return self.refused is None and not self.touched

    def ratio(self, scale: tuple[float, float, float]) -> float:
        """The smallest distance of a cheated segment, in multiples of ``scale`` (one number per component).

        Of a segment the component counts that gives it away most. Infinite if there is none.
        """
        found = [_ratio(self.segments[i].distances, scale) for i in self.cheated]
        return min(found, default=float("inf"))

    @property
    def of_limit(self) -> float:
        """As `ratio`, in multiples of what each segment is allowed."""
        found = [_ratio(self.segments[i].distances, self.segments[i].allowed) for i in self.cheated]
        return min(found, default=float("inf"))

    def _share(self, rejected: Sequence[int]) -> float | None:
        return len(set(rejected) & set(self.cheated)) / len(self.cheated) if self.cheated else None

    def caught(self, draws: int, chosen: tuple[int, ...] = ()) -> float:
        """The probability that ``draws`` segments, of which the verifier chose some itself, hit a rejected one."""
        if self.refused is not None or set(chosen) & set(self.rejected):
            return 1.0
        left = len(self.segments) - len(chosen)
        return float(detection_probability(left, len(self.rejected), draws - len(chosen)))

    def draws_for(self, probability: float) -> int | None:
        """The fewest random draws that catch it so surely: 0 if refused, None if even replaying all of it doesn't."""
        counts = range(len(self.segments) + 1)
        return next((draws for draws in counts if self.caught(draws) >= probability), None)


def limits(target: Target) -> tuple[float, float, float]:
    """The relative distances that the thresholds allow."""
    parameter, buffer, optimizer = (relative_limit(threshold) for threshold in target.thresholds)
    return parameter, buffer, optimizer


def mount(attack: Attack, target: Target, seed: int = 0) -> Findings:
    """Make the forgery, publish it and verify all of it."""
    workshop = Workshop(target, seed)
    forgery = attack.forge(workshop)
    # A store of its own: what one solver withholds, another may have published.
    store = Store(f"memory://forgery-{uuid.uuid4().hex}")
    proof = publish(store, target, forgery)
    refused = None
    try:
        learning_proof.load(store, store.put(proof.encode()), target.task)
    except ProtocolError as error:
        refused = str(error)
    segments = () if refused else tuple(_judge(store, target, proof, i) for i in range(target.segments))
    pairs = {} if refused else _pairs(store, target, proof)
    return Findings(attack, workshop.cost, refused, segments, forgery, pairs)


def _pairs(store: Store, target: Target, proof: LearningProof) -> dict[int, Outcome]:
    task, entries = paired_task(target.task), [paired_entry(entry) for entry in proof.checkpoints[::2]]
    looker = replace(target.looker, task=task)
    return {
        pair: verify_entries(
            store,
            task,
            entries[pair],
            entries[pair + 1],
            target.executor,
            target.thresholds,
            second_look=looker,
            halves=True,
        ).outcome
        for pair in pairs_of(range(target.segments), target.segments, SEED)
    }


def _judge(store: Store, target: Target, proof: LearningProof, segment: int) -> SegmentFinding:
    found: list[Direction] = []

    unexplained: list[str] = []
    examiner = SlotExaminer(target.task, CpuExecutor)

    def compare(before: Sequence[Words], replayed: Sequence[Words], after: Sequence[Words]) -> None:
        found.append(direction(target.task.program, replayed, after, SEED))
        unexplained.extend(examiner.unexplained(segment, before, replayed, after))

    start, end = proof.checkpoints[segment : segment + 2]
    verdict = verify_entries(
        store, target.task, start, end, target.executor, target.thresholds, second_look=target.looker, compare=compare
    )
    claim, allowed = verdict.claim, limits(target)
    if claim is None:
        return SegmentFinding(verdict.outcome, verdict.outcome, False, (float("inf"),) * 3, allowed)
    if verdict.second_look is not None:
        rows = zip(allowances(claim, verdict.second_look), claim.references, allowed, strict=True)
        parameter, buffer, optimizer = (max(relative_distance(a, r), first) for a, r, first in rows)
        allowed = (parameter, buffer, optimizer)
    pairs = zip(claim.distances, claim.references, strict=True)
    parameter, buffer, optimizer = (relative_distance(distance, reference) for distance, reference in pairs)
    exact = decide(claim, EXACT).outcome is Outcome.ACCEPTED
    alone = decide(claim, target.thresholds).outcome
    outside, relative = Reason.OUTSIDE_SPAN in verdict.reasons, (parameter, buffer, optimizer)
    pointing = found[0] if found else None
    return SegmentFinding(verdict.outcome, alone, exact, relative, allowed, pointing, outside, bool(unexplained))


def _ratio(distances: tuple[float, float, float], scale: tuple[float, float, float]) -> float:
    return max(
        0.0 if distance == 0.0 else float("inf") if unit == 0.0 else distance / unit
        for distance, unit in zip(distances, scale, strict=True)
    )
