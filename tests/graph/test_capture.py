"""Ordinary PyTorch code is captured: right numbers, right lines, nothing of the user's is touched, clear refusals."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import Capture, capture, to_words
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import Component, StepProgram

ROWS, BATCH, STEPS = 60, 16, 4
Optimizer = Callable[[Any], torch.optim.Optimizer]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(11)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(12, 9)
        self.fc2 = nn.Linear(9, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.fc1(x)
        hidden = torch.relu(hidden)
        return self.fc2(hidden)


class Words(nn.Module):
    """An embedding, buffers that change and a buffer that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.out = nn.Linear(12, 5)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens: Tensor) -> Tensor:
        self.seen += 1
        return self.out(self.table(tokens).flatten(1) * self.scale)


class Shared(nn.Module):
    """Two inputs, tied weights, a frozen layer, a parameter that nothing uses, attention."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(12, 5)
        self.b = nn.Linear(12, 5)
        self.b.weight = self.a.weight
        self.unused = nn.Parameter(torch.ones(3))
        self.frozen = nn.Linear(5, 5).requires_grad_(False)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        left, right = self.a(x), self.b(z)
        return self.frozen(functional.softmax(left @ right.t(), -1) @ right)


OFFSET = torch.linspace(-1, 1, 5)


class Closing(nn.Module):
    """Reads a tensor that is neither a parameter nor a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) * OFFSET + torch.arange(5)


class Averaging(Closing):
    """Assigns to its buffer, keeps a size, changes a weight before it uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        self.rows = len(x)
        self.fc.weight.data.clamp_(-0.2, 0.2)
        output: Tensor = self.fc(x)
        self.mean = 0.9 * self.mean + 0.1 * output.sum(0).detach() / self.rows
        return output - self.mean


class Penalised(nn.Module):
    """A loss that reads the parameters of the model past its output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = [model]

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        weights = sum((p * p).sum() for p in self.model[0].parameters())
        return functional.cross_entropy(output, target, ignore_index=2) + 0.1 * weights


def hooked() -> nn.Module:
    model = layers(nn.Tanh(), nn.Dropout(0.0), nn.Dropout().eval())
    model[1].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    model[0].register_forward_hook(lambda module, inputs, output: output + 1)
    return model


def own_loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target)


def picky_loss(output: Tensor, target: Tensor) -> Tensor:
    chosen = output.log_softmax(1).gather(1, target[:, None])
    return -chosen.mean() + 0.01 * output.abs().sum()


def sgd(**options: Any) -> Optimizer:
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.1, **options})


def layers(*inner: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(12, 9), *inner, nn.Linear(9, 5))


def data() -> dict[str, Tensor]:
    return {
        "x": torch.randn(ROWS, 12),
        "z": torch.randn(ROWS, 12),
        "label": torch.randint(0, 5, (ROWS,)),
        "value": torch.randn(ROWS, 5),
        "tokens": torch.randint(0, 7, (ROWS, 3)),
    }


Setup = tuple[Callable[[], nn.Module], Callable[[Any, Any], Tensor], Optimizer, tuple[str, ...]]
MOMENTUM = sgd(momentum=0.9, weight_decay=1e-2)
SETUPS: dict[str, Setup] = {
    "mlp": (Net, own_loss, MOMENTUM, ("x", "label")),
    "nesterov": (Net, own_loss, sgd(momentum=0.9, nesterov=True), ("x", "label")),
    "plain": (Net, own_loss, sgd(), ("x", "label")),
    "maximize": (Net, nn.CrossEntropyLoss(reduction="sum"), sgd(lr=1e-3, maximize=True), ("x", "label")),
    "tensor lr": (Net, own_loss, sgd(lr=torch.tensor(0.1)), ("x", "label")),
    "tanh": (lambda: layers(nn.Tanh()), nn.MSELoss(), MOMENTUM, ("x", "value")),
    "sigmoid": (lambda: layers(nn.Sigmoid()), functional.mse_loss, MOMENTUM, ("x", "value")),
    "gelu": (lambda: layers(nn.GELU(approximate="tanh")), nn.SmoothL1Loss(), MOMENTUM, ("x", "value")),
    "silu": (lambda: layers(nn.SiLU(), nn.LeakyReLU()), nn.L1Loss(), sgd(), ("x", "value")),
    "elu": (lambda: layers(nn.ELU(), nn.Softplus(), nn.LogSigmoid()), nn.HuberLoss(), sgd(), ("x", "value")),
    "smoothing": (Net, nn.CrossEntropyLoss(label_smoothing=0.1), sgd(), ("x", "label")),
    "words": (Words, own_loss, MOMENTUM, ("tokens", "label")),
    "shared": (Shared, own_loss, MOMENTUM, ("x", "z", "label")),
    "averaging": (Averaging, own_loss, MOMENTUM, ("x", "label")),
    "penalised": (Net, Penalised, sgd(), ("x", "label")),
    "hooked": (hooked, own_loss, sgd(), ("x", "label")),
    "closing": (Closing, picky_loss, sgd(), ("x", "label")),
}


