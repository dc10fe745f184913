"""Other settings than the task's."""

import numpy as np
import pytest
import torch

from attack_tasks import ADAM, SEGMENTS, Expected, check, findings, target
from lab.attacks.attack_target import numbers
from lab.attacks.forgery import Workshop
from lab.attacks.other_settings import ATTACKS, scaled_rate
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture

EXPECTED = {name: Expected(1.0, SEGMENTS) for name in ("rate+1%", "rate+10%", "schedule", "lazy-momentum")}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_rejected(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


@pytest.mark.slow  # another target; test_battery.py runs all attacks against it
@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_rejected_with_adam(name: str) -> None:
    found = findings(name, *ADAM)
    assert found.rejected == found.cheated == list(range(SEGMENTS))


def test_scaling_the_update_is_training_at_another_rate() -> None:
    model = digits.build_model(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.055, momentum=0.9)
    other = capture(model, digits.loss_function, optimizer, digits.dataset(), digits.order(1, 60))
    workshop = Workshop(target())
    real = workshop.run(CpuExecutor(other.program, other.constants))
    forged = scaled_rate(workshop, lambda _: 1.1).states
    for place in range(4):
        np.testing.assert_allclose(numbers(forged[1][place]), numbers(real[1][place]), rtol=1e-4, atol=1e-6)
