"""Whatever a prover makes of its roundings lies within the bound; another step does not."""

from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from pol.zk import fixed_point
from pol.zk.circuits import load_circuit, names
from pol.zk.example import example_vectors
from pol.zk.ezkl.error_bound import error_bound, is_within
from pol.zk.fixed_point import Integers, integer_step, integers


@pytest.mark.parametrize("name", [name for name in names() if not name.endswith("_large")])
def test_floor_or_ceiling_of_every_rounding(name: str) -> None:
    circuit, random = load_circuit(name), Random(1)
    inputs = example_vectors(circuit, 1)
    honest = integer_step(circuit.network, inputs)

    def chosen(exact: Integers, bits: int) -> Integers:
        if bits == 0:
            return exact
        choices = integers([random.choice((x >> bits, -(-x >> bits))) for x in exact.ravel()], exact.shape)
        return np.asarray(choices)

    limit = error_bound(circuit.network, inputs, honest)
    assert is_within(circuit.network, inputs, honest)
    assert limit < 1 << 14
    for _ in range(3):
        with patch.object(fixed_point, "rescale", chosen):
            dishonest = integer_step(circuit.network, inputs)
        assert is_within(circuit.network, inputs, dishonest)
        assert abs(dishonest - honest).max() <= limit
    # Twice the learning rate is no rounding.
    assert not is_within(circuit.network, inputs, 2 * honest - inputs[0])
