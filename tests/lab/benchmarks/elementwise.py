"""Functions, softmax, norms and sums: our kernels against torch's, one thread each, alternately in one process.

Ours is the program of a captured operation, run as a replay runs it. Times are those of the processor's thread.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lab.benchmarks.figure import Figure
from pol.execution.cpu import CpuExecutor
from pol.graph.aten_graph import Argument, AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref
from pol.graph.capture import to_words
from pol.graph.lowering import lower
from pol.graph.step_program import Component

SMALL, LARGE = (64, 256), (1024, 1024)
ROWS, NARROW, WIDE = (2048, 768), (8192, 65), (64, 50_257)
ROUNDS = 15
_LEAST_SECONDS = 2e-3


@dataclass(frozen=True)
class Case:
    """Operations on the tensors, each on references to them and to earlier results, and what torch does instead.

    An operation is (name, arguments, shapes of its results); a reference is a tensor's position, a result's is counted
    on from there; `Ref(n, i)` is result i of operation n.
    """

    name: str
    tensors: tuple[Tensor, ...]
    operations: tuple[tuple[str, tuple[object, ...], tuple[tuple[int, ...], ...]], ...]
    peer: Callable[[], object]
    keywords: tuple[tuple[str, Argument], ...] = ()


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def runner(case: Case) -> Callable[[], object]:
    """A call that computes the case with our kernels."""
    state = AtenInput(InputRole.STATE, "s", AtenType("float32", ()), Component.PARAMETER)
    constants = [
        AtenInput(InputRole.CONSTANT, f"c{i}", AtenType(_dtype(tensor), tuple(tensor.shape)))
        for i, tensor in enumerate(case.tensors)
    ]
    inputs = (state, *constants, AtenInput(InputRole.STEP, "step", AtenType("int64", ())))
    nodes = []
    for name, arguments, results in case.operations:
        moved = tuple(
            Ref(item.value + (1 if item.value < len(case.tensors) else 2), item.output)
            if isinstance(item, Ref)
            else item
            for item in arguments
        )
        outputs = tuple(AtenType("float32", shape) for shape in results)
        nodes.append(AtenNode(f"aten.{name}", moved, case.keywords, outputs, "it", ""))  # type: ignore[arg-type]  # checked by lower
    last = len(inputs) + len(nodes) - 1
    observed = tuple((f"out{i}", Ref(last, i)) for i in range(len(nodes[-1].outputs)))
    program, names = lower(AtenGraph(inputs, tuple(nodes), (Ref(0),), observed))
    words = [to_words("c", tensor) for tensor in case.tensors]
    executor = CpuExecutor(program, words, observed=list(names.observed.values()))
    own = [to_words("s", torch.zeros(()))]
    return lambda: executor.advance(own, 0)


def _functions(shape: tuple[int, int], size: str) -> list[Case]:
    x = torch.randn(shape)
    positive = torch.rand(shape) * 10 + 0.01
    cases = []
    for name in ("exp", "log", "tanh", "erf", "sigmoid"):
        given = positive if name == "log" else x
        function: Callable[[Tensor], Tensor] = getattr(torch, name)
        cases.append(
            Case(
                f"{name}_{size}",
                (given,),
                ((f"{name}.default", (Ref(0),), (shape,)),),
                functools.partial(function, given),
            )
        )
    for approximate in ("none", "tanh"):
        label = "gelu_exact" if approximate == "none" else "gelu_tanh"
        gelu = functools.partial(functional.gelu, x, approximate=approximate)
        operation = ("gelu.default", (Ref(0),), (shape,))
        cases.append(Case(f"{label}_{size}", (x,), (operation,), gelu, (("approximate", approximate),)))
    return cases


def _sums() -> list[Case]:
    x = torch.randn(ROWS)
    rows, columns = ROWS
    return [
        Case("sum_rows", (x,), (("sum.dim_IntList", (Ref(0), (1,)), ((rows,),)),), lambda: x.sum(1)),
        Case("sum_columns", (x,), (("sum.dim_IntList", (Ref(0), (0,)), ((columns,),)),), lambda: x.sum(0)),
        Case("sum_all", (x,), (("sum.default", (Ref(0),), ((),)),), x.sum),
    ]


def _softmaxes(shape: tuple[int, int], size: str) -> list[Case]:
    x, g = torch.randn(shape), torch.randn(shape)
    y, log = x.softmax(1), x.log_softmax(1)
    labels = torch.randint(0, shape[1], (shape[0],))
    total = torch.tensor(float(shape[0]))
    aten = torch.ops.aten
    one = torch.ones(())
    backward = (Ref(0), Ref(1), 1, None)
    return [
        Case(f"softmax_{size}", (x,), (("_softmax.default", (Ref(0), 1, False), (shape,)),), lambda: x.softmax(1)),
        Case(
            f"log_softmax_{size}", (x,), (("_log_softmax.default", (Ref(0), 1, False), (shape,)),),
            lambda: x.log_softmax(1),
        ),
        Case(
            f"softmax_backward_{size}", (g, y), (("_softmax_backward_data.default", backward, (shape,)),),
            lambda: aten._softmax_backward_data(g, y, 1, torch.float32),
        ),
        Case(
            f"cross_entropy_{size}", (x, labels),
            (
                ("_log_softmax.default", (Ref(0), 1, False), (shape,)),
                ("nll_loss_forward.default", (Ref(2), Ref(1), None, 1, -100), ((), ())),
            ),
            lambda: functional.cross_entropy(x, labels),
        ),
        Case(
            f"cross_entropy_backward_{size}", (one, log, labels, total),
            (
                ("nll_loss_backward.default", (Ref(0), Ref(1), Ref(2), None, 1, -100, Ref(3)), (shape,)),
                ("_log_softmax_backward_data.default", (Ref(4), Ref(1), 1, None), (shape,)),
            ),
            lambda: aten._log_softmax_backward_data(
                aten.nll_loss_backward(one, log, labels, None, 1, -100, total), log, 1, torch.float32
            ),
        ),
    ]  # fmt: skip


def _norms(shape: tuple[int, int], size: str) -> list[Case]:
    rows, width = shape
    x, g, weight, bias = torch.randn(shape), torch.randn(shape), torch.randn(width), torch.randn(width)
    _, mean, rstd = torch.native_layer_norm(x, [width], weight, bias, 1e-5)
    statistics_ = ((rows, 1), (rows, 1))
    forward = (Ref(0), (width,), Ref(1), Ref(2), 1e-5)
    backward = (Ref(0), Ref(1), (width,), Ref(2), Ref(3), Ref(4), Ref(5), (True, True, True))
    return [
        Case(
            f"layer_norm_{size}", (x, weight, bias), (("native_layer_norm.default", forward, (shape, *statistics_)),),
            lambda: torch.native_layer_norm(x, [width], weight, bias, 1e-5),
        ),
        Case(
            f"layer_norm_backward_{size}", (g, x, mean, rstd, weight, bias),
            (("native_layer_norm_backward.default", backward, (shape, (width,), (width,))),),
            lambda: torch.ops.aten.native_layer_norm_backward(
                g, x, [width], mean, rstd, weight, bias, [True, True, True]
            ),
        ),
    ]  # fmt: skip


def cases() -> list[Case]:
    """Everything that is timed; drawn from one seed."""
    torch.manual_seed(0)
    return [
        *_functions(SMALL, "16k"),
        *_functions(LARGE, "1m"),
        *_sums(),
        *_softmaxes(ROWS, "2048x768"),
        *_softmaxes(NARROW, "8192x65"),
        *_softmaxes(WIDE, "64x50257"),
        *_norms(ROWS, "2048x768"),
        *_norms((8192, 384), "8192x384"),
    ]


def ratio(case: Case, rounds: int = ROUNDS) -> tuple[float, float]:
    """Median seconds of a call, and over the peer's; both are called as often as fills a short time, in turns."""
    calls = (runner(case), case.peer)
    repeats = []
    for call in calls:
        call()
        began = time.thread_time()
        call()
        repeats.append(max(1, math.ceil(_LEAST_SECONDS / max(time.thread_time() - began, 1e-6))))
    seconds: Sequence[list[float]] = ([], [])
    for _ in range(rounds):
        for call, count, taken in zip(calls, repeats, seconds, strict=True):
            began = time.thread_time()
            for _ in range(count):
                call()
            taken.append((time.thread_time() - began) / count)
    ours, peer = (statistics.median(taken) for taken in seconds)
    return ours, ours / peer


def elementwise_figures() -> dict[str, Figure]:
    """Time of every case, and the geometric mean of their ratios."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            measured = {case.name: ratio(case) for case in cases()}
    finally:
        torch.set_num_threads(threads)
    mean = math.exp(statistics.fmean(math.log(relative) for _, relative in measured.values()))
    peer = "torch, one thread"
    return {
        "elementwise_ratio_geomean": Figure(mean, "x", peer, mean),
        **{f"{name}_time": Figure(ours * 1e6, "us", peer, relative) for name, (ours, relative) in measured.items()},
    }
