"""Folds and normalizations give the bits of the reference, whatever words, shapes and strides: by nodes, and by groups
of nodes that are run some rows at a time, whose values take no memory of the step and stay within their own.
"""

import itertools
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import chosen_rows
import instruction_sets
from ended_process import ran
from lab.arithmetic.adversarial_words import SPECIALS
from lab.kernels.drawn_row_programs import drawn_rows
from pol.arithmetic.primitives import Words
from pol.execution import _kernels
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.aten_graph import AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref
from pol.graph.lowering import lower
from pol.graph.step_program import Component, StepProgram

CONSTANTS = [np.zeros((), np.uint32)]
LABELS = Ref(10_000)
Shape = tuple[int, ...]
Operation = tuple[str, tuple[object, ...], tuple[Shape, ...]]


def words(shape: Shape, seed: int, hostile: float) -> Words:
    """Numbers around 1, some of them replaced by any special word."""
    numbers = np.random.default_rng(seed)
    result = numbers.standard_normal(shape).astype(np.float32).view(np.uint32)
    strange = numbers.random(shape) < hostile
    return np.where(strange, numbers.choice(SPECIALS, shape), result).astype(np.uint32)


def program_of(
    shapes: list[Shape], operations: list[Operation], labels: Shape | None = None
) -> tuple[StepProgram, list[int]]:
    """A program on float32 state, and its observed nodes: all results of all operations.

    `Ref(n)` is tensor n, or from there on operation n's first result; `Ref(n, i)` its result i. `LABELS`: a constant.
    """
    count = len(shapes)
    state = [
        AtenInput(InputRole.STATE, f"s{i}", AtenType("float32", shape), Component.PARAMETER)
        for i, shape in enumerate(shapes)
    ]
    others = (
        AtenInput(InputRole.CONSTANT, "c", AtenType("float32", ())),
        *([] if labels is None else [AtenInput(InputRole.CONSTANT, "labels", AtenType("int64", labels))]),
        AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
    )

    def moved(item: object) -> object:
        if item == LABELS:
            return Ref(count + 1)
        return Ref(item.value + len(others), item.output) if isinstance(item, Ref) and item.value >= count else item

    nodes = []
    for name, arguments, results in operations:
        given = tuple(map(moved, arguments))
        types = tuple(AtenType("float32", shape) for shape in results)
        nodes.append(AtenNode(f"aten.{name}", given, (), types, "it", ""))  # type: ignore[arg-type]  # checked by lower
    last = count + len(others) + len(nodes) - 1
    observed = tuple((f"out{i}", Ref(last, i)) for i in range(len(nodes[-1].outputs)))
    graph = AtenGraph((*state, *others), tuple(nodes), tuple(Ref(i) for i in range(count)), observed)
    program, names = lower(graph)
    return program, list(names.observed.values())


Operations = Callable[[Shape], list[Operation]]


def back_of_rows(name: str) -> Operations:
    """A softmax and its gradient."""

    def operations(shape: Shape) -> list[Operation]:
        axis = len(shape) - 1
        return [
            (f"{name}.default", (Ref(0), axis, False), (shape,)),
            (f"{name}_backward_data.default", (Ref(1), Ref(3), axis, None), (shape,)),
        ]

    return operations


def layer_norm(shape: Shape) -> list[Operation]:
    statistics = (*shape[:-1], 1)
    backward = (Ref(1), Ref(0), shape[-1:], Ref(3, 1), Ref(3, 2), Ref(2), Ref(2), (True, True, True))
    return [
        ("native_layer_norm.default", (Ref(0), shape[-1:], Ref(2), Ref(2), 1e-5), (shape, statistics, statistics)),
        ("native_layer_norm_backward.default", backward, (shape, shape[-1:], shape[-1:])),
    ]


def batch_norm(shape: Shape) -> list[Operation]:
    channels = shape[1:2]
    backward = (Ref(1), Ref(0), Ref(2), None, None, Ref(3, 1), Ref(3, 2), True, 1e-5, (True, True, True))
    return [
        ("_native_batch_norm_legit.no_stats", (Ref(0), Ref(2), Ref(2), True, 0.1, 1e-5), (shape, channels, channels)),
        ("native_batch_norm_backward.default", backward, (shape, channels, channels)),
    ]


