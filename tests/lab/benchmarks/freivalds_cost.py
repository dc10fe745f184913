"""Products checked by projection beside their recomputation: time, and what the bound leaves open."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import numpy as np

from lab.benchmarks import training_bits, training_steps
from lab.benchmarks.figure import Figure, side_by_side
from lab.verification.freivalds import PROJECTIONS, StepCheck, draw_signs, project
from lab.verification.matrix_products import find_product
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder
from pol.execution.cpu import CpuExecutor, CpuNode
from pol.execution.operand_sources import Sources
from pol.graph.capture import Capture
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

SIZES = (64, 128, 256, 512, 1024, 2048)
ENTROPY = bytes(32)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
STEPS: Mapping[str, Callable[[], Capture]] = {
    "mlp": lambda: training_bits.mlp(1),
    "cnn": lambda: training_bits.cnn(1),
    "gpt": lambda: training_steps.gpt(layers=2, width=384, heads=6, tokens=256, batch=2).captured(),
}


T = TypeVar("T")


def freivalds_figures(rounds: int = 5) -> dict[str, Figure]:
    """Square products, whole steps, and the bound of a row over the norm of that row; one thread."""
    return in_one_thread(_figures, rounds)


def in_one_thread(call: Callable[..., T], *arguments: object) -> T:
    """Call a function in a process in which numpy's products take one thread: how many is settled when it starts."""
    kept = dict(os.environ)
    os.environ.update(ONE_THREAD)
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(call, *arguments).result()
    finally:
        for name in ONE_THREAD:
            os.environ.pop(name)
        os.environ.update(kept)


def _figures(rounds: int) -> dict[str, Figure]:
    figures = {}
    for size in SIZES:
        ours, peer = product_seconds(size, rounds)
        figures[f"freivalds_{size}"] = Figure(ours * 1e3, "ms", "recomputation, one thread", ours / peer)
    for name, build in STEPS.items():
        captured = build()
        ours, peer = step_seconds(captured, rounds)
        figures[f"freivalds_{name}_step"] = Figure(ours * 1e3, "ms", "recomputation, one thread", ours / peer)
        median, worst = tolerances(captured)
        figures[f"freivalds_{name}_bound"] = Figure(median, "of a row's norm, median")
        figures[f"freivalds_{name}_bound_worst"] = Figure(worst, "of a row's norm, worst product")
    return figures


def square(size: int) -> Node:
    """A product of two matrices of size x size, both slots of the state."""
    builder = Builder(3)
    body = builder.build(builder.emit(Op.FFMA, 0, 1, 2))
    type_ = TensorType(DType.F32, (size, size))
    left = Operand(Source.STATE, 0, type_, Affine(0, (0, size, 0, 1)))
    right = Operand(Source.STATE, 1, type_, Affine(0, (0, 0, 1, size)))
    inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR))
    return Node(type_, (left, right), inputs, body, (size,))


def product_seconds(size: int, rounds: int) -> tuple[float, float]:
    """Median seconds of the projections of a product and of its recomputation."""
    random = np.random.default_rng(size)
    state = [random.standard_normal((size, size), np.float32).view(np.uint32) for _ in range(2)]
    sources = Sources(state, [], [])
    node = square(size)
    product, kernel = find_product(node), CpuNode(node)
    assert product is not None
    output = kernel.run(0, sources)

    def projected() -> object:
        return project(product, 0, sources, output, draw_signs(ENTROPY, 0, size, PROJECTIONS))

    return side_by_side(projected, lambda: kernel.run(0, sources), rounds, time.thread_time)


def step_seconds(captured: Capture, rounds: int) -> tuple[float, float]:
    """Median seconds of the check of a whole step and of its recomputation."""
    executor = CpuExecutor(captured.program, captured.constants)
    outputs = [words.copy() for words in executor.run(captured.state, 0)]
    check = StepCheck(captured.program, captured.constants)
    return side_by_side(
        lambda: check.check(captured.state, 0, outputs, ENTROPY),
        lambda: executor.run(captured.state, 0),
        rounds,
        time.thread_time,
    )


def tolerances(captured: Capture) -> tuple[float, float]:
    """The bound over the norm of the row that it holds for: median over all rows, and the worst median of a product."""
    outputs = CpuExecutor(captured.program, captured.constants).run(captured.state, 0)
    sources = Sources(captured.state, captured.constants, outputs)
    shares = []
    for index, node in enumerate(captured.program.nodes):
        product = find_product(node)
        if product is None or min(product.rows, product.columns) < 8:
            continue
        width = min(product.rows, product.columns)
        bounds = project(product, 0, sources, outputs[index], draw_signs(ENTROPY, index, width, 1)).bounds[..., 0]
        result = product.result(outputs[index])
        norms = np.linalg.norm(result, axis=1 if product.columns > product.rows else 2)
        if norms.any():
            shares.append((bounds[norms > 0] / norms[norms > 0]).reshape(-1))
    return float(np.median(np.concatenate(shares))), max(float(np.median(share)) for share in shares)
