"""Whatever is changed in an honest profile is found, and named as the court needs it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import INFINITE, UNEQUAL
from pol.claims.segment_claim import Rerun, Three
from pol.errors import ProtocolError
from pol.graph.step_program import Component
from pol.verification.profile.profile_challenge import ProfileCharge, find_false_parts
from pol.verification.profile.profile_challenge import ProfileChargeKind as Kind
from pol.verification.profile.profile_claim import Portion, ProfileClaim, claim

pytestmark = pytest.mark.rules

SEGMENTS, RERUNS = 3, 4
FAR = 1 << 80


def root(number: int) -> bytes:
    return number.to_bytes(32, "big")


def honest() -> ProfileClaim:
    portions = [Portion(root(100 + k), (FAR + k, FAR + 2 * k, FAR + 3 * k)) for k in range(SEGMENTS)]
    reruns = [Rerun(root(1000 + i), (FAR >> 30 + i, FAR >> 40 - i, (i * 7 % 11) << 30)) for i in range(12)]
    return claim(64, portions, reruns)


def with_portion(base: ProfileClaim, index: int, portion: Portion) -> ProfileClaim:
    return replace(base, portions=(*base.portions[:index], portion, *base.portions[index + 1 :]))


def with_rerun(base: ProfileClaim, index: int, rerun: Rerun) -> ProfileClaim:
    return replace(base, reruns=(*base.reruns[:index], rerun, *base.reruns[index + 1 :]))


def edited(numbers: Three, component: Component, value: int) -> Three:
    a, b, c = (value if other == component else number for other, number in zip(Component, numbers, strict=True))
    return a, b, c


def test_an_honest_profile_has_nothing_to_challenge() -> None:
    assert honest().witnesses == (0, 11, 3)
    assert find_false_parts(honest(), honest()) == []


@pytest.mark.parametrize("index", range(SEGMENTS))
def test_a_false_portion_and_nothing_that_rests_on_it(index: int) -> None:
    """What lies before it, and reruns that start before it, can be challenged; the rest of it has no states."""
    false = with_portion(honest(), index, Portion(root(1), (1, 2, 3)))
    found = find_false_parts(honest(), false)
    assert found[0] == ProfileCharge(Kind.PORTION, index)
    assert {charge.kind for charge in found[1:]} <= {Kind.UNDERSTATED}
    for rerun in range(SEGMENTS * RERUNS):
        wrong = with_rerun(false, rerun, replace(false.reruns[rerun], end=root(2)))
        charges = find_false_parts(honest(), wrong)
        assert charges[0] == ProfileCharge(Kind.PORTION, index)
        assert (ProfileCharge(Kind.RERUN, rerun) in charges) == (rerun // RERUNS <= index)
        wrong = with_rerun(false, rerun, replace(false.reruns[rerun], distances=(5, 6, 7)))
        measured = {charge.index for charge in find_false_parts(honest(), wrong) if charge.kind is Kind.DISTANCE}
        assert measured == ({rerun} if rerun // RERUNS < index else set())


@given(st.integers(0, SEGMENTS * RERUNS - 1), st.sampled_from(Component), st.integers(0, UNEQUAL - 1))
def test_a_false_distance(index: int, component: Component, value: int) -> None:
    rerun = honest().reruns[index]
    false = with_rerun(honest(), index, replace(rerun, distances=edited(rerun.distances, component, value)))
    found = find_false_parts(honest(), false)
    if false == honest():
        assert found == []
    else:
        assert found[0] == ProfileCharge(Kind.DISTANCE, index, component)
        assert {charge.kind for charge in found[1:]} <= {Kind.UNDERSTATED}


@given(st.integers(0, SEGMENTS - 1), st.sampled_from(Component), st.integers(0, INFINITE))
def test_a_false_reference(index: int, component: Component, value: int) -> None:
    portion = honest().portions[index]
    false = with_portion(honest(), index, replace(portion, references=edited(portion.references, component, value)))
    found = find_false_parts(honest(), false)
    if false == honest():
        assert found == []
    else:
        assert found[0] == ProfileCharge(Kind.REFERENCE, index, component)
        assert {charge.kind for charge in found[1:]} <= {Kind.UNDERSTATED}


def test_a_false_end_of_a_rerun_leaves_its_distances_aside() -> None:
    """They are measured against a state that nobody has."""
    false = with_rerun(honest(), 5, Rerun(root(3), (1, 1, 1)))
    assert find_false_parts(honest(), false) == [ProfileCharge(Kind.RERUN, 5)]


@given(st.tuples(*[st.integers(0, SEGMENTS * RERUNS - 1)] * 3))
def test_witnesses(witnesses: Three) -> None:
    """Each that another rerun exceeds is named with the rerun that exceeds it most; all else is right."""
    right = honest()
    expected = [
        ProfileCharge(Kind.UNDERSTATED, best, component)
        for component, best, named in zip(Component, right.witnesses, witnesses, strict=True)
        if right.demanded(component, named) != right.demanded(component, best)
    ]
    found = find_false_parts(right, replace(right, witnesses=witnesses))
    assert sorted(found, key=lambda c: (c.index, c.component)) == sorted(
        expected, key=lambda c: (c.index, c.component or 0)
    )


def test_a_later_one_of_equal_witnesses_states_the_same_threshold() -> None:
    equal = claim(64, honest().portions[:1], [honest().reruns[0]] * 3)
    assert equal.witnesses == (0, 0, 0)
    assert find_false_parts(equal, replace(equal, witnesses=(2, 1, 0))) == []


@pytest.mark.parametrize("worst", [UNEQUAL, INFINITE])
def test_a_rerun_without_a_ratio_exceeds_every_witness(worst: int) -> None:
    """Such a task has no profile: who posts one hides behind another witness."""
    rerun = replace(honest().reruns[6], distances=(1, worst, 1))
    right = claim(64, honest().portions, [*honest().reruns[:6], rerun, *honest().reruns[7:]])
    assert right.witnesses[1] == 6
    hidden = replace(right, witnesses=(right.witnesses[0], 11, right.witnesses[2]))
    assert hidden.thresholds
    assert find_false_parts(right, hidden) == [ProfileCharge(Kind.UNDERSTATED, 6, Component.BUFFER)]


def test_below_the_floor_nothing_is_understated() -> None:
    """A greater ratio that changes no threshold is no ground."""
    near = claim(
        1, honest().portions[:1], [Rerun(root(9), (0, 0, 0)), Rerun(root(8), (FAR >> 41, FAR >> 40, FAR >> 39))]
    )
    assert near.witnesses == (1, 1, 1)
    first = replace(near, witnesses=(0, 0, 0))
    assert find_false_parts(near, first) == [ProfileCharge(Kind.UNDERSTATED, 1, Component.OPTIMIZER)]


def test_a_rerun_that_ends_in_zero_is_convicted_at_once() -> None:
    """No dispute could be about it."""
    false = with_rerun(honest(), 5, replace(honest().reruns[5], end=bytes(32)))
    assert find_false_parts(honest(), false) == [ProfileCharge(Kind.UNDERSTATED, 5, Component.PARAMETER)]


def test_a_task_without_a_profile_convicts_whoever_posts_one() -> None:
    """Honest reruns part as far as the training goes: a posted threshold is below what follows."""
    far = Rerun(root(7), honest().portions[0].references)
    right = claim(64, honest().portions[:1], [far, honest().reruns[0]])
    posted = replace(right, witnesses=(1, 1, 1))
    assert posted.thresholds
    assert find_false_parts(right, posted) == [ProfileCharge(Kind.UNDERSTATED, 0, component) for component in Component]


def test_everything_at_once_in_the_order_of_the_specification() -> None:
    false = with_portion(honest(), 1, replace(honest().portions[1], end=root(1)))
    false = with_portion(false, 0, replace(honest().portions[0], references=(FAR + 1, FAR, FAR)))
    false = with_rerun(false, 0, Rerun(root(4), honest().reruns[0].distances))
    false = with_rerun(false, 1, replace(honest().reruns[1], distances=(0, 0, 0)))
    false = with_rerun(false, 7, Rerun(root(5), honest().reruns[7].distances))
    false = with_rerun(false, 9, Rerun(root(6), honest().reruns[9].distances))
    kinds = [(charge.kind, charge.index) for charge in find_false_parts(honest(), false)]
    assert kinds == [
        (Kind.PORTION, 1),
        (Kind.RERUN, 0),
        (Kind.RERUN, 7),
        *[(Kind.DISTANCE, 1)] * 3,
        (Kind.REFERENCE, 0),
    ]


def test_profiles_of_other_terms_are_not_compared() -> None:
    one = claim(64, honest().portions[:1], honest().reruns[:4])
    for other in (honest(), replace(one, margin=63), claim(64, one.portions, one.reruns[:3]), claim(0, (), ())):
        with pytest.raises(ProtocolError, match="different terms"):
            find_false_parts(one, other)
    exact = claim(0, (), ())
    assert exact.thresholds == EXACT
    assert find_false_parts(exact, exact) == []


def test_claims_that_no_contract_takes() -> None:
    base = honest()
    for change in (
        {"margin": 0},
        {"margin": -1},
        {"margin": 1 << 16},
        {"portions": ()},
        {"reruns": ()},
        {"reruns": base.reruns[:-1]},
        {"witnesses": (0, 0, 12)},
        {"witnesses": (-1, 0, 0)},
    ):
        with pytest.raises(ProtocolError):
            replace(base, **change)  # type: ignore[arg-type]  # of several types
