"""Training less than claimed."""

import pytest
from attacked import CNN, SEGMENTS, STEPS, Expected, check, findings, target

from pol.verification.attacks.forgery import Attack, Forgery, Workshop
from pol.verification.attacks.judge import mount
from pol.verification.attacks.shortcuts import ATTACKS
from pol.verification.verdict import Outcome

EXPECTED = {
    "interpolation": Expected(0.0, SEGMENTS),
    "skip-1%": Expected(1.0, 0),  # of 60 steps none is the hundredth: tried on a longer task below
    "skip-5%": Expected(57 / 60, 3),
    "skip-10%": Expected(54 / 60, 6),
    "skip-50%": Expected(30 / 60, SEGMENTS),
    "repeat-checkpoints": Expected(11 / 12, 1),
    "early-stop": Expected(0.5, SEGMENTS // 2),
    "fabrication": Expected(0.0, SEGMENTS),
    "sidestep": Expected(11 / 12, 1),
    "extrapolate-10%": Expected(11 / 12, 1),
    "extrapolate-50%": Expected(0.5, SEGMENTS // 2),
}
LAZY = "lazy-backward"


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "skip-1%"])
def test_it_is_rejected(name: str) -> None:
    check(tuple(attack for attack in ATTACKS if attack.name != LAZY), name, EXPECTED)


@pytest.mark.slow  # another target; test_battery.py runs all attacks against it
@pytest.mark.parametrize("name", ["skip-5%", "early-stop", "extrapolate-50%", "fabrication"])
def test_it_is_rejected_with_batch_normalisation_and_adam(name: str) -> None:
    found = findings(name, *CNN)
    assert found.cheated
    assert found.rejected == found.cheated


def test_leaving_out_the_easiest_backward_passes_is_rejected() -> None:
    found = findings(LAZY)
    assert found.rejected == found.cheated != []
    # What was saved are backward passes: two thirds of the steps that were left out.
    skipped = (1 - found.cost) * STEPS * 3 / 2
    assert skipped == pytest.approx(round(skipped), abs=0.35)
    assert 1 <= round(skipped) < STEPS / 2


def test_one_step_in_a_hundred_leaves_a_trace_in_its_segment_only() -> None:
    found = findings("skip-5%")
    assert found.cheated == [3, 7, 11]
    assert [found.segments[i].outcome for i in (2, 4)] == [Outcome.ACCEPTED] * 2


def test_the_probability_of_being_caught_is_that_of_the_draw() -> None:
    found = findings("skip-5%")
    assert found.caught(1) == pytest.approx(3 / 12)
    assert found.caught(2) == pytest.approx(1 - 9 * 8 / (12 * 11))
    assert found.caught(2, (3,)) == 1.0
    assert found.caught(2, (0,)) == pytest.approx(3 / 11)
    draws = found.draws_for(0.99)
    assert draws is not None
    assert found.caught(draws) >= 0.99 > found.caught(draws - 1)


def test_the_meter_counts_what_is_executed() -> None:
    workshop = Workshop(target())
    state = workshop.train(workshop.start, 0, 7)
    assert workshop.steps == 7
    workshop.train(state, 7, 2, share=0.5)
    assert workshop.steps == 8
    honest = Workshop(target())
    honest.run()
    assert honest.cost == 1.0


def test_an_honest_proof_is_accepted_in_both_modes() -> None:
    honest = Attack("honest", "", "", "", lambda workshop: Forgery(workshop.run()))
    found = mount(honest, target())
    assert found.passes_tolerance
    assert found.passes_exact
    assert found.cost == 1.0
    assert found.detection is None