def group_norm(shape: Shape) -> list[Operation]:
    rows, channels, *places = shape
    sizes, groups = (rows, channels, math.prod(places), 3), (rows, 3)
    backward = (Ref(1), Ref(0), Ref(3, 1), Ref(3, 2), Ref(2), *sizes, (True, True, True))
    return [
        ("native_group_norm.default", (Ref(0), Ref(2), Ref(2), *sizes, 1e-5), (shape, groups, groups)),
        ("native_group_norm_backward.default", backward, (shape, (channels,), (channels,))),
    ]


def sums_of_maps(shape: Shape) -> list[Operation]:
    """The folds are the last to read what the maps have computed."""
    axis, kept = len(shape) - 1, shape[:-1]
    return [
        ("tanh.default", (Ref(0),), (shape,)),
        ("sum.dim_IntList", (Ref(3), (axis,)), (kept,)),
        ("log.default", (Ref(4),), (kept,)),
        ("sub.Tensor", (Ref(0), Ref(1)), (shape,)),
        ("amax.default", (Ref(6), (axis,)), (kept,)),
        ("add.Tensor", (Ref(5), Ref(7)), (kept,)),
    ]


def of_one(name: str, *arguments: object, kept: bool = False) -> Operations:
    return lambda shape: [(f"{name}.default", (Ref(0), *arguments), (shape if kept else shape[:-1],))]


OF_ROWS: dict[str, Operations] = {
    "sums_of_maps": sums_of_maps,
    "softmax": back_of_rows("_softmax"),
    "log_softmax": back_of_rows("_log_softmax"),
    "layer_norm": layer_norm,
    "logsumexp": of_one("logsumexp", (-1,)),
    "cumsum": of_one("cumsum", -1, kept=True),
}
OF_CHANNELS: dict[str, Operations] = {"batch_norm": batch_norm, "group_norm": group_norm}
ROWS: list[Shape] = [
    *[(5, 140), (19, 160), (37, 128), (37, 121)],
    *[(701, 160), (1501, 65), (640, 128), (3, 7, 41, 133), (2, 70_001), (5, 96, 129)],
]
MAPS: list[Shape] = [(4, 6, 7, 7), (4, 6, 8, 8), (9, 69, 15, 15), (4, 132, 17, 8)]


def by_rows(program: StepProgram, observed: list[int]) -> _kernels.Step:
    """A step that keeps its observed nodes alone, and runs all others by rows where it can, however small they are."""
    kernel = _kernels.Step(
        [node.encode() for node in program.nodes],
        [slot.type.numel for slot in program.slots],
        [type_.numel for type_ in program.constants],
    )
    kernel.keep(observed, False, 0)
    return kernel


def check(shapes: list[Shape], operations: list[Operation], hostile: float, labels: Words | None = None) -> None:
    program, observed = program_of(shapes, operations, None if labels is None else labels.shape)
    constants = CONSTANTS if labels is None else [*CONSTANTS, labels]
    state = [words(shape, seed, hostile) for seed, shape in enumerate(shapes)]
    expected = ReferenceExecutor(program, constants).run(state, 3)
    for isa, threads in ((isa, threads) for isa in instruction_sets.each() for threads in (1, 2)):
        found = [np.full(expected[node].shape, 0xDEADBEEF, np.uint32) for node in observed]
        by_rows(program, observed).advance(3, state, constants, found, threads)
        by_nodes = CpuExecutor(program, constants, threads).run(state, 3)
        wanted = [*(expected[node] for node in observed), *expected]
        for number, (mine, own) in enumerate(zip([*found, *by_nodes], wanted, strict=True)):
            np.testing.assert_array_equal(mine, own, err_msg=f"{isa}, {threads} threads, {number}")


