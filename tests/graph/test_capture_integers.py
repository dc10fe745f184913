"""Integers in a step, and normalisation layers: models with them, captured as they are, train as torch trains them.

Data as it lies on disk, products of int8 matrices; and what 32 bits may not hold is refused.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import chosen_rows
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.defined_results import DefinedResults
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
    with DefinedResults():
        found = layer(inputs)
        found.square().sum().backward()
    assert torch.allclose(found, expected, atol=0.05)
    exact = 2 * expected.reshape(-1, 32).t() @ inputs.reshape(-1, 64)
    assert torch.nn.functional.cosine_similarity(layer.weight.grad.flatten(), exact.flatten(), dim=0) > 0.999


def test_a_product_of_int8_is_near_that_of_floats() -> None:
    torch.manual_seed(4)
    left, right = torch.randn(9, 300), torch.randn(20, 300)
    with DefinedResults():
        assert torch.allclose(int8_product(left, right), left @ right.t(), atol=1)


def test_training_with_int8_products_has_one_result_everywhere() -> None:
    torch.manual_seed(5)
    model = with_int8_products(nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3)))
    step = captured(model, torch.randn(ROWS, 6))
    folds = [node for node, name in zip(step.program.nodes, step.names.nodes, strict=True) if "int_mm" in name.name]
    assert len(folds) == 5  # forward and two gradients each, but none of the inputs


class Net(nn.Module):
    count: Tensor

    def __init__(self, code: Callable[[Tensor], Tensor], counted: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.layer, self.code, self.counted = nn.Linear(4, 3), code, counted
        self.register_buffer("count", torch.tensor(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.counted is not None:
            self.count = self.counted(self.count)
        logits: Tensor = self.layer(x + self.code(x))
        return logits


def traced(
    code: Callable[[Tensor], Tensor], counted: Callable[[Tensor], Tensor] | None = None, steps: int = 2
) -> Capture:
    torch.manual_seed(0)
    net = Net(code, counted)
    data = [torch.randint(0, 100, (8, 4)).float(), torch.randint(0, 3, (8,))]
    data[0][0, 0], data[0][0, 1] = 0.0, 99.0
    order = torch.arange(8).reshape(2, 4).repeat(steps // 2, 1)
    return capture(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.layer.parameters(), 0.1), data, order)


def added_to_one_place(numbers: Tensor) -> Tensor:
    return torch.zeros(4, dtype=torch.int64).index_put((torch.zeros(4, dtype=torch.int64),), numbers, accumulate=True)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda x: ((x.long() * 100000003) % 1009).float(), r"mul\.Tensor gives 64-bit integers from 0 to 9900000297"),
        (lambda x: (x * 1e7).long().sum(1, keepdim=True).float(), r"sum\.dim_IntList gives 64-bit integers"),
        (lambda x: (x.long() * 10**6).cumsum(1).pow(2).float(), r"pow\.Tensor_Scalar gives 64-bit integers"),
        (lambda x: ((x * 3e7).long() > 5).float(), r"numbers of 0 to .*e\+09 become 64-bit integers"),
        (lambda x: x.exp().long().float(), r"become 64-bit integers.*x\.clamp\(0, 1000\)"),
        (lambda x: (torch.full((4,), 3_000_000_000) > 5).float(), r"full\.default gives 64-bit integers"),
        (lambda x: (x.long() > 3_000_000_000).float(), "the integer 3000000000 does not fit in 32 bits"),
        (lambda x: (x.long() + 3_000_000_000).float(), r"add\.Tensor gives 64-bit integers from 3000000000"),
        (lambda x: x.long().prod(1, keepdim=True).pow(4).float(), "gives 64-bit integers"),
        (lambda x: added_to_one_place(x.long()[0] * 20_000_000).float(), r"index_put\.default gives 64-bit integers"),
    ],
)
def test_integers_that_may_wrap_are_refused_with_their_line(code: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as refused:
        traced(code)
    assert "test_capture_integers.py:" in str(refused.value)


@pytest.mark.parametrize(
    "code",
    [
        lambda x: ((x.long() * 1000003) % 1009).float() / 1009,
        lambda x: (x * 1e5).long().sum(1, keepdim=True).float() / 1e7,
        lambda x: x.exp().clamp(0, 1000).long().float() / 1000,
        lambda x: ((x.log().clamp(0, 9) * 3).long() % 7).float(),
        lambda x: torch.where(x > 3, x.long(), -x.long()).float() / 100,
    ],
)
def test_integers_that_fit_are_those_of_torch(code: Callable[[Tensor], Tensor]) -> None:
    step = traced(code)
    outputs = CpuExecutor(step.program, step.constants).run(step.state, 0)
    assert len(outputs) == len(step.program.nodes)
    torch.manual_seed(0)
    net = Net(code)
    data, target = torch.randint(0, 100, (8, 4)).float(), torch.randint(0, 3, (8,))
    data[0, 0], data[0, 1] = 0.0, 99.0
    loss = nn.CrossEntropyLoss()(net(data[:4]), target[:4])
    own = outputs[step.names.observed["loss"]].view("float32")
    torch.testing.assert_close(torch.tensor(own), loss.detach(), rtol=1e-5, atol=1e-6)


def test_a_counter_is_bounded_by_the_number_of_steps() -> None:
    traced(torch.zeros_like, lambda count: count + 1000)
    traced(torch.zeros_like, lambda count: (count * 75) % 65537, steps=20)
    with pytest.raises(UnsupportedError, match=r"add\.Tensor gives 64-bit integers from 1073741825 to 22548578305"):
        traced(torch.zeros_like, lambda count: count + 2**30, steps=20)
    with pytest.raises(UnsupportedError, match=r"count holds integers that may leave 32 bits within 20 steps"):
        traced(torch.zeros_like, lambda count: count * 3, steps=20)


def test_a_clamp_to_the_greatest_float_that_fits_is_captured() -> None:
    traced(lambda x: ((x * 1e9).clamp(-2147483648.0, 2147483520.0).long() % 97).float())
    traced(lambda x: ((x * 1e9).clamp(max=2147483520.0).long() % 97).float())


def test_a_bound_that_rounds_to_more_than_fits_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"numbers of .* to 2\.14748e\+09 become 64-bit integers"):
        traced(lambda x: ((x * 1e9).clamp(0.0, 2147483647.0).long() % 97).float())


STEPS = 3


def image_model(norm: Callable[[], nn.Module]) -> nn.Module:
    return nn.Sequential(norm(), nn.Flatten(), nn.Linear(4 * 9, 3))


def row_model(norm: Callable[[], nn.Module]) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), norm(), nn.Linear(8, 3))


def frozen() -> nn.Module:
    norm = nn.BatchNorm1d(8)
    norm.running_mean, norm.running_var = torch.randn(8), torch.rand(8) + 0.5
    return norm.eval()


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layer": (lambda: row_model(lambda: nn.LayerNorm(8)), (5,)),
    "layer_without_weight": (lambda: row_model(lambda: nn.LayerNorm(8, elementwise_affine=False)), (5,)),
    "layer_without_bias": (lambda: row_model(lambda: nn.LayerNorm(8, bias=False)), (5,)),
    "rms": (lambda: row_model(lambda: nn.RMSNorm(8)), (5,)),
    "batch": (lambda: row_model(lambda: nn.BatchNorm1d(8)), (5,)),
    "batch_frozen": (lambda: row_model(frozen), (5,)),
    "batch_images": (lambda: image_model(lambda: nn.BatchNorm2d(4, momentum=0.7)), (4, 3, 3)),
    "batch_untracked": (lambda: image_model(lambda: nn.BatchNorm2d(4, track_running_stats=False)), (4, 3, 3)),
    "batch_without_weight": (lambda: row_model(lambda: nn.BatchNorm1d(8, affine=False)), (5,)),
    "group": (lambda: image_model(lambda: nn.GroupNorm(2, 4)), (4, 3, 3)),
    "group_without_weight": (
        lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4, affine=False), nn.Flatten(), nn.Linear(36, 3)),
        (4, 3, 3),
    ),
    "instance": (lambda: image_model(lambda: nn.InstanceNorm2d(4, affine=True)), (4, 3, 3)),
}


@pytest.mark.parametrize(
    "name", chosen_rows.named(MODELS, "layer", "rms", "batch_images", "group", "instance", others=pytest.mark.slow)
)
def test_training_follows_torch(name: str) -> None:
    torch.manual_seed(5)
    build, shape = MODELS[name]
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.randn(12, *shape), torch.randn(12, 3)
    order = torch.arange(12).reshape(3, 4)
    captured = capture(model, nn.functional.mse_loss, optimizer, (data, target), order)
    executor = CpuExecutor(captured.program, captured.constants)
    state = captured.state
    for step in range(STEPS):
        state = next_state(captured.program, executor.run(state, step))
        optimizer.zero_grad()
        loss: Tensor = nn.functional.mse_loss(model(data[order[step]]), target[order[step]])
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
    ours = dict(zip(captured.names.slots, state, strict=True))
    for slot, tensor in (*model.named_parameters(), *model.named_buffers()):
        expected = tensor.detach().numpy()
        view = ours[slot].view(np.int32 if expected.dtype == np.int64 else np.float32)
        np.testing.assert_allclose(view, expected, rtol=2e-5, atol=2e-6, err_msg=slot)
