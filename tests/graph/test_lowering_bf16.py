"""Operations on bfloat16: torch's numbers to one rounding, and words that are bfloat16 numbers."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import to_words
from pol.graph.lowering import lower
from special_points import expected as expected_at
from tests.graph.test_lowering_operations import CASES, Case, graph_of, outputs_of

ULP = 2.0**-7
"""Two neighbouring bfloat16 numbers are at most this far apart, relatively."""
WITHOUT = frozenset(
    # Losses, which mixed precision computes in float32, and orders of numbers, of which many are equal in bfloat16.
    {"nll_loss_forward.default", "nll_loss_backward.default", "sort.default", "sort.stable", "topk.default"}
)


def short(case: Case) -> Case:
    """The case with bfloat16 in place of float32."""

    def moved(item: Any) -> Any:
        if isinstance(item, Tensor) and item.dtype == torch.float32:
            return item.to(torch.bfloat16)
        if isinstance(item, list | tuple):
            return type(item)(moved(part) for part in item)
        return item

    return tuple(moved(item) for item in case)


def is_short(case: Case) -> bool:
    return any(isinstance(item, Tensor) and item.dtype == torch.float32 for item in case)


@pytest.mark.parametrize("operation", sorted(set(CASES) - WITHOUT))
def test_operations_on_bfloat16_round_once(operation: str) -> None:
    for case in filter(is_short, CASES[operation]):
        try:
            graph, tensors = graph_of(operation, short(case))
        except RuntimeError as error:
            if "BFloat16" in str(error) or "dtype" in str(error):
                continue  # What torch's own kernels do not take does not come up.
            raise
        program, names = lower(graph)
        _, expected = NativeExecutor(graph).run(tensors, [torch.tensor(0.0)], 0)
        outputs = outputs_of(program, [to_words("s", tensor) for tensor in tensors])
        for name, tensor in expected.items():
            got = outputs[names.observed[name]]
            if tensor.dtype == torch.bfloat16:
                assert not np.any(got & np.uint32(0xFFFF))
            if tensor.is_floating_point():
                # Sums that cancel keep the error of their terms, and torch rounds some sums on their way.
                operand = tensors[0].float().numpy() if tensors else np.zeros(0, np.float32)
                numbers = expected_at(operation, operand, tensor.float().numpy())
                size = float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=1.0))
                np.testing.assert_allclose(
                    got.view(np.float32), numbers, rtol=2 * ULP, atol=2 * ULP * size, err_msg=operation
                )
            else:
                np.testing.assert_array_equal(got.view(np.int32), tensor.numpy().astype(np.int32))


@pytest.mark.parametrize(
    ("operation", "case"),
    [
        ("_to_copy.default", (torch.randn(40) * 1e3, {"dtype": torch.bfloat16})),
        ("_to_copy.default", (torch.arange(0, 70000, 77), {"dtype": torch.bfloat16})),
        ("_to_copy.default", (torch.randn(40).to(torch.bfloat16), {"dtype": torch.float32})),
        ("full.default", ([3], 0.1, {"dtype": torch.bfloat16})),
        ("mul.Tensor", (torch.randn(40).to(torch.bfloat16), torch.tensor(0.1))),
        ("add.Tensor", (torch.randn(40).to(torch.bfloat16), torch.randn(40))),
        ("maximum.default", (torch.randn(40).to(torch.bfloat16), torch.randn(40).to(torch.bfloat16))),
        ("div.Tensor", (torch.randn(40).to(torch.bfloat16), torch.randn(40).to(torch.bfloat16))),
    ],
)
def test_simple_operations_have_torchs_bits(operation: str, case: Case) -> None:
    graph, tensors = graph_of(operation, case)
    program, names = lower(graph)
    _, expected = NativeExecutor(graph).run(tensors, [torch.tensor(0.0)], 0)
    outputs = outputs_of(program, [to_words("s", tensor) for tensor in tensors])
    np.testing.assert_array_equal(outputs[names.observed["out0"]], to_words("o", expected["out0"]))