def captured(
    setup: Setup, steps: int = STEPS
) -> tuple[Capture, nn.Module, torch.optim.Optimizer, list[Tensor], Tensor]:
    make_model, loss, make_optimizer, fields = setup
    model = make_model()
    if loss is Penalised:
        loss = Penalised(model)
    optimizer = make_optimizer(model.parameters())
    tensors = data()
    dataset = [tensors[field] for field in fields]
    order = torch.randint(0, ROWS, (STEPS, BATCH))
    return capture(model, loss, optimizer, dataset, order), model, optimizer, dataset, order


@pytest.mark.parametrize("name", chosen_rows.each(SETUPS, 2, others=pytest.mark.slow))
def test_capture_trains_like_the_users_own_loop(name: str) -> None:
    loss = SETUPS[name][1]
    result, model, optimizer, dataset, order = captured(SETUPS[name])
    if loss is Penalised:
        loss = Penalised(model)
    native, reference = NativeExecutor(result.aten), ReferenceExecutor(result.program, result.constants)
    state = [torch.from_numpy(words.view(np.int32)).clone() for words in result.state]
    state = [
        tensor.view(torch.float32) if entry.type.dtype == "float32" else tensor
        for tensor, entry in zip(state, result.aten.slots, strict=True)
    ]
    constants = [*dataset, order, *([OFFSET, torch.arange(5)] if name == "closing" else [])]
    constants = constants[: len(result.constants)]
    words = result.state
    for step in range(STEPS):
        optimizer.zero_grad()
        value = loss(model(*(tensor[order[step]] for tensor in dataset[:-1])), dataset[-1][order[step]])
        value.backward()
        optimizer.step()
        expected = value.item()
        state, observed = native.run(state, constants, step)
        outputs = reference.run(words, step)
        words = next_state(result.program, outputs)
        assert observed["loss"].item() == pytest.approx(expected, rel=1e-6)
        canonical = outputs[result.names.observed["loss"]].view(np.float32)
        assert float(canonical) == pytest.approx(expected, rel=1e-5)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for entry, tensor, canonical in zip(result.aten.slots, state, words, strict=True):
        if entry.component is not Component.OPTIMIZER:
            torch.testing.assert_close(tensor, own[entry.name].detach(), rtol=1e-5, atol=1e-6, check_dtype=False)
        if tensor.is_floating_point():
            np.testing.assert_allclose(canonical.view(np.float32), tensor.numpy(), rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(canonical.view(np.int32), tensor.numpy())


@pytest.mark.parametrize("name", ["mlp", "words", "shared"])
def test_capture_touches_nothing_and_is_deterministic(name: str) -> None:
    make_model, loss, make_optimizer, fields = SETUPS[name]
    model = make_model()
    optimizer = make_optimizer(model.parameters())
    before = copy.deepcopy(model.state_dict())
    groups = copy.deepcopy([{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups])
    tensors = data()
    dataset = [tensors[field] for field in fields]
    order = torch.randint(0, ROWS, (STEPS, BATCH))
    generator = torch.get_rng_state()
    first = capture(model, loss, optimizer, dataset, order)
    second = capture(model, loss, optimizer, dataset, order)
    assert first.program.to_bytes() == second.program.to_bytes()
    assert first.names == second.names
    assert torch.equal(torch.get_rng_state(), generator)
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[key])
    assert not optimizer.state
    assert [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups] == groups
    assert all(parameter.grad is None for parameter in model.parameters())
    StepProgram.from_bytes(first.program.to_bytes())
    assert ProgramNames.from_dict(first.names.to_dict()) == first.names


def test_existing_optimizer_state_is_taken_over() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.3)
    tensors = data()
    dataset, order = (tensors["x"], tensors["label"]), torch.arange(32).reshape(2, 16)
    own_loss(model(dataset[0][:16]), dataset[1][:16]).backward()
    optimizer.step()
    result = capture(model, own_loss, optimizer, dataset, order)
    buffers = [optimizer.state[parameter]["momentum_buffer"] for parameter in model.parameters()]
    for words, buffer in zip(result.state[4:], buffers, strict=True):
        np.testing.assert_array_equal(words, to_words("b", buffer))
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 1)
    optimizer.zero_grad()
    own_loss(model(dataset[0][16:32]), dataset[1][16:32]).backward()
    optimizer.step()
    for words, tensor in zip(next_state(result.program, outputs), [*model.parameters(), *buffers], strict=True):
        np.testing.assert_allclose(words.view(np.float32), tensor.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_every_node_knows_its_line() -> None:
    result = captured(SETUPS["mlp"])[0]
    sources = {node.name: node.source for node in result.names.nodes}
    lines = {
        "forward.addmm_1.product": "hidden = self.fc1(x)",
        "forward.relu_1": "hidden = self.fc1(x); hidden = torch.relu(hidden)",
        "forward.addmm_2.product": "return self.fc2(hidden)",
        "forward.log_softmax_1": "return functional.cross_entropy(output, target)",
        "backward.log_softmax_backward_data_1": "return functional.cross_entropy(output, target)",
        "backward.threshold_backward_1": "hidden = torch.relu(hidden)",
        "backward.mm_1": "return self.fc2(hidden)",
        "fc1.weight.grad": "hidden = self.fc1(x)",
        "fc2.bias.grad": "return self.fc2(hidden)",
    }
    own = Path(__file__).read_text().splitlines()
    for name, code in lines.items():
        places = [place.split(":", 2) for place in sources[name].split("; ")]
        assert [shown.strip() for _, _, shown in places] == code.split("; ")
        assert {file for file, _, _ in places} == {"test_capture.py"}
        assert [own[int(number) - 1].strip() for _, number, _ in places] == code.split("; ")
    assert sources["update.fc1.weight"] == "optimizer.step: SGD (fc1.weight)"
    assert sources["update.fc2.bias:momentum_buffer"] == "optimizer.step: SGD (fc2.bias)"
    assert sources["batch.0"] == "batch = dataset[order[step]]"
    assert all(sources.values())
    assert len(sources) == len(result.names.nodes)


def test_models_without_own_code_are_named_by_module() -> None:
    sources = {node.name: node.source for node in captured(SETUPS["sigmoid"])[0].names.nodes}
    assert sources["forward.sigmoid_1"] == "model.0: Linear; model.1: Sigmoid"
    assert sources["0.weight.grad"] == "model.0: Linear"
    assert sources["forward.mean_1"] == "loss: mse_loss"
    own = {node.name: node.source for node in captured(SETUPS["tanh"])[0].names.nodes}
    assert own["forward.mean_1"] == "loss: MSELoss"


def test_nodes_run_forward_backward_update() -> None:
    result = captured(SETUPS["mlp"])[0]
    phases = [name.name.split(".")[0] for name in result.names.nodes]
    ranks = [{"batch": 0, "forward": 1, "update": 3}.get(phase, 2) for phase in phases]
    assert ranks == sorted(ranks)
    assert result.names.slots[:2] == ("fc1.weight", "fc1.bias")
    assert result.names.constants == ("data.0", "data.1", "order")
    assert [slot.component for slot in result.program.slots] == [Component.PARAMETER] * 4 + [Component.OPTIMIZER] * 4
    assert {result.names.nodes[slot.producer].name for slot in result.program.slots} == {
        f"update.{slot}" for slot in result.names.slots
    }


class Branch(Closing):
    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.fc(x)
        if output.sum() > 0:
            return output
        return -output


class Masked(Closing):
    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.fc(x)
        return output[output > 0].sort()[0].sum() + output


class Inverse(Closing):
    def forward(self, x: Tensor) -> Tensor:
        return torch.special.i0(self.fc(x))


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        (Branch, "if output.sum() > 0:", "depends on the values"),
        (Masked, "return output[output > 0].sort()[0].sum() + output", "sort takes rows"),
        (Inverse, "return torch.special.i0(self.fc(x))", "aten.i0.default has no definition"),
        (
            lambda: layers(nn.Unflatten(1, (1, 3, 3)), nn.FractionalMaxPool2d(1, output_size=3), nn.Flatten()),
            "model.2: FractionalMaxPool2d",
            "fractional_max_pool2d",
        ),
    ],
)
def test_what_cannot_be_captured_is_named_with_its_line(
    model: Callable[[], nn.Module], code: str, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        captured((model, own_loss, sgd(), ("x", "label")))
    assert code in str(caught.value)


def refused(message: str, **changes: Any) -> None:
    tensors = data()
    arguments = {
        "model": Net(),
        "loss": own_loss,
        "dataset": (tensors["x"], tensors["label"]),
        "order": torch.zeros((2, 3), dtype=torch.int64),
        **changes,
    }
    arguments.setdefault("optimizer", torch.optim.SGD(arguments["model"].parameters(), lr=0.1))
    with pytest.raises(UnsupportedError, match=message):
        capture(**arguments)


def test_wrong_arguments_are_refused() -> None:
    x, label = data()["x"], data()["label"]
    refused("float32", model=Net().double())
    refused("same number of rows", dataset=(x, label[:-1]))
    refused("target last", dataset=())
    refused("32 bits", dataset=(x, label + 2**40), loss=lambda output, target: (output.sum(1) * target).sum())
    refused("data.0 of the data set is float64", dataset=(x.double(), label))
    refused("order", order=torch.zeros((2, 3)))
    refused("order", order=torch.zeros(3, dtype=torch.int64))
    refused("does not have", order=torch.full((2, 3), ROWS))
    refused("not a parameter", optimizer=torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))
    refused("one float32 number", loss=lambda output, target: output)
    refused("does not depend", loss=lambda output, target: target.float().sum())


def test_a_frozen_parameter_and_an_unused_one_keep_their_words() -> None:
    result = captured(SETUPS["shared"])[0]
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 0)
    for name in ("frozen.weight", "unused"):
        slot = result.names.slots.index(name)
        np.testing.assert_array_equal(next_state(result.program, outputs)[slot], result.state[slot])
    assert "unused:momentum_buffer" in result.names.slots
    assert "frozen.weight:momentum_buffer" not in result.names.slots
