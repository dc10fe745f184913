"""Convolutions of every geometry give torch's numbers, and the kernels the bits of the reference."""

import itertools

import numpy as np
import pytest
import torch
from test_lowering_operations import HOSTILE, graph_of, outputs_of
from torch import Tensor

from pol.execution.stock_torch.torch_executor import ALLOWED
from pol.graph.capture import to_words
from pol.graph.lowering import lower

Geometry = tuple[tuple[int, ...], int, tuple[int, ...], int, int, int, int]
# Input (examples, channels, positions...), output channels, kernel, stride, padding, dilation, groups.
GEOMETRIES: list[Geometry] = [
    ((2, 3, 7, 8), 4, (3, 3), 1, 1, 1, 1), ((2, 3, 8, 8), 4, (3, 3), 2, 1, 1, 1),
    ((1, 2, 7, 9), 3, (3, 3), 2, 0, 1, 1), ((2, 3, 8, 6), 4, (1, 1), 2, 0, 1, 1),
    ((2, 3, 8, 6), 4, (1, 1), 1, 0, 1, 1), ((2, 3, 8, 6), 2, (1, 1), 2, 1, 1, 1),
    ((2, 4, 9, 9), 6, (3, 2), 1, 1, 2, 2), ((1, 4, 11, 10), 4, (3, 3), 2, 2, 2, 1),
    ((2, 4, 6, 6), 4, (3, 3), 1, 1, 1, 4), ((2, 2, 8, 8), 3, (4, 4), 2, 1, 1, 1),
    ((2, 2, 8, 8), 3, (4, 4), 4, 0, 1, 1), ((1, 1, 14, 14), 2, (7, 7), 2, 3, 1, 1),
    ((1, 2, 11, 10), 2, (5, 3), 3, 2, 1, 1), ((1, 2, 9, 9), 2, (2, 2), 3, 1, 1, 1),
    ((2, 3, 10), 4, (3,), 2, 1, 1, 1), ((2, 4, 9), 4, (5,), 1, 2, 1, 2),
    ((1, 2, 5, 6, 4), 3, (3, 2, 3), 1, 1, 1, 1), ((1, 2, 6, 6, 6), 2, (3, 3, 3), 2, 1, 1, 1),
    ((1, 1, 1, 1), 1, (1, 1), 1, 0, 1, 1),
]  # fmt: skip


def operands(geometry: Geometry, transposed: bool) -> tuple[Tensor, Tensor, Tensor, list[object]]:
    """Input, weight, bias and the rest of the arguments of aten.convolution."""
    shape, outputs, kernel, stride, padding, dilation, groups = geometry
    torch.manual_seed(hash(geometry) % 1000)
    rank = len(kernel)
    x = torch.randn(shape)
    outer, inner = (shape[1], outputs // groups) if transposed else (outputs, shape[1] // groups)
    weight, bias = torch.randn(outer, inner, *kernel), torch.randn(outputs)
    extra = (stride if stride > 1 else dilation) - 1 if transposed else 0
    rest: list[object] = [[stride] * rank, [padding] * rank, [dilation] * rank, transposed, [extra] * rank, groups]
    return x, weight, bias, rest


def check(operation: str, case: tuple[object, ...]) -> None:
    """Numbers of torch in binary64, and equal bits of reference and kernels, on hostile words too."""
    graph, tensors = graph_of(operation, case)
    program, names = lower(graph)
    words = [to_words("s", tensor) for tensor in tensors]
    reference, generator = outputs_of(program, words), np.random.default_rng(5)
    for tensor in words:
        tensor.reshape(-1)[generator.integers(tensor.size, size=3)] = generator.choice(HOSTILE, 3)
    outputs_of(program, words)
    expected = ALLOWED[f"aten.{operation}"](*(item.double() if isinstance(item, Tensor) else item for item in case))
    results = [expected] if isinstance(expected, Tensor) else [tensor for tensor in expected if tensor is not None]
    assert len(results) == len(names.observed)
    for number, tensor in enumerate(results):
        got = reference[names.observed[f"out{number}"]].view(np.float32)
        np.testing.assert_allclose(got, tensor.numpy(), rtol=2e-5, atol=2e-5, err_msg=str(case[3:]))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_forward_and_backward(geometry: Geometry, transposed: bool) -> None:
    x, weight, bias, rest = operands(geometry, transposed)
    output = torch.ops.aten.convolution.default(x, weight, bias, *rest)
    check("convolution.default", (x, weight, bias, *rest))
    gradient = torch.randn_like(output)
    check("convolution_backward.default", (gradient, x, weight, [len(bias)], *rest, [True] * 3))


@pytest.mark.parametrize("mask", [list(mask) for mask in itertools.product([True, False], repeat=3) if any(mask)])
def test_gradients_that_nobody_wants_are_no_outputs(mask: list[bool]) -> None:
    x, weight, bias, rest = operands(GEOMETRIES[1], False)
    gradient = torch.randn_like(torch.convolution(x, weight, bias, *rest))  # type: ignore[call-overload]  # rest is drawn
    graph, _ = graph_of("convolution_backward.default", (gradient, x, weight, [4], *rest, mask))
    _, names = lower(graph)
    assert len(names.observed) == sum(mask)
    check("convolution_backward.default", (gradient, x, weight, [4], *rest, mask))


def test_a_convolution_is_one_fold_of_products() -> None:
    """What the contraction kernel takes: a bare FFMA; strides add no node."""
    x, weight, _, rest = operands(GEOMETRIES[1], False)
    program, names = lower(graph_of("convolution.default", (x, weight, None, *rest))[0])
    nodes = [node for node, name in zip(program.nodes, names.nodes, strict=True) if name.operation != "copy"]
    assert [(node.type.shape, node.fold, len(node.body.instructions)) for node in nodes] == [
        ((2, 4, 4, 4), (3, 3, 3), 1)
    ]
