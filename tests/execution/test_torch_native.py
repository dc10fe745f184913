"""Training with torch's kernels equals the user's loop, step by step, and the canonical executor tracks it."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from digits_training import loaded
from lab.benchmarks.training_bits import MODELS, compare, compare_with_reference
from operation_samples import CASES, full_name, graph_of
from pol.errors import ProtocolError
from pol.execution import _kernels
from pol.execution.reference import ReferenceExecutor, next_state
from pol.execution.stock_torch.defined_results import DefinedResults, exact_int_mm, stable_sort, stable_topk
from pol.execution.stock_torch.torch_executor import ALLOWED, NativeExecutor, to_module
from pol.graph.aten_graph import AtenGraph, AtenNode, AtenType, Ref, TorchDType
from pol.graph.capture import Capture, capture, to_words
from pol.training.task.task_randomness import TaskRandomness
from pol.training.task.task_training import to_tensor

ROWS, BATCH, STEPS = 300, 32, 50
ZERO, STEP = torch.tensor(0.0), torch.tensor(3)


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
        "aten.as_strided_.default", "aten.set_.source_Tensor", "aten.add_.Tensor", "aten.add.out",
        "aten.from_file.default", "aten.resize_.default", "profiler._record_function_enter_new.default",
        "os.system", "",
    ],
)  # fmt: skip
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


INDICES = {
    "embedding.default": (1, 0, 5), "embedding_dense_backward.default": (1, 0, 4), "gather.default": (1, 0, 7),
    "index_select.default": (1, 0, 5), "index_add.default": (1, 0, 3), "index_copy.default": (1, 0, 3),
    "index.Tensor": (1, -5, 5), "index_put.default": (1, -5, 5), "scatter.src": (1, 0, 4), "scatter.value": (1, 0, 4),
    "scatter_add.default": (1, 0, 7), "scatter_reduce.two": (1, 0, 5), "nll_loss_forward.default": (1, 0, 7),
    "nll_loss_backward.default": (2, 0, 7), "nll_loss2d_forward.default": (1, 0, 7),
    "nll_loss2d_backward.default": (2, 0, 7), "max_pool2d_with_indices_backward.default": (2, 0, 42),
    "max_pool3d_with_indices_backward.default": (2, 0, 120), "_grouped_mm.default": (2, 0, 9),
}  # fmt: skip
"""By operation, of its first sample: which tensor holds indices, the least index and the one behind the last."""


def test_every_operation_that_reads_indices_has_a_row() -> None:
    found = set()
    for operation in CASES:
        arguments = ALLOWED[full_name(operation)]._schema.arguments  # type: ignore[attr-defined]  # overloads have one
        names = {own.name for own in arguments if "Tensor" in str(own.type)}
        found |= {operation} if names & {"index", "indices", "target", "offs"} else set()
    assert found == set(INDICES)


@pytest.mark.parametrize("operation", INDICES)
def test_torch_never_sees_an_index_that_does_not_exist(operation: str) -> None:
    place, least, size = INDICES[operation]
    graph, given = graph_of(operation, CASES[operation][0])
    for number in (least, size - 1, least - 1, size, 2**31 - 1):
        given[place] = given[place].clone()
        given[place].view(-1)[-1] = number
        runs = lambda: NativeExecutor(graph).run(given, [ZERO], 3), lambda: to_module(graph)(*given, ZERO, STEP)
        for run, error, found in zip(runs, (ProtocolError, RuntimeError), (str(number), "an index"), strict=True):
            message = f"it: aten.{operation} reads .*{found}.* {size} "
            with nullcontext() if least <= number < size else pytest.raises(error, match=message):
                run()


@pytest.mark.parametrize(
    ("operation", "change"),
    [
        ("_safe_softmax.default", {"arguments": (Ref(0), 1, -1)}),
        ("sum.default", {"keywords": (("dtype", 999),)}),
        ("clone.default", {"keywords": (("memory_format", 77),)}),
        ("full.default", {"keywords": (("layout", 9),)}),
        ("full.default", {"keywords": (("device", "meta"),)}),
        ("transpose.int", {"arguments": (Ref(0), 0, TorchDType("float32"))}),
        ("gather.default", {"arguments": (Ref(0), 1), "keywords": (("index", Ref(1)),)}),
        ("gather.default", {"arguments": (Ref(0), Ref(1), Ref(1))}),
        ("nll_loss_forward.default", {"arguments": (Ref(0), Ref(1), None, 1, Ref(1))}),
        ("index.Tensor", {"arguments": (Ref(0), (1,))}),
    ],
)
def test_arguments_that_torch_takes_for_something_else_are_refused(operation: str, change: dict[str, Any]) -> None:
    graph, tensors = graph_of(operation, CASES[operation][0])
    with pytest.raises(ProtocolError, match=r"it: aten\.\w+\.\w+ (takes no|has impossible arguments)"):
        NativeExecutor(changed(graph, **change)).run(tensors, [ZERO], 3)


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


@pytest.mark.parametrize("operation", CASES)
def test_every_operation_gives_what_the_executor_gives(operation: str) -> None:
    for case in CASES[operation]:
        graph, state = graph_of(operation, case)
        constant = torch.tensor(0.0)
        _, observed = NativeExecutor(graph).run(state, [constant], 3)
        found = to_module(graph)(*state, constant, torch.tensor(3))[len(state) :]
        for one, other in zip(observed.values(), found, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.contiguous().numpy(force=True).tobytes() == other.contiguous().numpy(force=True).tobytes()


def test_double_precision_lies_near_and_isn_t_the_same() -> None:
    task = loaded()
    constants = [to_tensor(e.type, words) for e, words in zip(task.aten.constants, task.constants, strict=True)]
    state = [to_tensor(e.type, words) for e, words in zip(task.aten.slots, task.initial_state, strict=True)]
    single, _ = NativeExecutor(task.aten).run(state, constants, 0)
    wide = [t.double() if t.dtype == torch.float32 else t for t in (*state, *constants)]
    double = to_module(task.aten, real=torch.float64)(*wide, torch.tensor(0))[: len(state)]
    assert all(t.dtype == torch.float64 for t in double)
    gap = max(float((a - b).abs().max()) for a, b in zip(single, double, strict=True))
    assert 1e-12 < gap < 1e-6


def test_what_isn_t_allowed_is_never_looked_up() -> None:
    graph, _ = graph_of("add.Tensor", CASES["add.Tensor"][0])
    for node in (
        replace(graph.nodes[0], operation="aten.set_.source_Tensor"),
        replace(graph_of("full.default", CASES["full.default"][0])[0].nodes[0], operation="os.system"),
    ):
        with pytest.raises(ProtocolError, match="allow-list"):
            to_module(replace(graph, nodes=(node,)))


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
    with DefinedResults():
        assert torch.topk(torch.tensor([1.0, float("nan"), 1.0]), 2).indices.tolist() == [1, 0]
        assert torch.topk(torch.tensor(3.0), 1).indices.tolist() in ([0], 0)


def test_sort_takes_equal_numbers_by_place() -> None:
    """Torch's vectorized sort of long rows leaves them in another order."""
    numbers = torch.arange(5000.0).remainder(3)
    expected = torch.sort(numbers, stable=True)[1]
    with DefinedResults():
        for places in (numbers.sort()[1], numbers.argsort(), torch.sort(numbers, dim=0)[1]):
            assert torch.equal(places, expected)
    assert torch.equal(stable_sort(numbers, descending=True)[1], torch.sort(numbers, descending=True, stable=True)[1])


def test_products_of_int8_never_saturate() -> None:
    """On AVX2 without VNNI torch adds two of them in 16 bits: 2 * 127 * (127 + 128) is no such number."""
    left, right = torch.full((32, 64), 127, dtype=torch.int8), torch.full((64, 8), 127, dtype=torch.int8)
    expected = torch.full((32, 8), 64 * 127 * 127, dtype=torch.int32)
    assert torch.equal(exact_int_mm(left, right), expected)
    with DefinedResults():
        assert torch.equal(torch._int_mm(left, right), expected)
    assert torch.equal(exact_int_mm(-left, right), -expected)


@pytest.mark.parametrize("name", MODELS)
def test_instruction_sets_threads_and_the_reference_agree(name: str) -> None:
    captured = MODELS[name](4)
    states = compare(captured, 4)
    assert states.compared >= 4 * sum(array.nbytes for array in captured.state) * (2 * len(_kernels.isas()) - 1)
    assert states.differing == 0
    nodes = compare_with_reference(captured, 1)
    assert nodes.compared > 4_000
    assert nodes.differing == 0
