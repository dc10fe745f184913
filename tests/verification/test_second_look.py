"""A second look: what the thresholds reject is accepted if reruns of that segment part as far, and never otherwise."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import digits_training
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import INFINITE, SATURATION, UNEQUAL, component_distances
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim, Three
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.state_perturbation import perturb
from pol.graph.step_program import Component
from pol.graph.sum_reordering import reorder
from pol.verification.engines.engine import LocalEngine
from pol.verification.examination.proof_examination import ExaminedProof, examine_proof
from pol.verification.examination.verification_report import frequent_second_looks, segment_document
from pol.verification.profile.profile_claim import FLOOR
from pol.verification.profile.profiling import rerun_programs
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.second_look import (
    SecondLookChallenge,
    SecondLooker,
    allowances,
    compare_second_looks,
    decide_with_second_look,
    look_programs,
    measure_second_look,
    needs_second_look,
    second_look_shares,
)
from pol.verification.verdict.segment_verification import measure_segment
from pol.verification.verdict.verdict import Outcome, Reason, decide

pytestmark = pytest.mark.rules

ROOTS = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
STRICT: Three = (FLOOR, FLOOR, FLOOR)
WAY = 2**100
CAP = WAY >> 12
SEGMENT = 3
ACCEPTED, REJECTED = Outcome.ACCEPTED, Outcome.REJECTED


def claim(distances: Three, references: Three = (WAY, WAY, WAY)) -> SegmentClaim:
    return SegmentClaim(SEGMENT, *ROOTS, distances, references)


def looked(*distances: int) -> SecondLook:
    """One rerun for each distance of the parameters."""
    return SecondLook(SEGMENT, tuple(Rerun(b"\4" * 32, (distance, 0, 0)) for distance in distances))


# --- the rule ---------------------------------------------------------------------------------------------------------


@given(st.integers(2**62, CAP), st.lists(st.integers(0, CAP), min_size=1, max_size=4), st.integers(1, 70))
@example(2**80, [2**78, 5], 2)
@example(2**80 + 1, [2**78, 5], 2)
@example(CAP, [CAP], 65535)
def test_the_rule(distance: int, reruns: list[int], margin: int) -> None:
    """The furthest rerun, and never more than 2^-6 of the way."""
    found = decide_with_second_look(claim((distance, 0, 0)), STRICT, looked(*reruns), len(reruns), margin)
    within = distance <= min(margin**2 * max(reruns), CAP)
    assert found.outcome is (ACCEPTED if within else REJECTED)
    assert found.reasons == ((Reason.WITHIN_SECOND_LOOK if within else Reason.DISTANCE_ABOVE_THRESHOLD),)
    assert found.second_look == looked(*reruns)


def test_components_that_the_thresholds_accept_stay_accepted() -> None:
    far = claim((2**80, WAY >> 40, 0))
    assert decide_with_second_look(far, STRICT, looked(2**78), 1).outcome is ACCEPTED
    both = claim((2**80, 2**80, 0))
    assert decide_with_second_look(both, STRICT, looked(2**78), 1).outcome is REJECTED
    rerun = Rerun(b"\4" * 32, (2**78, 2**78, 0))
    assert decide_with_second_look(both, STRICT, SecondLook(SEGMENT, (rerun,)), 1).outcome is ACCEPTED


@pytest.mark.parametrize("distance", [UNEQUAL, UNEQUAL + 1, SATURATION - 1, SATURATION, INFINITE])
def test_a_rerun_without_a_distance_excuses_nothing(distance: int) -> None:
    """Not even what the others would."""
    assert allowances(claim((2**80, 0, 0)), looked(2**90, distance)) == (0, 0, 0)
    assert decide_with_second_look(claim((2**80, 0, 0)), STRICT, looked(2**90, distance), 2).outcome is REJECTED


def test_integers_that_moved_are_no_way() -> None:
    references = (WAY + 7 * UNEQUAL, WAY, WAY)
    assert allowances(claim((2**80, 0, 0), references), looked(UNEQUAL - 1))[0] == CAP


@pytest.mark.parametrize(
    ("made", "thresholds", "due"),
    [
        (claim((2**80, 0, 0)), STRICT, True),
        (claim((CAP, 0, 0)), STRICT, True),
        (claim((CAP + 1, 0, 0)), STRICT, False),
        (claim((2**80, CAP + 1, 0)), STRICT, False),
        (claim((2**80, CAP + 1, 0)), (FLOOR, 2**60, FLOOR), True),
        (claim((0, 0, 0)), STRICT, False),
        (claim((2**80, 0, 0)), EXACT, False),
        (claim((2**80, UNEQUAL, 0)), STRICT, False),
        (claim((INFINITE, 0, 0)), STRICT, False),
        (claim((2**80, 0, 0), (WAY, SATURATION, WAY)), STRICT, False),
        (claim((2**80, 0, 0), (SATURATION, WAY, WAY)), STRICT, False),
        (claim((1, 0, 0), (0, 0, 0)), STRICT, False),
        (replace(claim((2**80, 0, 0)), start=bytes(32)), STRICT, False),
        (replace(claim((2**80, 0, 0)), end=bytes(32)), STRICT, False),
    ],
)
def test_when_a_claim_has_a_second_look(made: SegmentClaim, thresholds: Three, due: bool) -> None:
    assert needs_second_look(made, thresholds) == due
    if not due:
        with pytest.raises(ProtocolError, match="no second look"):
            decide_with_second_look(made, thresholds, looked(2**90), 1)
    else:
        assert decide(made, thresholds).outcome is REJECTED


def test_what_is_no_look_of_the_claim_is_refused() -> None:
    made = claim((2**80, 0, 0))
    refused = (
        (looked(2**90, 2**90), 1, 2, "has 2"),
        (looked(2**90), 2, 2, "has 2 reruns"),
        (replace(looked(2**90), segment=SEGMENT + 1), 1, 2, "is at segment 4"),
        (SecondLook(SEGMENT, (Rerun(bytes(32), (2**90, 0, 0)),)), 1, 2, "zero root"),
        (looked(2**90), 1, 0, "margin"),
        (looked(2**90), 1, 2**16, "margin"),
        (SecondLook(SEGMENT, ()), 0, 2, "1 to 64 reruns"),
    )
    for found, count, margin, what in refused:
        with pytest.raises(ProtocolError, match=what):
            decide_with_second_look(made, STRICT, found, count, margin)
    with pytest.raises(ProtocolError, match="1 to 64 reruns"):
        look_programs(digits_training.loaded().program, 65)


# --- the measurement --------------------------------------------------------------------------------------------------


@cache
def canonical() -> tuple[list[Words], list[Words]]:
    """Start and canonical end of a segment."""
    task, training = digits_training.loaded(), digits_training.honest()
    start = digits_training.checkpoints(training)[SEGMENT]
    interval = task.document.interval
    return start, replay_end(task.program, digits_training.executor(), start, SEGMENT * interval, interval)


def rerun(index: int) -> list[Words]:
    task, interval = digits_training.loaded(), digits_training.loaded().document.interval
    program = reorder(perturb(task.program, index), index)
    return replay_end(program, CpuExecutor(program, task.constants), canonical()[0], SEGMENT * interval, interval)


def test_every_number_is_what_the_specification_says() -> None:
    task = digits_training.loaded()
    start, end = canonical()
    found = measure_second_look(task, CpuExecutor, start, end, SEGMENT, look_programs(task.program, 2))
    for index, measured in enumerate(found.reruns):
        assert measured.end == state_root(task.slot_types, rerun(index))
        assert measured.distances == component_distances(task.program, end, rerun(index))
        assert min(measured.distances[0], measured.distances[2]) > 0
    assert found.segment == SEGMENT
    short = replace(task, document=replace(task.document, interval=2))
    few = look_programs(task.program, 1)
    args = (start, replay_end(task.program, digits_training.executor(), start, 2 * SEGMENT, 2), SEGMENT, few)
    assert measure_second_look(short, CpuExecutor, *args) == measure_second_look(short, ReferenceExecutor, *args)


def judged(end: list[Words], count: int = 4) -> tuple[SegmentClaim, SecondLooker]:
    """A segment that ends there, and who judges it, with thresholds that reject nearly everything."""
    task = digits_training.loaded()
    interval = task.document.interval
    made = measure_segment(task.program, digits_training.executor(), canonical()[0], end, SEGMENT, interval)
    return made, SecondLooker(task, CpuExecutor, STRICT, count)


def test_a_branch_that_a_rerun_takes_is_accepted() -> None:
    """An honest end beyond the thresholds; it is one of the reruns here, so a margin of one is enough."""
    made, looker = judged(rerun(2))
    first = decide(made, STRICT)
    assert first.outcome is REJECTED
    found = looker(first, canonical()[0], rerun(2))
    assert (found.outcome, found.reasons) == (ACCEPTED, (Reason.WITHIN_SECOND_LOOK,))
    assert found.second_look is not None
    assert 0 < max(second_look_shares(made, found.second_look, 1)) <= 1
    assert max(second_look_shares(made, found.second_look)) == pytest.approx(
        max(second_look_shares(made, found.second_look, 1)) / 2
    )
    # Thresholds alone decide where there are no looks, and what they accept isn't looked at again.
    assert replace(looker, count=0)(first, canonical()[0], rerun(2)) is first
    loose: Three = (2**60, 2**60, 2**60)
    assert replace(looker, thresholds=loose)(decide(made, loose), canonical()[0], rerun(2)).second_look is None


def test_a_percent_of_the_rate_is_still_rejected() -> None:
    """Below 2^-6 of the way, so reruns decide."""
    start, end = canonical()
    slots = digits_training.loaded().program.slots
    parts = [slot.component is Component.PARAMETER for slot in slots]
    scaled = [
        (a.view("f4") + (b.view("f4") - a.view("f4")) * 1.01).astype("f4").view("u4") if is_parameter else b
        for a, b, is_parameter in zip(start, end, parts, strict=True)
    ]
    made, looker = judged(scaled)
    assert needs_second_look(made, STRICT)
    found = looker(decide(made, STRICT), start, scaled)
    assert (found.outcome, found.reasons) == (REJECTED, (Reason.DISTANCE_ABOVE_THRESHOLD,))
    assert found.second_look is not None
    assert max(second_look_shares(made, found.second_look)) > 10
    assert "by a second look" in found.detail


def test_gross_work_costs_no_second_look() -> None:
    end = digits_training.checkpoints(digits_training.honest())[SEGMENT + 2]
    made, looker = judged(end)
    found = looker(decide(made, STRICT), canonical()[0], end)
    assert (found.outcome, found.second_look) == (REJECTED, None)
    assert "programs" not in vars(looker)


def test_a_proof_is_verified_with_a_second_look() -> None:
    """By an engine, to the document; torch's own rounding is beyond such thresholds everywhere."""
    training = digits_training.honest()
    subject = ExaminedProof(training.store, training.task, training.proof)
    strictest: Three = (1, 1, 1)
    alone = examine_proof(subject, [1], strictest, LocalEngine(1), looks=0)
    assert (alone.outcome, alone.reasons) == (REJECTED, (Reason.DISTANCE_ABOVE_THRESHOLD,))
    assert segment_document(alone.examined[0])["second_look"] is None
    found = examine_proof(subject, [1], strictest, LocalEngine(1))
    assert (found.outcome, found.reasons) == (ACCEPTED, (Reason.WITHIN_SECOND_LOOK,))
    told = segment_document(found.examined[0])["second_look"]
    assert len(told) == 16
    assert {len(bytes.fromhex(row["end"])) for row in told} == {32}


