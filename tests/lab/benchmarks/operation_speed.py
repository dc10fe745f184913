"""Every operation against torch's own, one thread each.

`PYTHONPATH=tests python -m lab.benchmarks.operation_speed` writes the ratios.

Arguments have about a million elements (fewer where an operation looks at all pairs of them). Ours is the program of
one call, run as a replay runs it; both run alternately in one process and are timed by what the thread spent.

There is one large call of each operation whose time says something: views, draws and what only fills memory have none.
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from lab.benchmarks.figure import side_by_side, torch_threads
from lab.json_rows import json_rows
from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import ALLOWED, results_of
from pol.graph.aten_graph import Argument, AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref, TorchDType
from pol.graph.capture import to_words
from pol.graph.lowering import lower
from pol.graph.step_program import Component, StepProgram

Call: TypeAlias = tuple[Any, ...]
"""Positional arguments; a last dictionary holds the named ones."""

SIDE = 1024
SEED = 5


def calls() -> Mapping[str, Call]:
    """By operation."""
    torch.manual_seed(SEED)
    short = _elementwise() | _joins() | _reductions() | _rows() | _addresses() | _spatial()
    return {f"aten.{name}": call for name, call in short.items()}


def _defaults(names: str, *call: Any) -> dict[str, Call]:
    return {f"{name}.default": call for name in names.split()}


def _elementwise() -> dict[str, Call]:
    x, y = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    positive, numbers = x.abs() + 0.01, torch.randint(-1000, 1000, (SIDE, SIDE))
    others, yes, no = numbers.flip(0), x > 0, y > 0
    found = _defaults("abs neg exp expm1 erf exp2 sin cos tanh sigmoid reciprocal sign sgn isnan isinf", x)
    found |= _defaults("relu silu gelu floor ceil trunc round", x)
    found |= _defaults("sqrt log log10 log1p log2 rsqrt", positive)
    found |= _defaults("maximum minimum tanh_backward sigmoid_backward silu_backward gelu_backward", x, y)
    found |= _defaults("softshrink_backward hardshrink_backward threshold_backward", x, y, 0.5)
    found |= _defaults("logical_and logical_or logical_xor", yes, no) | _defaults("logical_not bitwise_not", yes)
    for relation in ("eq", "ne", "lt", "le", "gt", "ge"):
        found |= {f"{relation}.Tensor": (x, y), f"{relation}.Scalar": (x, 0.5)}
    for name in ("add", "sub", "mul", "div"):
        found |= {f"{name}.Tensor": (x, y), f"{name}.Scalar": (x, 0.7)}
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        found[f"{name}.Tensor"] = (numbers, others)
    for name in ("bitwise_and", "bitwise_or"):
        found[f"{name}.Scalar"] = (numbers, 7)
    return found | {
        "clamp.default": (x, -0.5, 0.5),
        "clamp.Tensor": (x, -positive, positive),
        "clamp_min.default": (x, 0.1),
        "clamp_min.Tensor": (x, y),
        "clamp_max.default": (x, 0.1),
        "clamp_max.Tensor": (x, y),
        "where.self": (yes, x, y),
        "where.ScalarOther": (yes, x, 0.0),
        "where.ScalarSelf": (yes, 0.0, x),
        "where.Scalar": (yes, 1.0, 0.0),
        "_to_copy.default": (x, {"dtype": torch.bfloat16}),
        "pow.Tensor_Scalar": (positive, 2.5),
        "pow.Tensor_Tensor": (positive, y),
        "pow.Scalar": (0.9, x),
        "floor_divide.default": (x, 0.25),
        "remainder.Scalar": (x, 0.75),
        "remainder.Tensor": (x, positive),
        "div.Tensor_mode": (x, positive, {"rounding_mode": "floor"}),
        "div.Scalar_mode": (x, 0.3, {"rounding_mode": "trunc"}),
    }


def _joins() -> dict[str, Call]:
    x = torch.randn(SIDE, SIDE)
    return {
        "copy.default": (x, x + 1),
        "clone.default": (x,),
        "cat.default": ([x[:512], x[512:].clone()], 1),
        "repeat.default": (x[:256], [4, 1]),
        "roll.default": (x, [3], [1]),
        "constant_pad_nd.default": (x, [1, 1, 1, 1]),
        "slice_backward.default": (x, [SIDE, 2 * SIDE], 1, 5, 5 + SIDE, 1),
        "select_backward.default": (x, [4, SIDE, SIDE], 0, 1),
        "slice_scatter.default": (x, x[:, :512] * 2, 1, 8, 520),
        "select_scatter.default": (x, x[0] * 2, 0, 5),
        "tril.default": (x,),
        "triu.default": (x,),
        "flip.default": (x, [0]),
    }


def _reductions() -> dict[str, Call]:
    x = torch.randn(SIDE, SIDE)
    yes, near = x > -9, 1 + x * 1e-4
    found = _defaults("sum mean max min argmax argmin linalg_vector_norm", x) | _defaults("any all", yes)
    found |= _defaults("amax amin logsumexp", x, [1]) | _defaults("prod", near)
    return found | {
        "sum.dim_IntList": (x, [1]),
        "mean.dim": (x, [1]),
        "prod.dim_int": (near, 1),
        "max.dim": (x, 1),
        "min.dim": (x, 1),
        "any.dim": (yes, 1),
        "any.dims": (yes, [1]),
        "all.dim": (yes, 1),
        "var.correction": (x, [1]),
        "var_mean.correction": (x, [1]),
        "std.correction": (x, [1]),
        "cumsum.default": (x, 1),
    }


def _rows() -> dict[str, Call]:
    x, g, weight, bias = (torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), torch.randn(SIDE), torch.randn(SIDE))
    images, channels = torch.randn(16, 64, 32, 32), torch.rand(64)
    gradients, groups = torch.randn_like(images), torch.rand(16, 8)
    log, labels, total = x.log_softmax(1), torch.randint(0, SIDE, (SIDE,)), torch.tensor(float(SIDE))
    planes, marks = torch.randn(16, 64, 32, 32).log_softmax(1), torch.randint(0, 64, (16, 32, 32))
    mean, scale = x.mean(1, True), 1 / x.std(1, keepdim=True)
    every = [True, True, True]
    return {
        "_log_softmax.default": (x, 1, False),
        "_softmax.default": (x, 1, False),
        "_safe_softmax.default": (x, 1),
        "_log_softmax_backward_data.default": (g, log, 1, torch.float32),
        "_softmax_backward_data.default": (g, log.exp(), 1, torch.float32),
        "native_layer_norm.default": (x, [SIDE], weight, bias, 1e-5),
        "native_layer_norm_backward.default": (g, x, [SIDE], mean, scale, weight, bias, every),
        "_native_batch_norm_legit_functional.default": (
            *(images, channels, channels, channels, channels),
            *(True, 0.1, 1e-5),
        ),
        "_native_batch_norm_legit.no_stats": (images, channels, channels, True, 0.1, 1e-5),
        "native_batch_norm_backward.default": (
            *(gradients, images, channels, None, None),
            *(images.mean((0, 2, 3)), 1 / images.std((0, 2, 3)), True, 1e-5, every),
        ),
        "native_group_norm.default": (images, channels, channels, 16, 64, 1024, 8, 1e-5),
        "native_group_norm_backward.default": (gradients, images, groups, groups, channels, 16, 64, 1024, 8, every),
        "mm.default": (x, g),
        "bmm.default": (x.reshape(16, 256, 256), g.reshape(16, 256, 256)),
        "addmm.default": (bias, x, g),
        "nll_loss_forward.default": (log, labels, None, 1, -100),
        "nll_loss_backward.default": (torch.tensor(1.0), log, labels, None, 1, -100, total),
        "nll_loss2d_forward.default": (planes, marks, None, 1, -100),
        "nll_loss2d_backward.default": (torch.tensor(1.0), planes, marks, None, 1, -100, torch.tensor(16384.0)),
    }


def _addresses() -> dict[str, Call]:
    table, rows = torch.randn(SIDE, SIDE), torch.randint(0, SIDE, (SIDE,))
    tokens, gradients = rows.reshape(4, 256), torch.randn(4, 256, SIDE)
    places = torch.randint(0, SIDE, (SIDE, SIDE))
    few, at_ = torch.randn(512, 512), torch.randint(0, 512, (512, 512))
    mixed = torch.randperm(SIDE)
    return {
        "index_select.default": (table, 0, rows),
        "embedding.default": (table, tokens),
        "gather.default": (table, 1, places),
        "embedding_dense_backward.default": (gradients, tokens, SIDE, -1, False),
        "scatter_add.default": (few, 1, at_, few + 1),
        "scatter.src": (few, 1, at_, few + 1),
        "scatter.value": (few, 1, at_, 1.5),
        "index_add.default": (table, 0, rows, table + 1),
        "index_copy.default": (table, 0, mixed, table + 1),
        "index.Tensor": (table, [rows]),
        "index_put.default": (table, [rows], table + 1, True),
        "topk.default": (few, 8),
        "sort.default": (few,),
        "sort.stable": (few, {"stable": True}),
    }


def _spatial() -> dict[str, Call]:
    lines, planes, solids = torch.randn(16, 64, 1024), torch.randn(16, 64, 32, 32), torch.randn(4, 16, 32, 16, 32)
    kernels = torch.randn(64, 64, 3, 3)
    window = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    found: dict[str, Call] = {
        "convolution.default": (planes, kernels, None, *window),
        "convolution_backward.default": (planes, planes, kernels, None, *window, [True, True, False]),
        "_adaptive_avg_pool2d.default": (planes, [4, 4]),
        "_adaptive_avg_pool2d_backward.default": (torch.randn(16, 64, 4, 4), planes),
        "_adaptive_avg_pool3d.default": (solids, [4, 4, 4]),
        "_adaptive_avg_pool3d_backward.default": (torch.randn(4, 16, 4, 4, 4), solids),
        "reflection_pad1d.default": (lines, [2, 2]),
        "reflection_pad1d_backward.default": (torch.randn(16, 64, 1028), lines, [2, 2]),
        "reflection_pad2d.default": (planes, [1, 1, 1, 1]),
        "reflection_pad2d_backward.default": (torch.randn(16, 64, 34, 34), planes, [1, 1, 1, 1]),
        "pixel_shuffle.default": (planes, 2),
        "pixel_unshuffle.default": (planes, 2),
    }
    for rank, x in ((2, planes), (3, solids)):
        two, none, one = [2] * rank, [0] * rank, [1] * rank
        pooled, index = getattr(torch.ops.aten, f"max_pool{rank}d_with_indices").default(x, two, two, none, one, False)
        maximum, average = (x, two, two, none, one, False), (x, two, two, none, False, True, None)
        found[f"max_pool{rank}d_with_indices.default"] = maximum
        found[f"max_pool{rank}d_with_indices_backward.default"] = (pooled, *maximum, index)
        found[f"avg_pool{rank}d.default"] = average
        found[f"avg_pool{rank}d_backward.default"] = (pooled, *average)
    for rank, x, linear in ((1, lines, "linear1d"), (2, planes, "bilinear2d"), (3, solids, "trilinear3d")):
        small = x[:4]
        old, new = list(small.shape), [2 * n for n in small.shape[2:]]
        gradient, scales = torch.randn(*old[:2], *new), [2.0] * rank
        for name in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
            found[f"{name}.default"] = (small, new, *scales)
            found[f"{name}_backward.default"] = (gradient, new, old, *scales)
        found[f"upsample_{linear}.default"] = (small, new, False, *scales)
        found[f"upsample_{linear}_backward.default"] = (gradient, new, old, False, *scales)
    return found


LEAST, BUDGET = 3, 0.15
"""Calls, and seconds of ours."""


def type_of(tensor: Tensor) -> AtenType:
    """Of a graph's input or result."""
    return AtenType(_name(tensor.dtype), tuple(tensor.shape))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def program_of(operation: str, call: Call) -> tuple[StepProgram, list[Words], list[int]]:
    """The program of one call, whose tensors are its constants; these, and the nodes that are the results.

    Its state is one number.
    """
    keywords = call[-1] if isinstance(call[-1], dict) else {}
    given = [item for item in call if not isinstance(item, dict)]
    leaves = [leaf for item in given for leaf in (item if isinstance(item, list) else [item])]
    tensors = [item for item in leaves if isinstance(item, Tensor)]
    numbers = iter(range(1, 1 + len(tensors)))

    def plain(item: Any) -> Argument:
        if isinstance(item, Tensor):
            return Ref(next(numbers))
        if isinstance(item, torch.dtype):
            return TorchDType(_name(item))
        return tuple(map(plain, item)) if isinstance(item, list) else item

    inputs = (
        AtenInput(InputRole.STATE, "s", AtenType("float32", ()), Component.PARAMETER),
        *(AtenInput(InputRole.CONSTANT, f"c{i}", type_of(tensor)) for i, tensor in enumerate(tensors)),
        AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
    )
    results = results_of(operation, given, keywords)
    arguments = tuple(plain(item) for item in given)
    pairs = tuple(sorted((key, plain(value)) for key, value in keywords.items()))
    node = AtenNode(operation, arguments, pairs, tuple(map(type_of, results)), "it", "")
    observed = tuple((f"out{i}", Ref(len(inputs), i)) for i in range(len(results)))
    program, names = lower(AtenGraph(inputs, (node,), (Ref(0),), observed))
    return program, [to_words("c", tensor) for tensor in tensors], list(names.observed.values())


