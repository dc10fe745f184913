"""Residuals inside and outside of the span of reruns, and sketches that keep lengths and spans."""

from dataclasses import replace

import numpy as np
import pytest

import digits_training
from pol.arithmetic.primitives import Words
from pol.claims.distance import component_distances
from pol.claims.segment_claim import Three
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.examination.proof_examination import conclude
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.rerun_span import BUCKETS, CUT, Differences, are_too_many, is_explained, outside_shares
from pol.verification.verdict.second_look import SecondLooker, look_program, needs_second_look
from pol.verification.verdict.segment_verification import measure_segment
from pol.verification.verdict.state_sketch import Difference, differences
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide

pytestmark = pytest.mark.rules

SEGMENT, SEED = 1, b"an auditor's own"
STRICT: Three = (1 << 12, 1 << 12, 1 << 12)


def difference(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Differences:
    found = Difference(vector, float(vector @ vector))
    nothing = Difference(np.zeros_like(vector), 0.0)
    return found, nothing, nothing


def test_what_reruns_add_up_to_is_explained_and_what_is_orthogonal_is_not() -> None:
    random = np.random.default_rng(1)
    reruns = [random.standard_normal(BUCKETS) * 10.0**-i for i in range(16)]
    spanned = [difference(rerun) for rerun in reruns]
    inside = 3 * reruns[2] - 1e4 * reruns[15]
    share, *none = outside_shares(difference(inside), spanned)
    assert share < 1e-20
    assert none == [0.0, 0.0]
    basis, _ = np.linalg.qr(np.stack(reruns, axis=1))
    other = random.standard_normal(BUCKETS)
    other -= basis @ (basis.T @ other)
    assert outside_shares(difference(other), spanned)[0] == pytest.approx(1.0)
    both = inside / np.linalg.norm(inside) + 0.5 * other / np.linalg.norm(other)
    assert outside_shares(difference(both), spanned)[0] == pytest.approx(0.2)
    assert outside_shares(difference(other), [])[0] == 1.0
    assert outside_shares(difference(np.zeros(BUCKETS)), spanned) == (0.0, 0.0, 0.0)


def state(segment: int) -> list[Words]:
    return digits_training.checkpoints(digits_training.honest())[segment]


def ends() -> tuple[list[Words], list[Words], list[Words]]:
    """The start of a segment, its canonical end, and that of a rerun."""
    task, start = digits_training.loaded(), state(SEGMENT)
    interval, first = task.document.interval, SEGMENT * task.document.interval
    canonical = [*replay_end(task.program, digits_training.executor(), start, first, interval)]
    other = look_program(task.program, 3)
    rerun = [*replay_end(other, CpuExecutor(other, task.constants), start, first, interval)]
    return start, canonical, rerun


def judged(end: list[Words], seed: bytes) -> Verdict:
    task, start = digits_training.loaded(), state(SEGMENT)
    claim = measure_segment(task.program, digits_training.executor(), start, end, SEGMENT, task.document.interval)
    assert needs_second_look(claim, STRICT)
    return SecondLooker(task, CpuExecutor, STRICT, 4, seed=seed)(decide(claim, STRICT), start, end)


def turned(canonical: list[Words], rerun: list[Words]) -> list[Words]:
    """As far from the canonical end as the rerun, in another direction: the elements change places."""
    slots = digits_training.loaded().program.slots
    found = []
    for slot, a, b in zip(slots, canonical, rerun, strict=True):
        if slot.component is not Component.PARAMETER:
            found.append(a)
            continue
        x, y = (words.reshape(-1).view(np.float32) for words in (a, b))
        moved = (x + np.roll(y - x, 1)).astype(np.float32)
        found.append(moved.view(np.uint32).reshape(a.shape))
    return found


def test_a_branch_is_accepted_and_a_push_as_long_is_not() -> None:
    _, canonical, rerun = ends()
    for seed in (b"", SEED):
        assert judged(rerun, seed).outcome is Outcome.ACCEPTED
    pushed = turned(canonical, rerun)
    by_contract = judged(pushed, b"")
    assert by_contract.outcome is Outcome.ACCEPTED
    found = judged(pushed, SEED)
    assert (found.outcome, found.reasons) == (Outcome.ACCEPTED, (Reason.WITHIN_SECOND_LOOK, Reason.OUTSIDE_SPAN))
    assert "outside of their span are parameter" in found.detail
    assert found.claim == by_contract.claim
    assert found.second_look == by_contract.second_look


@pytest.mark.parametrize(
    ("outside", "of", "are"), [(0, 40, 0), (1, 1, 0), (2, 4, 1), (3, 40, 0), (4, 40, 1), (5, 85, 0), (6, 85, 1)]
)
def test_one_segment_outside_is_chance_and_several_are_not(outside: int, of: int, are: bool) -> None:
    assert are_too_many(outside, of) == bool(are)
    marked = Verdict(0, Outcome.ACCEPTED, (Reason.WITHIN_SECOND_LOOK, Reason.OUTSIDE_SPAN), "")
    plain = Verdict(0, Outcome.ACCEPTED, (Reason.WITHIN_THRESHOLD,), "")
    found = conclude([ExaminedSegment(marked)] * outside + [ExaminedSegment(plain)] * (of - outside))
    assert (found.outcome is Outcome.REJECTED) == bool(are)
    if are:
        assert found.reasons == (Reason.OUTSIDE_SPAN,)
        assert f"{outside} segments diverge elsewhere" in found.detail


def test_thresholds_allow_as_much_outside_as_the_cut_says() -> None:
    _, _, rerun = ends()
    task, start = digits_training.loaded(), state(SEGMENT)
    claim = measure_segment(task.program, digits_training.executor(), start, rerun, SEGMENT, task.document.interval)
    allowed = STRICT[0] * claim.references[0] / 2**64
    claim = replace(claim, distances=(int(100 * CUT * CUT * allowed), 0, 0))
    assert is_explained(claim, STRICT, (0.0099, 0.0, 0.0))
    assert not is_explained(claim, STRICT, (0.0101, 0.0, 0.0))
    assert is_explained(replace(claim, distances=(0, 0, 0)), STRICT, (1.0, 1.0, 1.0))


def test_a_sketch_is_linear_and_counts_scaled_slots_like_distances() -> None:
    program = digits_training.loaded().program
    start, canonical, rerun = ends()
    one, two, both = (
        differences(program, *pair, SEED, BUCKETS) for pair in ((start, canonical), (canonical, rerun), (start, rerun))
    )
    for a, b, whole in zip(one, two, both, strict=True):
        assert np.allclose(a.sketch + b.sketch, whole.sketch, rtol=0, atol=1e-9 * max(1.0, whole.squared))
        assert float(whole.sketch @ whole.sketch) == pytest.approx(whole.squared, rel=0.3)
    distances = component_distances(program, canonical, start)
    assert [each.squared for each in one] == pytest.approx([d % 2**160 * 2.0**-80 for d in distances], rel=1e-4)
