"""Integers narrower than a word: data as it lies on disk, and products of int8 matrices."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.capture import Capture, capture
from pol.training.exact.int8_linear import Int8Linear, int8_product, quantized, with_int8_products

ROWS, BATCH = 12, 4


def captured(model: nn.Module, inputs: Tensor, seed: int = 0) -> Capture:
    """A step of SGD towards drawn numbers, whose results are equal in both executors."""
    torch.manual_seed(seed)
    targets = torch.randn(ROWS, 3)
    order = torch.randint(0, ROWS, (2, BATCH))
    step = capture(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), (inputs, targets), order)
    fast = CpuExecutor(step.program, step.constants, threads=2).run(step.state, 0)
    slow = ReferenceExecutor(step.program, step.constants).run(step.state, 0)
    for left, right in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(left, right)
    return step


class Pixels(nn.Module):
    """A layer over pixels as they are stored."""

    def __init__(self, least: int, scale: float) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.least, self.scale = least, scale

    def forward(self, pixels: Tensor) -> Tensor:
        numbers: Tensor = self.layer((pixels.float() - self.least) / self.scale)
        return numbers


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.bool])
def test_data_of_narrow_integers_is_captured_as_it_is(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    ends = (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1)
    inputs = torch.randint(*ends, (ROWS, 6)).to(dtype)
    captured(Pixels(ends[0], float(ends[1] - ends[0])), inputs)


class Brighter(nn.Module):
    """A layer over pixels that are made brighter in their own type."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.by = by

    def forward(self, pixels: Tensor) -> Tensor:
        numbers: Tensor = self.layer((pixels + self.by).float() / 255)
        return numbers


def test_a_sum_of_pixels_wraps_as_in_torch() -> None:
    inputs = torch.arange(ROWS * 6, dtype=torch.uint8).reshape(ROWS, 6)
    for by in (255 - ROWS * 6, 220):
        captured(Brighter(by), inputs)  # compared with torch's step


def test_floats_beyond_a_type_are_refused() -> None:
    class Rounds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            numbers: Tensor = self.layer((x * 100).to(torch.int8).float())
            return numbers

    with pytest.raises(UnsupportedError, match=r"floats become int8.*x.clamp\(-128, 127\)"):
        captured(Rounds(), torch.randn(ROWS, 6))


def test_a_quantized_row_is_within_half_a_level() -> None:
    torch.manual_seed(2)
    matrix = torch.randn(5, 70)
    matrix[3] = 0
    levels, scale = quantized(matrix)
    assert levels.dtype == torch.int8
    assert bool(((levels * scale - matrix).abs() <= scale * 0.5001).all())
    assert torch.equal(levels[3], torch.zeros(70, dtype=torch.int8))


def test_a_layer_of_int8_products_is_near_its_linear_layer() -> None:
    torch.manual_seed(3)
    linear = nn.Linear(64, 32)
    inputs = torch.randn(2, 7, 64)
    expected = linear(inputs)
    layer = with_int8_products(nn.Sequential(linear))[0]
    assert type(layer) is Int8Linear
    assert layer.weight is linear.weight
    found = layer(inputs)
    assert torch.allclose(found, expected, atol=0.05)
    found.square().sum().backward()
    exact = 2 * expected.reshape(-1, 32).t() @ inputs.reshape(-1, 64)
    assert torch.nn.functional.cosine_similarity(layer.weight.grad.flatten(), exact.flatten(), dim=0) > 0.999


def test_a_product_of_int8_is_near_that_of_floats() -> None:
    torch.manual_seed(4)
    left, right = torch.randn(9, 300), torch.randn(20, 300)
    assert torch.allclose(int8_product(left, right), left @ right.t(), atol=1)


def test_training_with_int8_products_has_one_result_everywhere() -> None:
    torch.manual_seed(5)
    model = with_int8_products(nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3)))
    step = captured(model, torch.randn(ROWS, 6))
    folds = [node for node, name in zip(step.program.nodes, step.names.nodes, strict=True) if "int_mm" in name.name]
    assert len(folds) == 5  # forward and two gradients each, but none of the inputs