def runner(operation: str, call: Call) -> Callable[[], object]:
    """A call that computes the operation with our kernels."""
    program, constants, observed = program_of(operation, call)
    executor = CpuExecutor(program, constants, threads=1, observed=observed)
    own = [to_words("s", torch.zeros(()))]
    return lambda: executor.advance(own, 0)


def ratio(operation: str, call: Call) -> float:
    """Our median time over torch's."""
    keywords = call[-1] if isinstance(call[-1], dict) else {}
    given = [item for item in call if not isinstance(item, dict)]
    torchs = functools.partial(ALLOWED[operation], *given, **keywords)
    ours, theirs = side_by_side(runner(operation, call), torchs, LEAST, time.thread_time, warm=1, budget=BUDGET)
    return ours / theirs


def measure(names: set[str]) -> Mapping[str, float]:
    """Ratios of these operations, or of all that have a call here."""
    with torch_threads():
        chosen = {name: call for name, call in calls().items() if not names or name in names}
        return {name: round(ratio(name, call), 2) for name, call in chosen.items()}


if __name__ == "__main__":
    path = Path("docs/operations.json")
    document = json.loads(path.read_text())
    document["speed"] = document.get("speed", {}) | measure(set(sys.argv[1:]))
    path.write_text(json_rows(document, sort_keys=True))
