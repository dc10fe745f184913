"""Folds whose terms go where their words say, joins and sorting give the bits of the reference, whatever the words."""

import numpy as np
import pytest
import torch
from test_cpu_row_groups import by_rows, words
from torch import Tensor

import instruction_sets
from lab.benchmarks.operation_speed import Call, program_of
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor

STATE = [np.zeros((), np.uint32)]


def check(operation: str, call: Call) -> None:
    program, constants, observed = program_of(f"aten.{operation}", call)
    expected = ReferenceExecutor(program, constants).run(STATE, 0)
    for isa, threads in ((isa, threads) for isa in instruction_sets.each() for threads in (1, 3)):
        for got, wanted in zip(CpuExecutor(program, constants, threads).run(STATE, 0), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=isa)
        rows = [np.full(expected[node].shape, 0xDEADBEEF, np.uint32) for node in observed]
        by_rows(program, observed).advance(0, STATE, constants, rows, threads)
        found = CpuExecutor(program, constants, threads, observed).advance(STATE, 0)[1]
        for got, row, node in zip(found, rows, observed, strict=True):
            np.testing.assert_array_equal(got, expected[node])
            np.testing.assert_array_equal(row, expected[node])


def floats(*shape: int, hostile: float = 0.2) -> Tensor:
    """Ordinary numbers and special words."""
    return torch.from_numpy(words(shape, 1, hostile).view(np.float32))


def places(limit: int, *shape: int) -> Tensor:
    """Indices that exist, many of them twice."""
    return torch.from_numpy(np.random.default_rng(limit).integers(0, limit, shape))


SCATTERED: dict[str, tuple[str, Call]] = {
    "along rows": ("scatter_add.default", (floats(7, 33), 1, places(33, 7, 50), floats(7, 50))),
    "along columns": ("scatter_add.default", (floats(13, 40), 0, places(13, 29, 40), floats(29, 40))),
    "of fewer columns": ("scatter_add.default", (floats(13, 40), 0, places(13, 29, 31), floats(30, 40))),
    "in the middle": ("scatter_add.default", (floats(3, 11, 9), 1, places(11, 3, 1500, 9), floats(3, 1500, 9))),
    "of one line": ("scatter_add.default", (floats(10), 0, places(10, 3000), floats(3000))),
    "of integers": ("scatter_add.default", (places(9, 4, 9), 1, places(9, 4, 70), places(1 << 30, 4, 70))),
    "last words": ("scatter.src", (floats(7, 33), 1, places(33, 7, 50), floats(7, 50))),
    "a number": ("scatter.value", (floats(7, 33), 0, places(7, 5, 33), 1.5)),
    "a number added": ("scatter_add.default", (floats(9), 0, places(9, 70), torch.ones(1).expand(70))),
    "rows added": ("index_add.default", (floats(11, 37), 0, places(11, 40), floats(40, 37))),
    "rows copied": ("index_copy.default", (floats(11, 37), 0, places(11, 40), floats(40, 37))),
    "columns copied": ("index_copy.default", (floats(11, 37), 1, places(37, 21), floats(11, 21))),
    "long rows copied": ("index_copy.default", (floats(5, 1500), 0, places(5, 6), floats(6, 1500))),
    "single columns": ("index_add.default", (floats(11, 3), 0, places(11, 40), floats(40, 3))),
    "two indices": ("index_put.default", (floats(9, 8, 5), [places(9, 40), places(8, 40)], floats(40, 5), True)),
    "two indices, the last": (
        "index_put.default",
        (floats(9, 8, 20), [places(9, 6, 5), places(8, 6, 5)], floats(6, 5, 20), False),
    ),
    "lines interpolated": ("upsample_linear1d_backward.default", (floats(2, 3, 14), [14], [2, 3, 7], False, 2.0)),
    "planes interpolated": (
        "upsample_bilinear2d_backward.default",
        (floats(2, 2, 9, 25), [9, 25], [2, 2, 5, 11], True),
    ),
    "a table": ("embedding_dense_backward.default", (floats(60, 19), places(12, 60), 12, -1, False)),
    "a table with padding": ("embedding_dense_backward.default", (floats(60, 19), places(12, 60), 12, 3, False)),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_words_go_where_the_index_says(name: str) -> None:
    check(*SCATTERED[name])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(3, 1), (5, 23), (4, 24), (2, 3, 130), (1, 1031)], ids=str)
def test_sorting(shape: tuple[int, ...], descending: bool) -> None:
    few = floats(*shape, hostile=0.6)
    many = places(1 << 31, *shape) - (1 << 30)
    for values in (few, many, torch.zeros(shape)):
        check("sort.default", (values, -1, descending))
        check("topk.default", (values, shape[-1] // 2 + 1, -1, descending))
    check("sort.default", (few, 0, descending))


POOLED: list[Call] = [
    ((5, 14, 34), [2, 2], [2, 2], [0, 0]),
    ((5, 15, 33), [3, 3], [2, 2], [1, 1]),
    ((3, 16, 31), [2, 3], [3, 2], [1, 1]),
    ((1, 9, 700), [2, 2], [2, 2], [0, 0]),
]


@pytest.mark.parametrize("case", POOLED, ids=str)
def test_gradient_of_a_maximum(case: Call) -> None:
    """Its innermost dimension is the short one of a stride."""
    shape, kernel, stride, padding = case
    x = floats(2, *shape, hostile=0.01)
    window = (kernel, stride, padding, [1, 1], False)
    value, index = torch.ops.aten.max_pool2d_with_indices.default(x, *window)
    check("max_pool2d_with_indices_backward.default", (floats(*value.shape), x, *window, index))


@pytest.mark.parametrize("shape", [(2, 12, 5, 40), (1, 27, 9, 17), (3, 4, 3, 2)], ids=str)
def test_short_innermost_dimensions(shape: tuple[int, ...]) -> None:
    x = floats(*shape)
    check("pixel_shuffle.default", (x, 3 if shape[1] == 27 else 2))
    check("upsample_nearest2d.default", (x, [shape[2] * 2, shape[3] * 3], None, None))


JOINED = (
    *("prod.dim_int", "max.dim", "min.dim", "any.dim", "all.dim", "sum.dim_IntList", "cumprod.default"),
    "cummin.default",
)


@pytest.mark.parametrize("operation", JOINED)
@pytest.mark.parametrize("shape", [(701, 160), (1501, 65), (640, 128), (3, 9000)], ids=str)
def test_joins(operation: str, shape: tuple[int, int]) -> None:
    """Products, integers and truth values, along both dimensions."""
    numbers = floats(*shape, hostile=0.001)
    values = {"any": numbers > 3, "all": numbers < 3, "sum": (numbers > 0).long()}.get(operation[:3], numbers)
    for axis in (0, 1):
        check(operation, (values, [axis] if "List" in operation else axis))