@pytest.mark.parametrize("hostile", [0.0, 0.01])
@pytest.mark.parametrize(
    ("name", "shape"), [*itertools.product(OF_ROWS, ROWS), *itertools.product(OF_CHANNELS, MAPS)], ids=str
)
def test_normalizations(name: str, shape: Shape, hostile: float) -> None:
    """Alone, then with what comes behind, of which the result alone is kept."""
    width, operations = (shape[-1:], OF_ROWS[name]) if name in OF_ROWS else (shape[1:2], OF_CHANNELS[name])
    for count in sorted({1, len(operations(shape))}):
        check([shape, shape, width], operations(shape)[:count], hostile)


TOTALS = ("sum.dim_IntList", "amax.default", "amin.default", "linalg_vector_norm.default")
REDUCED: list[tuple[Shape, tuple[int, ...]]] = [
    *[((size,), (0,)) for size in (1, 7, 64, 65, 1000, 9000, 40_000)],
    *[((5, 10), (1,)), ((17, 33), (1,)), ((19, 64), (1,)), ((20, 65), (1,)), ((21, 128), (1,)), ((9, 129), (1,))],
    *[((3, 768), (1,)), ((1, 300), (1,)), ((16, 96), (1,))],
    *[((100, 5), (0,)), ((300, 1), (0,)), ((96, 40), (0,)), ((9000, 3), (0,))],
    *[((3, 4, 7, 7), (0, 2, 3)), ((4, 3, 16, 16), (0, 2, 3)), ((64, 5, 4, 4), (0, 2, 3)), ((33, 2, 1, 1), (0, 2, 3))],
    *[((3, 40, 5), (1,)), ((6, 1, 70), (0, 2)), ((2, 3, 4, 5), (1, 3)), ((40, 3, 20), (0, 2))],
    ((8, 8, 9, 2, 2), (0, 2, 4)),
]


@pytest.mark.parametrize("hostile", [0.0, 0.001, 0.2])
@pytest.mark.parametrize("operation", TOTALS)
def test_reductions_over_any_dimensions(operation: str, hostile: float) -> None:
    for shape, axes in REDUCED:
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        arguments = (Ref(0), 2, axes) if "norm" in operation else (Ref(0), axes)
        check([shape], [(operation, arguments, (kept,))], hostile)


def test_reductions_of_views() -> None:
    """Transposed, cut and repeated tensors are read where they lie."""
    for shape, axes in REDUCED:
        order = tuple(reversed(range(len(shape))))
        stored = (*(shape[i] + 1 for i in order[:-1]), shape[order[-1]])
        part, operations = stored, list[Operation]()
        for axis in range(len(shape) - 1):
            part = (*part[:axis], stored[axis] - 1, *part[axis + 1 :])
            operations.append(("slice.Tensor", (Ref(axis), axis, 1, stored[axis]), (part,)))
        operations.append(("permute.default", (Ref(len(operations)), order), (shape,)))
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        check([stored], [*operations, ("sum.dim_IntList", (Ref(len(operations)), axes), (kept,))], 0.01)


def test_sums_are_near_those_of_float64() -> None:
    """A sum of a million terms in lanes of at most 256 rounds errs by less than a sum in order would."""
    values = words((1_000_000,), 1, 0.0)
    program, (total,) = program_of([values.shape], [("sum.default", (Ref(0),), ((),))])
    found = CpuExecutor(program, CONSTANTS).run([values], 0)[total].view(np.float32)
    exact = values.view(np.float32).astype(np.float64)
    assert abs(float(found) - exact.sum()) < 2e-7 * np.abs(exact).sum() ** 0.5 * 100


@pytest.mark.parametrize("hostile", [0.0, 0.01])
@pytest.mark.parametrize("shape", [(701, 160), (1501, 65)], ids=str)
def test_losses_have_the_bits_of_the_reference(shape: tuple[int, int], hostile: float) -> None:
    rows, classes = shape
    labels = np.random.default_rng(5).integers(0, classes, rows).astype(np.uint32)
    operations: list[Operation] = [
        ("_log_softmax.default", (Ref(0), 1, False), (shape,)),
        ("nll_loss_backward.default", (Ref(1), Ref(3), LABELS, None, 1, -100, Ref(2)), (shape,)),
        ("_log_softmax_backward_data.default", (Ref(4), Ref(3), 1, None), (shape,)),
    ]
    check([shape, (), ()], operations, hostile, labels)


