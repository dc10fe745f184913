"""A profile is a deterministic claim, and its thresholds follow from its spreads."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from trained import loaded, profiled, published

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.verification.distance import INFINITE, UNEQUAL
from pol.verification.profile import FLOOR, Profile, compute_threshold_up, load, profile, squared_ratio_up


def test_the_same_seeds_give_the_same_bytes() -> None:
    first = profile(loaded(), CpuExecutor, [7, 8], [0, 1])
    again = profile(loaded(), CpuExecutor, [7, 8], [0, 1])
    other = profile(loaded(), CpuExecutor, [7, 9], [0, 1])
    assert first.encode() == again.encode()
    assert first.encode() != other.encode()
    assert first.digest == keccak256(first.encode())
    assert Profile.decode(first.encode()) == first


def test_the_profile_of_the_example() -> None:
    found = profiled()
    assert found.samples == 12
    assert found.coverage == Fraction(4, 5)
    assert found.spreads[0] > 0
    assert found.spreads[1] == 0  # no buffers
    assert found.spreads[2] > 0
    assert found.thresholds[1] == FLOOR


def test_more_samples_never_lower_a_spread() -> None:
    few = profile(loaded(), CpuExecutor, [7], [0])
    more = profile(loaded(), CpuExecutor, [7, 8], [0, 1])
    assert all(a <= b for a, b in zip(few.spreads, more.spreads, strict=True))


@given(st.integers(1, UNEQUAL - 1), st.integers(1, UNEQUAL - 1), st.integers(0, 2**31 - 1))
def test_ratios_are_rounded_up(distance: int, reference: int, integers: int) -> None:
    """However many integers move."""
    ratio = squared_ratio_up(distance, reference + integers * UNEQUAL)
    exact = Fraction(distance * 2**64, reference)
    assert exact <= ratio < exact + 1


def test_ratios_that_do_not_exist() -> None:
    assert squared_ratio_up(0, 0) == 0
    assert squared_ratio_up(0, UNEQUAL) == 0
    for distance, reference in ((1, 0), (1, UNEQUAL), (UNEQUAL, 1), (INFINITE, 1), (0, INFINITE)):
        with pytest.raises(UnsupportedError):
            squared_ratio_up(distance, reference)


def test_thresholds() -> None:
    assert compute_threshold_up(0, 16) == FLOOR
    assert compute_threshold_up(FLOOR, 16) == 256 * FLOOR
    assert compute_threshold_up(2**56 - 1, 16) < 2**64
    with pytest.raises(UnsupportedError, match="shorter"):
        compute_threshold_up(2**56, 16)


@pytest.mark.parametrize(
    ("segments", "seeds"), [([], [1]), ([0], []), ([0, 0], [1]), ([0], [1, 1]), ([12], [1]), ([-1], [1]), ([0], [-1])]
)
def test_what_cannot_be_profiled(segments: list[int], seeds: list[int]) -> None:
    with pytest.raises(ProtocolError):
        profile(loaded(), CpuExecutor, seeds, segments)


def edit(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The example's profile with some members changed."""
    document = json.loads(profiled().encode())
    change(document)
    return rfc8785.dumps(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(thresholds=["1", *d["thresholds"][1:]]),
        lambda d: d.update(margin=d["margin"] + 1),
        lambda d: d.update(samples=100),
        lambda d: d.update(coverage="99/100"),
        lambda d: d.update(seeds=[1, 1, 2, 3]),
        lambda d: d.update(spreads=d["spreads"][:2]),
        lambda d: d.update(thresholds=[int(t) for t in d["thresholds"]]),
        lambda d: d.update(spreads=["18446744073709551615"] * 3),
        lambda d: d.update(margin=0),
        lambda d: d.update(extra=1),
    ],
)
def test_a_profile_that_contradicts_itself_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    assert Profile.decode(edit(lambda d: None)) == profiled()
    with pytest.raises(ProtocolError):
        Profile.decode(edit(change))


def test_a_profile_of_another_task_is_refused() -> None:
    store, _ = published()
    digest = store.put(profiled().encode())
    assert load(store, digest, loaded()) == profiled()
    with pytest.raises(ProtocolError, match="not of task"):
        load(store, digest, loaded(order_seed=2))
