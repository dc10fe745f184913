"""What the models of the circuits are written with is what torch has, as near as sums and products come."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from pol.zk import step_functions


def gradient(of: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Of a loss, by autograd, at z."""
    z = z.clone().requires_grad_()
    (found,) = torch.autograd.grad(of(z), z)
    return found


@pytest.mark.parametrize(("width", "near"), [(1.0, 1e-4), (2.0, 2e-3), (4.0, 2e-2)])
def test_the_gradients_are_torchs(width: float, near: float) -> None:
    generator = torch.Generator().manual_seed(1)
    z = (torch.rand(64, 5, generator=generator, dtype=torch.float64) * 2 - 1) * width
    labels = functional.one_hot(torch.arange(64) % 5, 5).to(torch.float64)
    weight = torch.rand(64, 5, generator=generator, dtype=torch.float64)

    def same(ours: Callable[[Tensor], Tensor], theirs: Callable[[Tensor], Tensor]) -> None:
        torch.testing.assert_close(ours(z), theirs(z), rtol=0, atol=near * 64)
        torch.testing.assert_close(gradient(ours, z), gradient(theirs, z), rtol=0, atol=near)

    same(
        lambda z: step_functions.cross_entropy(z, labels),
        lambda z: functional.cross_entropy(z, labels, reduction="sum"),
    )
    same(
        lambda z: step_functions.binary_cross_entropy(z, labels),
        lambda z: functional.binary_cross_entropy_with_logits(z, labels, reduction="sum"),
    )
    same(
        lambda z: (step_functions.softmax(z) * weight).sum(),
        lambda z: (torch.softmax(z, -1) * weight).sum(),
    )


def test_what_a_mask_hides_has_no_part() -> None:
    z, mask = torch.rand(4, 4, dtype=torch.float64), torch.ones(4, 4, dtype=torch.float64).tril()
    hidden = z.masked_fill(mask == 0, -torch.inf)
    torch.testing.assert_close(step_functions.softmax(z, mask), torch.softmax(hidden, -1), rtol=0, atol=1e-4)
    assert (gradient(lambda z: (step_functions.softmax(z, mask) * z.detach()).sum(), z)[mask == 0] == 0).all()


def test_far_below_zero_the_exponential_stays_small_and_positive() -> None:
    z = torch.linspace(-100, 4, 1000, dtype=torch.float64)
    powers = step_functions.exponential(z)
    assert (powers.diff() >= 0).all()
    assert 1e-4 < float(powers[0]) < 2e-4


@pytest.mark.parametrize("width", [0.0, 1.0, 8.0, 100.0])
def test_logits_of_any_size(width: float) -> None:
    generator = torch.Generator().manual_seed(2)
    z = (torch.rand(64, 7, generator=generator, dtype=torch.float64) * 2 - 1) * width
    labels = functional.one_hot(torch.arange(64) % 7, 7).to(torch.float64)
    torch.testing.assert_close(step_functions.greatest(z), z.max(-1, keepdim=True).values)
    found = gradient(lambda z: step_functions.stable_cross_entropy(z, labels), z)
    expected = gradient(lambda z: functional.cross_entropy(z, labels, reduction="sum"), z)
    torch.testing.assert_close(found, expected, rtol=0, atol=2.5e-5)