@pytest.mark.long
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("first", chosen_rows.first([0, 10, 20, 30], 1, others=pytest.mark.slow))
def test_drawn_rows_have_the_bits_of_the_reference(first: int, gradients: bool) -> None:
    """What a fold reads last lies beside what it writes: each program's values share memory in another way."""
    for seed in range(first, first + 10):
        step = drawn_rows(seed, gradients)
        program = step.program
        observed = sorted({slot.producer for slot in program.slots} | {len(program.nodes) - 1})
        state = [words(slot.type.shape, seed + n, 0.01 * (seed % 3 == 0)) for n, slot in enumerate(program.slots)]
        after, expected = ReferenceExecutor(program, step.constants, observed).advance(state, 0)
        for isa, threads in ((isa, threads) for isa in instruction_sets.each() for threads in (1, 2)):
            found = [np.full(wanted.shape, 0xDEADBEEF, np.uint32) for wanted in expected]
            by_rows(program, observed).advance(0, state, list(step.constants), found, threads)
            got, _ = CpuExecutor(program, step.constants, threads).advance(state, 0)
            for mine, wanted in zip((*found, *got), (*expected, *after), strict=True):
                np.testing.assert_array_equal(mine, wanted, err_msg=f"program {seed}, {isa}")


@pytest.mark.parametrize("shape", [(1501, 16), (701, 64), (640, 128)], ids=str)
def test_a_constant_factor_of_a_fold_is_no_operand(shape: tuple[int, int]) -> None:
    """The gradient of a layer norm without weights has the factor 1; words beyond the operands were read for it."""
    operations: list[Operation] = [
        ("tanh.default", (Ref(0),), (shape,)),
        ("native_layer_norm.default", (Ref(2), shape[-1:], None, None, 1e-5), (shape, *2 * [(shape[0], 1)])),
        (
            "native_layer_norm_backward.default",
            (Ref(1), Ref(2), shape[-1:], Ref(3, 1), Ref(3, 2), None, None, (True, False, False)),
            (shape,),
        ),
    ]
    check([shape, shape], operations, 0.0)


def test_a_node_that_cannot_be_fused_ends_a_group() -> None:
    """It reads its rows in another order; the softmaxes before and after it are run by rows."""
    shape, turned = (2048, 16, 48), (2048, 48, 16)
    operations: list[Operation] = [
        ("_softmax.default", (Ref(0), 2, False), (shape,)),
        ("permute.default", (Ref(1), (0, 2, 1)), (turned,)),
        ("tanh.default", (Ref(2),), (turned,)),
        ("_softmax.default", (Ref(3), 2, False), (turned,)),
    ]
    check([shape], operations, 0.01)


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_values_within_rows_take_no_memory_of_the_step(name: str) -> None:
    shape = (2048, 512)
    program, observed = program_of([shape, shape, shape[-1:]], OF_ROWS[name](shape)[:1])
    assert by_rows(program, observed).arena_words <= 2 * shape[0]


LONGEST = """
import torch
from torch import nn
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.functions import capture_function

width = {width}
norm = nn.LayerNorm(width)

def step(state, constants, number):
    given = state["x"] + 1
    return {{"x": given * torch.softmax(nn.functional.layer_norm(given, (width,)), -1) + given.square().sum(-1, True)}}

capture = capture_function(step, {{"x": torch.randn(512, width, generator=torch.Generator().manual_seed(0))}})
kept = [bytearray(size) for size in range(1, 4000, 7)]
executor = CpuExecutor(capture.program, capture.constants, threads=1)
for number in range(3):
    executor.advance(capture.state, number)
    kept = [bytearray(size) for size in range(1, 4000, 7)]
"""
CHECKED = Path("/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0")
"""glibc's checks of the heap, where Debian puts them; without them a corrupted heap mostly ends the process anyway."""


@pytest.mark.long
@pytest.mark.parametrize("width", [127, 128, 129])
def test_rows_of_the_longest_sequence_stay_within_their_memory(width: int) -> None:
    """Rows of up to 128 words are folded word by word."""
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    if CHECKED.exists():
        environment["LD_PRELOAD"] = str(CHECKED)
    ran([sys.executable, "-c", LONGEST.format(width=width)], env=environment)
