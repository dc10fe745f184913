"""Ties in topk: training with torch's own kernels takes the places that the definition takes."""

import numpy as np
import pytest
import torch

from pol.execution.stock_torch.stable_order import StableOrder, stable_sort, stable_topk
from pol.training.task.task_randomness import TaskRandomness


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("rows", "k"), [((3, 64), 2), ((5, 8), 8), ((2, 40), 7), ((4, 3), 1)])
def test_equal_numbers_are_taken_in_the_order_of_their_places(rows: tuple[int, int], k: int, largest: bool) -> None:
    torch.manual_seed(1)
    numbers = torch.randint(0, 3, rows).float()
    values, places = stable_topk(numbers, k, 1, largest)
    order = np.argsort(-numbers.numpy() if largest else numbers.numpy(), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(numbers.numpy(), order, 1))
    np.testing.assert_array_equal(values.numpy(), torch.topk(numbers, k, 1, largest).values.numpy())


def test_a_router_of_zeros_takes_its_first_experts_in_a_loop_of_ones_own() -> None:
    router = torch.zeros(4, 64, requires_grad=True)
    with TaskRandomness(0).step(0):
        chosen, places = router.topk(2)
    assert places.tolist() == [[0, 1]] * 4
    chosen.sum().backward()
    assert router.grad is not None
    assert router.grad.sum(0).tolist() == [4.0, 4.0] + [0.0] * 62
    with StableOrder():
        assert torch.topk(torch.tensor([1.0, float("nan"), 1.0]), 2).indices.tolist() == [1, 0]
        assert torch.topk(torch.tensor(3.0), 1).indices.tolist() in ([0], 0)


def test_sort_takes_equal_numbers_by_place() -> None:
    """Torch's vectorized sort of long rows leaves them in another order."""
    numbers = torch.arange(5000.0).remainder(3)
    expected = torch.sort(numbers, stable=True)[1]
    with StableOrder():
        for places in (numbers.sort()[1], numbers.argsort(), torch.sort(numbers, dim=0)[1]):
            assert torch.equal(places, expected)
    assert torch.equal(stable_sort(numbers, descending=True)[1], torch.sort(numbers, descending=True, stable=True)[1])
