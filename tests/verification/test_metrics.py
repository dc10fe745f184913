"""Metrics for people: right where they are defined, NaN where they aren't."""

import math

import numpy as np

from pol.verification.metrics import cosine_distance


def test_cosine_distance_is_a_distance() -> None:
    w = np.array([3.0, 4.0])
    assert cosine_distance(w, w) == 0.0
    assert abs(cosine_distance(w, 2 * w)) < 1e-15  # not -1, as in earlier systems
    assert cosine_distance(w, -w) == 2.0
    assert cosine_distance(w, np.array([-4.0, 3.0])) == 1.0
    assert math.isnan(cosine_distance(w, np.zeros(2)))
    assert math.isnan(cosine_distance(w, np.full(2, math.nan)))
