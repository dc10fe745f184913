"""Nodes that are run some rows at a time give the bits of all rows at once, and what they keep takes no memory."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from lab.arithmetic.adversarial_words import SPECIALS
from lab.benchmarks.operation_speed import program_of as program_of_call
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


@pytest.fixture(params=_kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _kernels.isa()
    _kernels.set_isa(request.param)
    yield request.param
    _kernels.set_isa(before)


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


def softmax(shape: Shape) -> list[Operation]:
    return [("_softmax.default", (Ref(0), len(shape) - 1, False), (shape,))]


def softmax_backward(shape: Shape) -> list[Operation]:
    return [("_softmax_backward_data.default", (Ref(0), Ref(1), len(shape) - 1, None), (shape,))]


def log_softmax_and_back(shape: Shape) -> list[Operation]:
    axis = len(shape) - 1
    return [
        ("_log_softmax.default", (Ref(0), axis, False), (shape,)),
        ("_log_softmax_backward_data.default", (Ref(1), Ref(2), axis, None), (shape,)),
    ]


def layer_norm(shape: Shape) -> list[Operation]:
    statistics = (*shape[:-1], 1)
    return [
        ("native_layer_norm.default", (Ref(0), shape[-1:], Ref(2), Ref(2), 1e-5), (shape, statistics, statistics)),
    ]  # fmt: skip


def layer_norm_backward(shape: Shape) -> list[Operation]:
    statistics = (*shape[:-1], 1)
    forward = (Ref(0), shape[-1:], Ref(2), Ref(2), 1e-5)
    backward = (Ref(1), Ref(0), shape[-1:], Ref(3, 1), Ref(3, 2), Ref(2), Ref(2), (True, True, True))
    return [
        ("native_layer_norm.default", forward, (shape, statistics, statistics)),
        ("native_layer_norm_backward.default", backward, (shape, shape[-1:], shape[-1:])),
    ]


def batch_norm(shape: Shape) -> list[Operation]:
    channels = shape[1:2]
    return [
        (
            "_native_batch_norm_legit.no_stats",
            (Ref(0), Ref(2), Ref(2), True, 0.1, 1e-5),
            (shape, channels, channels),
        ),
    ]  # fmt: skip


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


CASES = {
    "sums_of_maps": sums_of_maps,
    "softmax": softmax,
    "softmax_backward": softmax_backward,
    "log_softmax": log_softmax_and_back,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
}
SHAPES: list[Shape] = [(701, 160), (1501, 65), (640, 128), (3, 7, 41, 133), (2, 70_001), (5, 96, 129)]


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
    _, expected = ReferenceExecutor(program, constants, observed).advance(state, 3)
    for threads in (1, 2):
        found = [np.full(wanted.shape, 0xDEADBEEF, np.uint32) for wanted in expected]
        by_rows(program, observed).advance(3, state, constants, found, threads)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("hostile", [0.0, 0.01])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_rows_have_the_bits_of_the_reference(name: str, shape: Shape, hostile: float) -> None:
    check([shape, shape, shape[-1:]], CASES[name](shape), hostile)


@pytest.mark.usefixtures("isa")
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


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("shape", [(9, 70, 15, 15), (4, 131, 17, 8)], ids=str)
def test_channels_have_the_bits_of_the_reference(shape: Shape) -> None:
    check([shape, shape, shape[1:2]], batch_norm(shape), 0.001)


JOINED = (
    "prod.dim_int",
    "max.dim",
    "min.dim",
    "any.dim",
    "all.dim",
    "sum.dim_IntList",
    "cumprod.default",
    "cummin.default",
)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("operation", JOINED)
@pytest.mark.parametrize("shape", [(701, 160), (1501, 65), (640, 128), (3, 9000)], ids=str)
def test_other_joins_have_the_bits_of_the_reference(operation: str, shape: tuple[int, int]) -> None:
    """Products, integers and truth values, along both dimensions, by rows and by nodes."""
    numbers = torch.from_numpy(words(shape, 1, 0.001).view(np.float32))
    values = {"any": numbers > 3, "all": numbers < 3, "sum": (numbers > 0).long()}.get(operation[:3], numbers)
    for axis in (0, 1):
        program, constants, observed = program_of_call(
            f"aten.{operation}", (values, [axis] if "List" in operation else axis)
        )
        state = [CONSTANTS[0]]
        reference = ReferenceExecutor(program, constants).run(state, 0)
        for threads in (1, 2):
            for got, wanted in zip(CpuExecutor(program, constants, threads).run(state, 0), reference, strict=True):
                np.testing.assert_array_equal(got, wanted)
            found = [np.full(reference[node].shape, 0xDEADBEEF, np.uint32) for node in observed]
            by_rows(program, observed).advance(0, state, constants, found, threads)
            for got, node in zip(found, observed, strict=True):
                np.testing.assert_array_equal(got, reference[node])


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("first", [0, 20])
def test_drawn_rows_have_the_bits_of_the_reference(first: int, gradients: bool) -> None:
    """What a fold reads last lies beside what it writes: each program's values share memory in another way."""
    for seed in range(first, first + 20):
        step = drawn_rows(seed, gradients)
        program = step.program
        observed = sorted({slot.producer for slot in program.slots} | {len(program.nodes) - 1})
        state = [words(slot.type.shape, seed + n, 0.01 * (seed % 3 == 0)) for n, slot in enumerate(program.slots)]
        after, expected = ReferenceExecutor(program, step.constants, observed).advance(state, 0)
        for threads in (1, 2):
            found = [np.full(wanted.shape, 0xDEADBEEF, np.uint32) for wanted in expected]
            by_rows(program, observed).advance(0, state, list(step.constants), found, threads)
            got, _ = CpuExecutor(program, step.constants, threads).advance(state, 0)
            for mine, wanted in zip((*found, *got), (*expected, *after), strict=True):
                np.testing.assert_array_equal(mine, wanted, err_msg=f"program {seed}")


@pytest.mark.usefixtures("isa")
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
    program, observed = program_of([shape, shape, shape[-1:]], CASES[name](shape))
    assert by_rows(program, observed).arena_words <= 2 * shape[0]
