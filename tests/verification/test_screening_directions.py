"""The look over all checkpoints: it points at what is odd, and decides nothing."""

import numpy as np
import pytest
import toy

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.verification.screening_directions import MOST, choose, suspicions

PROGRAM = toy.build()
SEGMENTS = 20


def trail(change: dict[int, float] | None = None, turn: int | None = None) -> list[list[Words]]:
    """States whose updates have one length and keep their direction, but for some."""
    random = np.random.default_rng(3)
    way = random.normal(size=toy.WEIGHT.shape)
    weight, momentum = random.normal(size=toy.WEIGHT.shape), np.zeros(toy.WEIGHT.shape)
    states = []
    for segment in range(SEGMENTS + 1):
        floats = [np.asarray(part, np.float32).view(np.uint32) for part in (weight, momentum)]
        states.append([*floats, np.array(segment, np.uint32)])
        update = 0.1 * (way + 0.3 * random.normal(size=way.shape)) * (change or {}).get(segment, 1.0)
        if segment == turn:
            update = 0.1 * random.normal(size=way.shape)
        weight, momentum = weight + update, momentum + 0.1 * random.normal(size=way.shape)
    return states


@pytest.mark.parametrize("change", [{7: 30.0}, {7: 1e-6}, {19: 10.0}, {0: 10.0}])
def test_an_update_of_another_length_comes_first(change: dict[int, float]) -> None:
    assert choose(PROGRAM, trail(change), 1) == list(change)


def test_an_update_in_another_direction_comes_first() -> None:
    assert choose(PROGRAM, trail(turn=11), 1) == [11]


def test_nothing_moved_and_nothing_finite_are_the_oddest() -> None:
    states = trail()
    states[5][0] = states[4][0]
    assert choose(PROGRAM, states, 1) == [4]
    assert suspicions(PROGRAM, states)[4] >= MOST
    states = trail()
    states[9][0] = np.full_like(states[9][0], 0x7FC00000)
    assert sorted(choose(PROGRAM, states, 2)) == [8, 9]


def test_honest_segments_are_never_infinitely_odd() -> None:
    assert max(suspicions(PROGRAM, trail())) < 100
    assert len(suspicions(PROGRAM, trail()[:2])) == 1


def test_one_state_is_no_training() -> None:
    with pytest.raises(ProtocolError, match="two at least"):
        suspicions(PROGRAM, trail()[:1])
    with pytest.raises(ProtocolError, match="slots"):
        suspicions(PROGRAM, [state[:2] for state in trail()])
