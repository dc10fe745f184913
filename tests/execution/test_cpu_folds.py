"""Reductions and normalisations on the kernels give the bits of the reference, whatever words, shapes and strides."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.primitives import Words
from pol.execution import _kernels
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.aten_graph import AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref
from pol.graph.lowering import lower
from pol.graph.step_program import Component

SHAPES = [
    ((1,), [0]), ((7,), [0]), ((64,), [0]), ((65,), [0]), ((1000,), [0]), ((9000,), [0]), ((40_000,), [0]),
    ((5, 10), [1]), ((17, 33), [1]), ((19, 64), [1]), ((20, 65), [1]), ((21, 128), [1]),
    ((9, 129), [1]), ((3, 768), [1]), ((1, 300), [1]),
    ((16, 96), [1]),
    ((100, 5), [0]), ((300, 1), [0]), ((96, 40), [0]), ((9000, 3), [0]),
    ((3, 4, 7, 7), [0, 2, 3]), ((4, 3, 16, 16), [0, 2, 3]), ((64, 5, 4, 4), [0, 2, 3]), ((33, 2, 1, 1), [0, 2, 3]),
    ((3, 40, 5), [1]), ((6, 1, 70), [0, 2]), ((2, 3, 4, 5), [1, 3]), ((40, 3, 20), [0, 2]),
    ((8, 8, 9, 2, 2), [0, 2, 4]),
]  # fmt: skip
CONSTANTS = [np.zeros((), np.uint32)]
OPERATIONS = ("sum.dim_IntList", "amax.default", "amin.default", "linalg_vector_norm.default")


@pytest.fixture(params=_kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _kernels.isa()
    _kernels.set_isa(request.param)
    yield request.param
    _kernels.set_isa(before)


def words(shape: tuple[int, ...], seed: int, hostile: float) -> Words:
    """Numbers around 1, some of them replaced by any special word."""
    numbers = np.random.default_rng(seed)
    result = numbers.standard_normal(shape).astype(np.float32).view(np.uint32)
    strange = numbers.random(shape) < hostile
    return np.where(strange, numbers.choice(SPECIALS, shape), result).astype(np.uint32)


def graph_of(nodes: list[AtenNode], shapes: list[tuple[int, ...]]) -> AtenGraph:
    """A graph on float32 state whose observed tensors are all outputs of the last node."""
    state = [
        AtenInput(InputRole.STATE, f"s{i}", AtenType("float32", shape), Component.PARAMETER)
        for i, shape in enumerate(shapes)
    ]
    step = AtenInput(InputRole.STEP, "step", AtenType("int64", ()))
    constant = AtenInput(InputRole.CONSTANT, "c", AtenType("float32", ()))
    last = Ref(len(state) + 1 + len(nodes))
    observed = tuple((f"out{i}", Ref(last.value, i)) for i in range(len(nodes[-1].outputs)))
    return AtenGraph((*state, constant, step), tuple(nodes), tuple(Ref(i) for i in range(len(state))), observed)


def check(graph: AtenGraph, state: list[Words]) -> None:
    """Every node on the kernels, with one and two threads, against the reference."""
    program, _ = lower(graph)
    expected = ReferenceExecutor(program, CONSTANTS).run(state, 3)
    for threads in (1, 2):
        for node, got, wanted in zip(
            program.nodes, CpuExecutor(program, CONSTANTS, threads).run(state, 3), expected, strict=True
        ):
            np.testing.assert_array_equal(got, wanted, err_msg=f"{node.type} {node.fold}")


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("hostile", [0.0, 0.001, 0.2])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_reductions_over_any_dimensions(operation: str, hostile: float) -> None:
    for seed, (shape, axes) in enumerate(SHAPES):
        arguments = (Ref(0), 2, tuple(axes)) if "norm" in operation else (Ref(0), tuple(axes))
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        node = AtenNode(f"aten.{operation}", arguments, (), (AtenType("float32", kept),), "it", "")
        check(graph_of([node], [shape]), [words(shape, seed, hostile)])


@pytest.mark.usefixtures("isa")
def test_reductions_of_views() -> None:
    """Transposed, cut and repeated tensors are read where they lie."""
    for seed, (shape, axes) in enumerate(SHAPES):
        rank = len(shape)
        order = tuple(reversed(range(rank)))
        stored = (*(shape[i] + 1 for i in order[:-1]), shape[order[-1]])
        cut = AtenType("float32", tuple(shape[i] for i in order))
        nodes = []
        for axis in range(rank - 1):
            part = tuple(cut.shape[: axis + 1]) + stored[axis + 1 :]
            slice_ = (Ref(0) if axis == 0 else Ref(2 + axis), axis, 1, stored[axis])
            nodes.append(AtenNode("aten.slice.Tensor", slice_, (), (AtenType("float32", part),), "", ""))
        last = Ref(2 + len(nodes)) if nodes else Ref(0)
        nodes.append(AtenNode("aten.permute.default", (last, order), (), (AtenType("float32", shape),), "", ""))
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        total = (Ref(2 + len(nodes)), tuple(axes))
        nodes.append(AtenNode("aten.sum.dim_IntList", total, (), (AtenType("float32", kept),), "it", ""))
        check(graph_of(nodes, [stored]), [words(stored, seed, 0.01)])


SOME, FULL = (5, 140), (19, 160)
MAPS, FULL_MAPS = (4, 6, 7, 7), (4, 6, 8, 8)
NORMALISED: list[tuple[str, list[tuple[int, ...]], tuple[object, ...], list[tuple[int, ...]]]] = [
    ("native_layer_norm", [SOME, (140,), (140,)], (0, (140,), 1, 2, 1e-5), [SOME, (5, 1), (5, 1)]),
    (
        "native_layer_norm_backward",
        [SOME, SOME, (5, 1), (5, 1), (140,)],
        (0, 1, (140,), 2, 3, 4, None, (True, True, True)),
        [SOME, (140,), (140,)],
    ),
    ("_native_batch_norm_legit", [MAPS, (6,), (6,)], (0, 1, 2, True, 0.1, 1e-5), [MAPS, (6,), (6,)]),
    (
        "native_batch_norm_backward",
        [MAPS, MAPS, (6,), (6,), (6,)],
        (0, 1, 2, None, None, 3, 4, True, 1e-5, (True, True, True)),
        [MAPS, (6,), (6,)],
    ),
    ("native_group_norm", [MAPS, (6,), (6,)], (0, 1, 2, 4, 6, 49, 3, 1e-5), [MAPS, (4, 3), (4, 3)]),
    (
        "native_group_norm_backward",
        [MAPS, MAPS, (4, 3), (4, 3), (6,)],
        (0, 1, 2, 3, 4, 4, 6, 49, 3, (True, True, True)),
        [MAPS, (6,), (6,)],
    ),
    ("_softmax", [SOME], (0, 1, False), [SOME]),
    ("_log_softmax", [SOME], (0, 1, False), [SOME]),
    ("_softmax_backward_data", [SOME, SOME], (0, 1, 1, None), [SOME]),
    ("_log_softmax_backward_data", [SOME, SOME], (0, 1, 1, None), [SOME]),
    ("logsumexp", [SOME], (0, (1,)), [(5,)]),
    ("cumsum", [SOME], (0, 1), [SOME]),
    # Rows that fill their lanes: centred terms are computed in registers.
    ("native_layer_norm", [FULL, (160,), (160,)], (0, (160,), 1, 2, 1e-5), [FULL, (19, 1), (19, 1)]),
    (
        "native_layer_norm_backward",
        [FULL, FULL, (19, 1), (19, 1), (160,)],
        (0, 1, (160,), 2, 3, 4, None, (True, True, True)),
        [FULL, (160,), (160,)],
    ),
    ("_native_batch_norm_legit", [FULL_MAPS, (6,), (6,)], (0, 1, 2, True, 0.1, 1e-5), [FULL_MAPS, (6,), (6,)]),
    (
        "native_batch_norm_backward",
        [FULL_MAPS, FULL_MAPS, (6,), (6,), (6,)],
        (0, 1, 2, None, None, 3, 4, True, 1e-5, (True, True, True)),
        [FULL_MAPS, (6,), (6,)],
    ),
    ("_softmax", [(37, 128)], (0, 1, False), [(37, 128)]),
    ("_softmax_backward_data", [(37, 121), (37, 121)], (0, 1, 1, None), [(37, 121)]),
]


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("hostile", [0.0, 0.02])
@pytest.mark.parametrize(
    ("operation", "shapes", "given", "results"), NORMALISED, ids=[f"{case[0]}-{case[1][0][-1]}" for case in NORMALISED]
)
def test_normalisations(
    operation: str,
    shapes: list[tuple[int, ...]],
    given: tuple[object, ...],
    results: list[tuple[int, ...]],
    hostile: float,
) -> None:
    overload = "no_stats" if operation == "_native_batch_norm_legit" else "default"
    # Tensors come first in every schema used here, so that small integers in front are their numbers.
    tensors = len(shapes)
    seen = 0
    arguments: list[object] = []
    for item in given:
        is_tensor = seen < tensors and type(item) is int and item == seen
        arguments.append(Ref(seen) if is_tensor else item)
        seen += is_tensor
    node = AtenNode(
        f"aten.{operation}.{overload}",
        tuple(arguments),  # type: ignore[arg-type]  # a mixed list
        (),
        tuple(AtenType("float32", shape) for shape in results),
        "it",
        "",
    )
    check(graph_of([node], shapes), [words(shape, seed, hostile) for seed, shape in enumerate(shapes)])


def test_sums_are_near_those_of_float64() -> None:
    """A sum of a million terms in lanes of at most 256 rounds errs by less than a sum in order would."""
    values = words((1_000_000,), 1, 0.0)
    node = AtenNode("aten.sum.default", (Ref(0),), (), (AtenType("float32", ()),), "it", "")
    program, names = lower(graph_of([node], [(1_000_000,)]))
    total = CpuExecutor(program, CONSTANTS).run([values], 0)[names.observed["out0"]].view(np.float32)
    exact = torch.from_numpy(values.view(np.float32)).double()
    assert abs(float(total) - float(exact.sum())) < 2e-7 * float(exact.abs().sum()) ** 0.5 * 100
