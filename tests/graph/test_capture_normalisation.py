"""Models with normalisation layers, captured as they are, train as torch trains them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import chosen_rows
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import next_state
from pol.graph.capture import capture

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
