"""Other precisions than float32."""

import numpy as np
import pytest
import torch

from attack_tasks import CNN, SEGMENTS, Expected, check, findings, target
from lab.attacks.attack_loop import AttackLoop, RoundedProducts
from lab.attacks.attack_target import numbers
from lab.attacks.other_precision import ATTACKS

EVERYWHERE = Expected(1.0, SEGMENTS)
EXPECTED = {
    "bf16-autocast": EVERYWHERE,
    "bf16-weights": EVERYWHERE,
    "tf32": EVERYWHERE,
    "fp16-checkpoints": EVERYWHERE,
    "20-bit-products": EVERYWHERE,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_rejected_unless_it_is_as_exact_as_another_order_of_summation(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


@pytest.mark.slow  # another target; test_battery.py runs all attacks against it
@pytest.mark.parametrize("name", ["bf16-autocast", "tf32"])
def test_it_is_rejected_in_convolutions(name: str) -> None:
    found = findings(name, *CNN)
    assert found.rejected == list(range(SEGMENTS))


def test_products_read_rounded_operands() -> None:
    x = torch.tensor([[1.0 + 2.0**-10, 1.0 + 2.0**-12, 3.0]])
    with RoundedProducts(11):
        assert (x @ torch.eye(3)).tolist() == [[1.0 + 2.0**-10, 1.0, 3.0]]
    with RoundedProducts(24):
        assert (x @ torch.eye(3)).tolist() == x.tolist()


def test_the_loop_in_full_precision_is_honest() -> None:
    """What rejects the others is their precision, not the loop that they run in."""
    for kind in (("mlp", "sgd"), CNN):
        loop = AttackLoop(target(*kind))
        end = loop.train(target(*kind).honest[3], 3 * target().interval, target().interval)
        for ours, theirs in zip(end, target(*kind).honest[4], strict=True):
            np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-3, atol=1e-5)