@pytest.mark.parametrize(("needed", "of", "told"), [(1, 1, 0), (2, 2, 1), (1, 8, 0), (2, 8, 1), (2, 9, 0), (5, 32, 1)])
def test_many_second_looks_are_remarked_upon(needed: int, of: int, told: int) -> None:
    """It says what may be the matter, and decides nothing."""
    plain = decide(claim((0, 0, 0)), STRICT)
    again = decide_with_second_look(claim((2**80, 0, 0)), STRICT, looked(2**80), 1)
    refused = decide_with_second_look(claim((2**80, 0, 0)), STRICT, looked(1), 1)
    found = frequent_second_looks([again] * needed + [plain] * (of - needed))
    assert len(found) == told
    assert all(f"{needed} of {of} segments" in sentence for sentence in found)
    assert frequent_second_looks([refused] * of) == []


def test_the_terms_commit_to_the_programs_of_looks_after_those_of_the_profile() -> None:
    program = digits_training.loaded().program
    hashes = rerun_programs(program, 2, 3)
    assert hashes[:2] == rerun_programs(program, 2)
    assert hashes[2:] == [program_hash(other) for other in look_programs(program, 3)]
    assert len(set(hashes)) == 5


# --- challenges -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_every_lie_is_found_and_nothing_else() -> None:
    own = looked(1, 2, 3)
    assert compare_second_looks(own, own) == []
    first, second, third = own.reruns
    other = replace(second, end=b"\5" * 32, distances=(9, 9, 9))
    assert compare_second_looks(own, replace(own, reruns=(first, other, third))) == [
        (SecondLookChallenge.RERUN, 1, None)
    ]
    false = replace(third, distances=(3, 1, 7))
    assert compare_second_looks(own, replace(own, reruns=(first, second, false))) == [
        (SecondLookChallenge.DISTANCE, 2, Component.BUFFER),
        (SecondLookChallenge.DISTANCE, 2, Component.OPTIMIZER),
    ]
    assert (SecondLookChallenge.RERUN, SecondLookChallenge.DISTANCE) == (5, 6)
    for bad in (looked(1, 2), replace(own, segment=4)):
        with pytest.raises(ProtocolError, match="different segments"):
            compare_second_looks(own, bad)
