"""Functions, softmax, norms and sums: our kernels against torch's, one thread each, alternately in one process.

Ours is the program of the captured function, run as a replay runs it. Times are those of the processor's thread.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from lab.benchmarks.figure import Figure, side_by_side, torch_threads
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.functions import capture_function

LEAST, BUDGET = 15, 0.05
"""Calls, and seconds of ours."""
Case: TypeAlias = tuple[Callable[..., Tensor | tuple[Tensor, ...]], tuple[Tensor, ...]]
"""A function and its tensors."""
aten = torch.ops.aten


def runner(function: Callable[..., Tensor | tuple[Tensor, ...]], tensors: tuple[Tensor, ...]) -> Callable[[], object]:
    """A call that computes the case with our kernels."""

    def step(_: dict[str, Tensor], given: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        results = function(*given.values())
        return {f"out{n}": out for n, out in enumerate(results if isinstance(results, tuple) else (results,))}

    captured = capture_function(step, {"s": torch.zeros(())}, {f"c{n}": tensor for n, tensor in enumerate(tensors)})
    observed = list(captured.names.observed.values())
    executor = CpuExecutor(captured.program, captured.constants, threads=1, observed=observed)
    return lambda: executor.advance(captured.state, 0)


def cases() -> dict[str, Case]:
    """Everything that is timed; drawn from one seed."""
    torch.manual_seed(0)
    found: dict[str, Case] = {}
    for shape, size in (((64, 256), "16k"), ((1024, 1024), "1m")):
        x, positive = torch.randn(shape), torch.rand(shape) * 10 + 0.01
        for name in ("exp", "log", "tanh", "erf", "sigmoid"):
            found[f"{name}_{size}"] = getattr(torch, name), (positive if name == "log" else x,)
        found[f"gelu_exact_{size}"] = functional.gelu, (x,)
        found[f"gelu_tanh_{size}"] = lambda x: functional.gelu(x, approximate="tanh"), (x,)
    x = torch.randn(2048, 768)
    found |= {
        "sum_rows": (lambda x: x.sum(1), (x,)),
        "sum_columns": (lambda x: x.sum(0), (x,)),
        "sum_all": (lambda x: x.sum(), (x,)),
    }
    for rows, width in ((2048, 768), (8192, 65), (64, 50_257)):
        found |= {f"{name}_{rows}x{width}": case for name, case in _softmaxes(rows, width).items()}
    for rows, width in ((2048, 768), (8192, 384)):
        x, g, weight, bias = torch.randn(rows, width), torch.randn(rows, width), torch.randn(width), torch.randn(width)
        _, mean, rstd = torch.native_layer_norm(x, [width], weight, bias, 1e-5)
        found[f"layer_norm_{rows}x{width}"] = _layer_norm, (x, weight, bias)
        found[f"layer_norm_backward_{rows}x{width}"] = _layer_norm_backward, (g, x, mean, rstd, weight, bias)
    return found


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    return torch.native_layer_norm(x, weight.shape, weight, bias, 1e-5)


def _layer_norm_backward(
    g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = aten.native_layer_norm_backward(
        g, x, weight.shape, mean, rstd, weight, bias, [True, True, True]
    )
    return found


def _softmaxes(rows: int, width: int) -> dict[str, Case]:
    x, g, labels = torch.randn(rows, width), torch.randn(rows, width), torch.randint(0, width, (rows,))
    one, log, total = torch.ones(()), x.log_softmax(1), torch.tensor(float(rows))
    return {
        "softmax": (lambda x: x.softmax(1), (x,)),
        "log_softmax": (lambda x: x.log_softmax(1), (x,)),
        "softmax_backward": (lambda g, y: aten._softmax_backward_data(g, y, 1, torch.float32), (g, x.softmax(1))),
        "cross_entropy": (functional.cross_entropy, (x, labels)),
        "cross_entropy_backward": (
            lambda one, log, labels, total: aten._log_softmax_backward_data(
                aten.nll_loss_backward(one, log, labels, None, 1, -100, total), log, 1, torch.float32
            ),
            (one, log, labels, total),
        ),
    }


def elementwise_figures() -> dict[str, Figure]:
    """Time of every case, and the geometric mean of their ratios."""
    figures, ratios, peer = {}, [], "torch, one thread"
    with torch_threads(), torch.no_grad():
        for name, (function, tensors) in cases().items():
            ours, theirs = side_by_side(
                runner(function, tensors), partial(function, *tensors), LEAST, time.thread_time, warm=1, budget=BUDGET
            )
            figures[f"{name}_time"] = Figure(ours * 1e6, "us", peer, ours / theirs)
            ratios.append(ours / theirs)
    mean = statistics.geometric_mean(ratios)
    return {"elementwise_ratio_geomean": Figure(mean, "x", peer, mean), **figures}
