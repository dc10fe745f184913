"""Mixed precision and bfloat16 models: captured as torch runs them, with equal bits in both executors."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, AdamW

from graph.test_lowering_operations import outputs_of
from pol.execution.reference import next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.aten_graph import AtenGraph
from pol.graph.capture import Capture, Loop, capture
from pol.training.task.task_training import to_tensor, to_words

ROWS, BATCH, STEPS = 40, 8, 5
X, LABELS = torch.randn(ROWS, 6, generator=torch.manual_seed(2)), torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (STEPS, BATCH), generator=torch.manual_seed(3))
MIXED = Loop(precision="bf16-mixed", clip_norm=1.0, accumulation=2)


class Net(nn.Module):
    """Tied weights, and attention over the batch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.inner = nn.Linear(6, 6)
        self.outer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.silu(self.inner(x))
        hidden = hidden + self.inner(hidden)
        mixed = torch.softmax(hidden @ hidden.t(), -1) @ hidden
        output: Tensor = self.outer(mixed)
        return output.float()


def run(result: Capture) -> tuple[dict[str, Tensor], dict[str, Tensor], list[float]]:
    """State after native and after canonical training, and the native losses."""
    native = NativeExecutor(AtenGraph.from_dict(result.aten.to_dict()))
    types = [entry.type for entry in result.aten.slots]
    constants = [to_tensor(e.type, words) for e, words in zip(result.aten.constants, result.constants, strict=True)]
    state = [to_tensor(type_, words) for type_, words in zip(types, result.state, strict=True)]
    words, losses = result.state, []
    for step in range(STEPS):
        state, observed = native.run(state, constants, step)
        losses.append(float(observed["loss"]))
        words = next_state(result.program, outputs_of(result.program, words, result.constants, step))
    for type_, word in zip(types, words, strict=True):
        if type_.dtype == "bfloat16":
            assert not np.any(word & np.uint32(0xFFFF))
    for type_, tensor in zip(types, state, strict=True):
        assert torch.equal(to_tensor(type_, to_words(type_, tensor)), tensor)
    after = [to_tensor(type_, word) for type_, word in zip(types, words, strict=True)]
    names = result.names.slots
    return dict(zip(names, state, strict=True)), dict(zip(names, after, strict=True)), losses


def assert_followed(after: dict[str, Tensor], start: dict[str, Tensor], expected: nn.Module, tolerance: float) -> None:
    """The way that each parameter went, relative to its length."""
    for name, parameter in expected.named_parameters():
        end = parameter.detach().float()
        missed, way = float((after[name].float() - end).norm()), float((end - start[name].float()).norm())
        assert missed <= tolerance * way, f"{name} misses by {missed / way:.1e}"


def test_mixed_precision_trains_like_torchs_autocast() -> None:
    model = Net()
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = AdamW(model.parameters(), 1e-2, foreach=False)
    result = capture(model, functional.cross_entropy, optimizer, (X, LABELS), ORDER, MIXED)
    state, after, losses = run(result)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for rows in ORDER[step].reshape(2, -1):
            with torch.autocast("cpu", torch.bfloat16):
                loss = functional.cross_entropy(model(X[rows]), LABELS[rows]) / 2
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        assert losses[step] == pytest.approx(total, rel=1e-4)
    assert {entry.type.dtype for entry in result.aten.slots} == {"float32"}
    assert any(type_.dtype == "bfloat16" for node in result.aten.nodes for type_ in node.outputs)
    assert_followed(state, start, model, 1e-2)
    assert_followed(after, start, model, 0.05)


@pytest.mark.parametrize("ema", [None, 0.5])
def test_a_bfloat16_model_rounds_its_state(ema: float | None) -> None:
    model = Net().to(torch.bfloat16)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = SGD(model.parameters(), 0.3, momentum=0.5, foreach=False)
    data = (X.to(torch.bfloat16), LABELS)
    result = capture(model, functional.cross_entropy, optimizer, data, ORDER, Loop(ema=ema))
    assert {entry.type.dtype for entry in result.aten.slots} == {"bfloat16"}
    state, after, losses = run(result)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(data[0][ORDER[step]]), LABELS[ORDER[step]])
        loss.backward()
        optimizer.step()
        assert losses[step] == pytest.approx(loss.item(), rel=2e-2)
    assert_followed(state, start, model, 0.15)
    assert_followed(after, start, model, 0.3)


def test_a_model_may_use_autocast_itself() -> None:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(x)

    inside, around = Own(), Net()
    programs = [
        capture(model, functional.cross_entropy, SGD(model.parameters(), 0.1), (X, LABELS), ORDER, loop).program
        for model, loop in ((inside, Loop()), (around, Loop(precision="bf16-mixed")))
    ]
    assert programs[0] == programs[1]
