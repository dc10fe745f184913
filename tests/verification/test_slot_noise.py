"""Limits of slots within a threshold, and the scales that make them follow each slot's own noise."""

import math
from dataclasses import replace

import pytest

from pol.errors import UnsupportedError
from pol.graph.step_program import Component
from pol.verification.profile.slot_noise import SlotNoise, furthest, limits, require_limits
from pol.verification.profile.slot_scales import scales_of

pytestmark = pytest.mark.rules

WEIGHT = SlotNoise(
    "weight", Component.PARAMETER, 0, noise=2.0**-20, way=1.0, trained=1.0, random=False, length=4.0, greatest=1.0
)
THRESHOLDS = (1 << 44, 1 << 24, 1 << 24)  # 2^-10 of the way of parameters, 2^-20 of that of the others
LONG = (1 << 2 * (40 + 12), 0, 0)  # a way of 2^12


def test_the_limit_of_a_slot_is_that_of_its_component_over_its_scale() -> None:
    average = replace(WEIGHT, name="average", component=Component.OPTIMIZER, scale=12)
    references = [(1 << 2 * 43, 0, 1 << 2 * 41), (1 << 2 * 42, 0, 1 << 2 * 40)]
    assert limits([WEIGHT, replace(WEIGHT, scale=5), average], THRESHOLDS, references) == [2**-7, 2**-12, 2**-31]


def test_a_ballast_takes_the_limits_from_all_others() -> None:
    """One parameter that moves far makes the way of all parameters its own."""
    ballast = replace(WEIGHT, name="ballast", way=2.0**12, length=2.0**12, greatest=2.0**9)
    with pytest.raises(UnsupportedError, match=r"say nothing about weight \(4 of its way\)"):
        require_limits([WEIGHT, ballast], THRESHOLDS, [LONG])
    require_limits([replace(WEIGHT, scale=3), ballast], THRESHOLDS, [LONG])
    weight, heavy = scales_of([WEIGHT, ballast])
    assert weight - heavy == 8  # the ballast rounds by 2^-12, the weight is off by 2^-20
    require_limits([replace(WEIGHT, way=0.0, trained=0.0), ballast], THRESHOLDS, [LONG])  # it stands still


def test_noise_alone_is_free_and_noise_beside_training_is_not() -> None:
    noise = replace(WEIGHT, name="bias", trained=0.0, random=True)
    require_limits([noise], THRESHOLDS, [LONG])
    mixed = replace(noise, trained=0.5)
    with pytest.raises(UnsupportedError, match=r"bias \(5.7 of its way, of which a part moves by rounding alone\)"):
        require_limits([mixed], THRESHOLDS, [LONG])
    short = (1 << 2 * 45, 0, 0)  # 2^5: a limit of 2^-5, enough for a tensor that is trained as a whole
    require_limits([WEIGHT], THRESHOLDS, [short])
    with pytest.raises(UnsupportedError, match="a part moves by rounding alone"):
        require_limits([mixed], THRESHOLDS, [short])


def test_no_scale_takes_the_distance_from_a_number_that_grows_a_thousandfold() -> None:
    noisy = replace(WEIGHT, name="noisy", noise=1.0)
    clean = replace(WEIGHT, noise=0.0, greatest=3.0)
    assert scales_of([noisy, clean]) == [0, 23 - 10 - 2]
    assert scales_of([noisy, replace(clean, greatest=2.0**-12)]) == [0, 22]  # by its noise: 2^-24 of its length


def test_zeros_integers_and_what_has_no_distance_keep_their_scale() -> None:
    zeros = replace(WEIGHT, noise=0.0, length=0.0, greatest=0.0, scale=12)
    endless = replace(WEIGHT, noise=math.inf, scale=3)
    assert scales_of([replace(WEIGHT, noise=1.0), zeros, endless]) == [0, 12, 3]


def test_a_constant_decides_for_no_other() -> None:
    """A mask of -1e9 never moves, and has no distance as soon as it did."""
    mask = replace(WEIGHT, name="mask", noise=0.0, way=0.0, trained=0.0, length=4e9, greatest=1e9)
    noisy = replace(WEIGHT, noise=2.0**-10)
    assert scales_of([noisy, replace(WEIGHT, noise=2.0**-20), mask])[:2] == [0, 10]


def test_averages_of_squares_may_grow_by_the_square_of_a_thousandfold() -> None:
    squares = replace(WEIGHT, scale=12, noise=2.0**-40, length=2.0**-16, greatest=2.0**-17)
    noisy = replace(WEIGHT, noise=2.0**-10)
    assert scales_of([noisy, squares]) == [0, 23 - 20 + 17]
    assert scales_of([noisy, replace(squares, greatest=2.0**-5)]) == [0, 12]


def test_shares_of_a_distance() -> None:
    slots = [replace(WEIGHT, name="a", noise=1.0), replace(WEIGHT, name="b", noise=0.25, scale=3)]
    assert furthest(slots, Component.PARAMETER) == [("b", 0.8), ("a", 0.2)]
    assert furthest([*slots, replace(WEIGHT, name="c", noise=math.inf)], Component.PARAMETER)[0] == ("c", 1.0)
    assert furthest(slots, Component.BUFFER) == []
