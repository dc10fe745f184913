"""Vision models are captured as they are: one step gives torch's next state, and the kernels the reference's bits."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from vision import CNN, Autoencoder, UNet, Waves

from graph.test_lowering_operations import outputs_of
from lab.benchmarks.measured_models import ResNet18
from pol.execution.reference import next_state
from pol.graph.capture import capture

Case = tuple[Callable[[], nn.Module], tuple[int, ...], Callable[[Any, Any], Tensor]]
CLASSES, IMAGES = functional.cross_entropy, functional.mse_loss
MODELS: dict[str, Case] = {
    "cnn": (CNN, (1, 8, 8), CLASSES),
    "resnet18": (lambda: ResNet18(3, 2), (3, 8, 8), CLASSES),
    "resnet18 with a large stem": (lambda: ResNet18(3, 1, "large"), (3, 35, 35), CLASSES),
    "unet": (UNet, (1, 8, 8), IMAGES),
    "autoencoder": (Autoencoder, (1, 8, 12), IMAGES),
    "waves": (Waves, (2, 13), CLASSES),
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
}


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("cnn", "sgd"),
        ("cnn", "adamw"),
        *(pytest.param(name, "sgd", marks=pytest.mark.slow) for name in ("resnet18", "unet", "autoencoder", "waves")),
        pytest.param("autoencoder", "adamw", marks=pytest.mark.slow),
        pytest.param("resnet18 with a large stem", "sgd", marks=pytest.mark.slow),
    ],
)
def test_one_step_is_that_of_torch_and_the_same_everywhere(name: str, optimizer: str) -> None:
    torch.manual_seed(4)
    make, shape, loss = MODELS[name]
    model = make()
    inputs = torch.randn(6, *shape)
    targets = torch.randint(0, 3, (6,)) if loss is CLASSES else torch.rand(6, *shape)
    order = torch.tensor([[4, 0, 5], [1, 2, 3]])
    captured = capture(model, loss, OPTIMIZERS[optimizer](model.parameters()), (inputs, targets), order)

    state = captured.state
    outputs = outputs_of(captured.program, state, captured.constants)

    before = copy.deepcopy(model.state_dict())
    eager = OPTIMIZERS[optimizer](model.parameters())
    rows = order[0]
    loss(model(inputs[rows]), targets[rows]).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    eager.step()
    after = model.state_dict()
    for slot, words in zip(captured.aten.slots, next_state(captured.program, outputs), strict=True):
        if slot.name not in after:
            continue
        expected = after[slot.name].numpy()
        if slot.type.dtype != "float32":
            np.testing.assert_array_equal(words.view(np.int32), expected)
            continue
        got, gradient = words.view(np.float32), gradients.get(slot.name)
        # AdamW's first step is the sign of the gradient: where that is next to nothing, so is what it says.
        sure = np.ones(got.shape, bool)
        if optimizer == "adamw" and gradient is not None:
            sure = np.abs(gradient.numpy()) > 1e-5
        np.testing.assert_allclose(got[sure], expected[sure], rtol=2e-4, atol=2e-5, err_msg=slot.name)
        assert slot.name.endswith("running_mean") or not np.array_equal(got, before[slot.name].numpy()), slot.name
