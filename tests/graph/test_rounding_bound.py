"""What rounding explains between torch's result of an operation and the program's: enough, and no more."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from operation_samples import graph_of
from pol.execution.self_check.rounding_bound import COUNT, DrawnErrors, RoundingBound
from pol.execution.stock_torch.torch_executor import ALLOWED
from pol.graph.aten_graph import Ref
from pol.graph.capture import Loop, capture

TERMS = 300


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


CALLS = {
    "mm.default": (drawn(5, TERMS), drawn(TERMS, 7)),
    "bmm.default": (drawn(2, 5, TERMS), drawn(2, TERMS, 7)),
    "addmm.default": (drawn(7), drawn(5, TERMS), drawn(TERMS, 7)),
    "sum.dim_IntList": (drawn(5, TERMS), [1]),
    "cumsum.default": (drawn(5, TERMS), 1),
    "_softmax.default": (drawn(5, TERMS), 1, False),
    "_log_softmax_backward_data.default": (
        drawn(5, 4) / 1024, drawn(5, 4).mul(30).log_softmax(1), 1, torch.float32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_order_of_terms_is_explained_and_an_error_is_not(name: str) -> None:
    graph, tensors = graph_of(name, CALLS[name])
    (node,) = graph.nodes
    values = {Ref(number): tensor for number, tensor in enumerate(tensors)}
    operation = ALLOWED[f"aten.{name}"]
    result = operation(*CALLS[name])
    double = [item.double() if isinstance(item, Tensor) else item for item in CALLS[name]]
    double = [torch.float64 if item == torch.float32 else item for item in double]
    bound = RoundingBound(node, values, TERMS)
    assert not bound.is_beyond(0, operation(*double).float(), result, is_drawn=True).any()
    size = float(result.abs().max())
    wrong = result.clone()
    wrong.view(-1)[3] += 2.0**-9 * size
    assert bound.is_beyond(0, wrong, result, is_drawn=True).nonzero().tolist() == [
        [int(i) for i in torch.unravel_index(torch.tensor(3), result.shape)]
    ]


def test_equal_terms_that_cancel_are_explained() -> None:
    """Of many equal rows the draws moved one by next to nothing, and its rounding seemed too large."""
    gradient, result = torch.full((100_000, 36), -0.0014089021), torch.full((100_000, 36), 1 / 36)
    graph, tensors = graph_of("_softmax_backward_data.default", (gradient, result, 1, torch.float32))
    (node,) = graph.nodes
    bound = RoundingBound(node, {Ref(number): tensor for number, tensor in enumerate(tensors)}, 36)
    one, other = torch.full_like(result, -6.4675e-12), torch.full_like(result, 3.2338e-12)
    assert not bound.is_beyond(0, one, other, is_drawn=True).any()
    assert bound.is_beyond(0, one * 1000, other, is_drawn=True).all()


GRADIENT, CHANNELS = torch.full((2, 1 << 15, 4, 4), 1e-6), torch.ones(1 << 15)
"""Behind a norm that is averaged, the same everywhere: the norm's own gradient takes it away again."""
DRAWN = drawn(*GRADIENT.shape)
NORMS = {
    "native_batch_norm_backward.default": (
        GRADIENT, DRAWN, CHANNELS, None, None, 0 * CHANNELS, CHANNELS, True, 1e-5, [True, True, True],
    ),
    "native_group_norm_backward.default": (
        GRADIENT, DRAWN, torch.zeros(2, 1 << 14), torch.ones(2, 1 << 14), CHANNELS, 2, 1 << 15, 16, 1 << 14,
        [True, True, True],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_equal_gradients_that_a_norm_takes_away_are_explained(name: str) -> None:
    """Of a million elements the draws moved some by next to nothing."""
    graph, tensors = graph_of(name, NORMS[name])
    (node,) = graph.nodes
    bound = RoundingBound(node, {Ref(number): tensor for number, tensor in enumerate(tensors)}, 16)
    one, other = torch.full_like(DRAWN, 4e-13), torch.zeros_like(DRAWN)  # some roundings of the gradient
    assert not bound.is_beyond(0, one, other, is_drawn=True).any()
    assert bound.is_beyond(0, one * 1000, other, is_drawn=True).float().mean() > 0.99


def test_drawn_errors_are_small_differ_by_place_and_repeat() -> None:
    tensor = torch.ones(3, COUNT - 1000)
    found = DrawnErrors(1, torch.float32).applied(tensor, 2.0**-10) - 1
    assert 2.0**-11 < float(found.abs().max()) <= 2.0**-10 + 2.0**-23
    assert not torch.equal(found[0], found[1])
    assert torch.equal(tensor, torch.ones_like(tensor))
    assert torch.equal(found, DrawnErrors(1, torch.float32).applied(tensor, 2.0**-10) - 1)
    few = DrawnErrors(2, torch.float32).applied(torch.ones(2, 2).T, 2.0**-10)
    assert few.unique().numel() == 4


class Scaled(nn.Linear):
    """A classifier that is sure of its answers."""

    def __init__(self, scale: float) -> None:
        super().__init__(16, 10)
        with torch.no_grad():
            self.weight.mul_(scale)


@pytest.mark.parametrize("seed", range(6))
def test_a_confident_classifier_is_captured(seed: int) -> None:
    """Probabilities next to 1: two of these six were refused for one rounding of them."""
    torch.manual_seed(seed)
    model = Scaled(20.0)
    rows = torch.randn(512, 16)
    labels = model(rows).argmax(1)
    order = torch.randint(0, len(rows), (10, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    assert capture(model, functional.cross_entropy, optimizer, (rows, labels), order).program.nodes


class Images(nn.Module):
    """A convolution and a batch norm over images of 2 x 2."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3, padding=1), norm, nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        images = self.conv(x.view(-1, 1, 2, 2))
        scores: Tensor = self.head(torch.relu(self.norm(images)).flatten(1))
        return scores


NORMED: dict[str, Callable[[], nn.Module]] = {
    "rows": lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)),
    "images": lambda: Images(nn.BatchNorm2d(4)),
    "untracked": lambda: Images(nn.BatchNorm2d(4, track_running_stats=False)),
    "no weights": lambda: Images(nn.BatchNorm2d(4, affine=False)),
    "neither": lambda: Images(nn.BatchNorm2d(4, affine=False, track_running_stats=False)),
    "layers": lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)),
    "groups": lambda: Images(nn.GroupNorm(2, 4)),
    "instances": lambda: Images(nn.InstanceNorm2d(4)),
}


@pytest.mark.parametrize("name", NORMED)
def test_mixed_precision_with_a_norm_is_captured(name: str) -> None:
    """Its statistics are binary32 as in torch; a trace calls them bfloat16."""
    torch.manual_seed(0)
    model = NORMED[name]()
    rows, labels = torch.randn(12, 4), torch.arange(12) % 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order, loop = torch.arange(12).reshape(2, 6), Loop(precision="bf16-mixed")
    assert capture(model, functional.cross_entropy, optimizer, (rows, labels), order, loop).program.nodes


class Short(nn.Module):
    """Rows in bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        return x.bfloat16()


@pytest.mark.parametrize("name", ["rows", "images", "layers"])
def test_norms_of_bfloat16_weights_are_captured(name: str) -> None:
    """Of batch norm a trace calls the running statistics binary32; layer norm adds gradients of rows in bfloat16."""
    torch.manual_seed(0)
    model = nn.Sequential(Short(), NORMED[name]().bfloat16())
    rows, labels = torch.randn(12, 4), torch.arange(12) % 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.arange(12).reshape(2, 6)
    assert capture(model, functional.cross_entropy, optimizer, (rows, labels), order).program.nodes


CONVOLUTION_BACKWARD = "aten.convolution_backward.default"
WITH_AVX512 = ALLOWED[CONVOLUTION_BACKWARD]


def without_avx512(gradient: Tensor, x: Tensor, weight: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """Gradients of a convolution as torch adds them up where oneDNN has no bfloat16: in bfloat16, part by part."""
    if x.dtype != torch.bfloat16:
        return tuple(WITH_AVX512(gradient, x, weight, *rest))
    wide, image, kernel = gradient.float(), x.float(), weight.float()
    _, _, by_bias = WITH_AVX512(wide, image, kernel, *rest)
    by_input, by_weight = torch.zeros_like(x), torch.zeros_like(weight)
    for place in range(weight[0, 0].numel() if rest[-1][0] else 0):
        only = torch.zeros_like(kernel)
        only.flatten(2)[:, :, place] = kernel.flatten(2)[:, :, place]
        by_input += WITH_AVX512(wide, image, only, *rest)[0].bfloat16()
    for row in range(len(x)):
        by_weight = (by_weight + WITH_AVX512(wide[[row]], image[[row]], kernel, *rest)[1]).bfloat16()
    return by_input, by_weight, by_bias.bfloat16()


def convolved(rank: int, rows: int) -> tuple[Any, ...]:
    """Operands of its gradients, all with one sign."""
    size = (4,) * rank
    conf = ([1] * rank, [1] * rank, [1] * rank, False, [0] * rank, 1, [True, True, True])
    operands = [drawn(rows, 3, *size), drawn(rows, 2, *size), drawn(3, 2, *(3,) * rank)]
    return (*(operand.abs().bfloat16() for operand in operands), [3], *conf)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_partial_sums_in_bfloat16_are_explained_and_an_error_is_not(rank: int) -> None:
    arguments = convolved(rank, 600)
    graph, tensors = graph_of(CONVOLUTION_BACKWARD.removeprefix("aten."), arguments)
    (node,) = graph.nodes
    values = {Ref(number): tensor for number, tensor in enumerate(tensors)}
    given = [item.double() if isinstance(item, Tensor) else item for item in arguments]
    once = [result.bfloat16() for result in WITH_AVX512(*given)]
    native = without_avx512(*arguments)
    bound = RoundingBound(node, values, 600 * 4**rank)
    assert float((once[1] / native[1]).max()) > 1.25  # the sum has nearly stopped growing
    for output, (mine, theirs) in enumerate(zip(once, native, strict=True)):
        assert not bound.is_beyond(output, mine, theirs, is_drawn=True).any()
    wrong = once[1] * (1 + 2.0**-5)
    assert bound.is_beyond(1, wrong, native[1], is_drawn=True).any()


@pytest.mark.parametrize("name", ["images", "groups"])
def test_a_processor_without_avx512_captures_convolutions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALLOWED, CONVOLUTION_BACKWARD, without_avx512)  # type: ignore[arg-type]  # a dictionary
    test_mixed_precision_with_a_norm_is_captured(name)


def test_the_rounding_of_a_share_close_to_one_is_explained() -> None:
    arguments = (drawn(8, 3), None, None, torch.zeros(3), torch.ones(3), True, 0.997, 1e-3)
    graph, tensors = graph_of("_native_batch_norm_legit_functional.default", arguments)
    (node,) = graph.nodes
    bound = RoundingBound(node, {Ref(number): tensor for number, tensor in enumerate(tensors)}, 8)
    variance = arguments[0].var(0)
    exact = (0.997 * variance.double() + (1 - 0.997)).float()
    rounded = (0.997 * variance.double() + (1 - torch.tensor(0.997).double())).float()
    assert not bound.is_beyond(4, rounded, exact, is_drawn=True).any()
    assert bound.is_beyond(4, exact * (1 + 2.0**-12), exact, is_drawn=True).all()
