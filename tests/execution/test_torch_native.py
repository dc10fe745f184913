"""Native training of a captured step equals the user's eager loop, and the canonical executor tracks it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pol.errors import ProtocolError
from pol.execution.disputed_element import accumulators, body_values
from pol.execution.operand_sources import Sources
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.aten_graph import AtenGraph, AtenNode, AtenType, Ref, TorchDType
from pol.graph.capture import Capture, capture, to_words

ROWS, BATCH, STEPS = 300, 32, 50


class Digits(nn.Module):
    """The demo's network: 64-64-10."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


Setup = tuple[Capture, Digits, torch.optim.SGD, tuple[Tensor, Tensor], Tensor]


def setup() -> Setup:
    torch.manual_seed(3)
    model = Digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    dataset = (torch.rand(ROWS, 64).mul(16).round() / 16, torch.randint(0, 10, (ROWS,)))
    order = torch.randint(0, ROWS, (STEPS, BATCH))
    return capture(model, functional.cross_entropy, optimizer, dataset, order), model, optimizer, dataset, order


def tensors(result: Capture) -> list[Tensor]:
    return [torch.from_numpy(words.view(np.float32)).clone() for words in result.state]


def test_fifty_steps_equal_an_eager_loop() -> None:
    result, model, optimizer, dataset, order = setup()
    native = NativeExecutor(result.aten)
    reference = ReferenceExecutor(result.program, result.constants)
    state, words = tensors(result), result.state
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(dataset[0][order[step]]), dataset[1][order[step]])
        loss.backward()
        optimizer.step()
        state, observed = native.run(state, [*dataset, order], step)
        assert observed["loss"].item() == pytest.approx(loss.item(), rel=1e-6)
        if step < 12:
            outputs = reference.run(words, step)
            words = next_state(result.program, outputs)
            canonical = outputs[result.names.observed["loss"]].view(np.float32)
            assert float(canonical) == pytest.approx(loss.item(), rel=1e-5)
            for tensor, canonical in zip(state, words, strict=True):
                difference = np.linalg.norm(canonical.view(np.float32) - tensor.numpy())
                assert difference <= 1e-5 * np.linalg.norm(tensor.numpy())
    for tensor, parameter in zip(state, model.parameters(), strict=False):
        torch.testing.assert_close(tensor, parameter.detach(), rtol=1e-6, atol=1e-7)


def test_element_agrees_with_reference_on_a_whole_step() -> None:
    result = setup()[0]
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 7)
    random = np.random.default_rng(0)
    for number, node in enumerate(result.program.nodes):
        sources = Sources(result.state, result.constants, outputs[:number])
        for element in random.integers(0, node.type.numel, 2):
            chain = accumulators(node, 7, int(element), sources)
            assert chain[-1] == outputs[number].reshape(-1)[element]
            term = int(random.integers(0, node.terms))
            assert body_values(node, 7, int(element), term, int(chain[term]), sources)[-1] == chain[term + 1]


def test_constants_may_be_words_or_torch_integers() -> None:
    result, _, _, dataset, order = setup()
    native = NativeExecutor(result.aten)
    as_words = [torch.from_numpy(to_words("c", tensor).view(np.int32)) for tensor in (dataset[1], order)]
    one, _ = native.run(tensors(result), [*dataset, order], 3)
    two, _ = native.run(tensors(result), [dataset[0], *as_words], 3)
    for left, right in zip(one, two, strict=True):
        assert torch.equal(left, right)


def test_inputs_are_checked_and_left_alone() -> None:
    result, _, _, dataset, order = setup()
    native = NativeExecutor(result.aten)
    state, constants = tensors(result), [*dataset, order]
    before = [tensor.clone() for tensor in state]
    after, _ = native.run(state, constants, 0)
    assert all(torch.equal(left, right) for left, right in zip(before, state, strict=True))
    after[0].zero_()
    assert torch.equal(before[0], state[0])
    for wrong_state, wrong_constants in (
        (state[:-1], constants),
        ([state[0][:1], *state[1:]], constants),
        ([state[0].int(), *state[1:]], constants),
        (state, [dataset[0].long(), dataset[1], order]),
    ):
        with pytest.raises(ProtocolError):
            native.run(wrong_state, wrong_constants, 0)


def changed(graph: AtenGraph, **fields: object) -> AtenGraph:
    node = replace(graph.nodes[-1], **fields)  # type: ignore[arg-type]  # fields of AtenNode by name
    return replace(graph, nodes=(*graph.nodes[:-1], node))


@pytest.mark.parametrize(
    "operation",
    [
        "aten.as_strided_.default",
        "aten.set_.source_Tensor",
        "aten.add_.Tensor",
        "aten.add.out",
        "aten.from_file.default",
        "aten.resize_.default",
        "profiler._record_function_enter_new.default",
        "os.system",
        "",
    ],
)
def test_only_allowed_operations_run(operation: str) -> None:
    with pytest.raises(ProtocolError, match="allow-list"):
        NativeExecutor(changed(setup()[0].aten, operation=operation))


def test_what_torch_rejects_and_what_lies_about_its_type_is_bad_evidence() -> None:
    result, _, _, dataset, order = setup()
    last: AtenNode = result.aten.nodes[-1]
    wrong = [
        {"arguments": (Ref(0),)},
        {"arguments": ("x", "y")},
        {"arguments": (Ref(0), Ref(0), 1, 2, 3)},
        {"keywords": (("alpha", TorchDType("complex64")),)},
        {"keywords": (("nothing", 1),)},
        {"outputs": (AtenType("int32", last.outputs[0].shape),)},
        {"outputs": (last.outputs[0], last.outputs[0])},
        {"operation": "aten.mm.default"},
    ]
    for fields in wrong:
        with pytest.raises(ProtocolError):
            NativeExecutor(changed(result.aten, **fields)).run(tensors(result), [*dataset, order], 0)


class Heads(nn.Module):
    """What attention without a fused kernel does: heads are moved about, and only copies make them contiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.joint = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.view(-1, 4, 2, 4).transpose(1, 2) for part in self.joint(x).split(8, dim=2))
        weights = torch.softmax(q @ k.transpose(-2, -1), -1)
        return (weights @ v).transpose(1, 2).reshape(-1, 4, 8)


def test_views_of_what_does_not_lie_in_order() -> None:
    """The graph leaves copies out that only change strides, so a view may not be possible without one."""
    torch.manual_seed(5)
    model = Heads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset, order = (torch.rand(6, 4, 8), torch.rand(6, 4, 8)), torch.tensor([[0, 1], [2, 3], [4, 5]])
    result = capture(model, functional.mse_loss, optimizer, dataset, order)
    native, state = NativeExecutor(result.aten), tensors(result)
    for step in range(3):
        optimizer.zero_grad()
        functional.mse_loss(model(dataset[0][order[step]]), dataset[1][order[step]]).backward()
        optimizer.step()
        state, _ = native.run(state, [*dataset, order], step)
    for tensor, trained in zip(state, model.parameters(), strict=True):
        torch.testing.assert_close(tensor, trained.detach(), rtol=1e-5, atol=1e-6)
