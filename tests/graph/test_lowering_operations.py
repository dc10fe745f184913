"""Every operation that has a lowering gives torch's numbers, and every one is tested here."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from lab.operations import Measurements, document
from operation_samples import CASES, INTS, MORE, SPECIAL, WIDE, YES, A, B, Case, full_name, graph_of
from pol.arithmetic.primitives import Words
from pol.errors import PolError, ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.execution.stock_torch.torch_executor import ALLOWED, NativeExecutor
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode, AtenType, Ref
from pol.graph.capture import to_words
from pol.graph.lowering import RULES, lower
from pol.graph.lowering.rules import FAMILIES
from pol.graph.lowering.rules.images import adaptive_pooling, pooling, resampling
from pol.graph.lowering.rules.shapes import padding
from pol.graph.node import Source
from pol.graph.step_program import StepProgram
from special_points import DEFINED
from special_points import expected as expected_at


def first_operand(tensors: list[torch.Tensor]) -> npt.NDArray[np.float32]:
    """The number of which an operation is a function, if it is one."""
    return tensors[0].float().numpy() if tensors else np.zeros(0, np.float32)


def outputs_of(
    program: StepProgram, state: Sequence[Words], constants: Sequence[Words] = (np.zeros((), np.uint32),), step: int = 0
) -> list[Words]:
    """The outputs of all nodes, of which the kernels give the same bits."""
    outputs = ReferenceExecutor(program, constants).run(state, step)
    for threads in (1, 2):
        for native, own in zip(CpuExecutor(program, constants, threads).run(state, step), outputs, strict=True):
            np.testing.assert_array_equal(native, own)
    return outputs


@pytest.mark.parametrize("operation", sorted(CASES))
def test_lowering_gives_the_numbers_of_torch(operation: str) -> None:
    for case in CASES[operation]:
        graph, tensors = graph_of(operation, case)
        program, names = lower(graph)
        assert StepProgram.from_bytes(program.to_bytes()) == program
        assert lower(AtenGraph.from_dict(graph.to_dict()))[0] == program
        after, observed = NativeExecutor(graph).run(tensors, [torch.tensor(0.0)], 0)
        state = [to_words("s", tensor) for tensor in tensors]
        outputs = outputs_of(program, state)
        for name, tensor in observed.items():
            got = outputs[names.observed[name]]
            if tensor.dtype == torch.float32:
                wanted = expected_at(operation, first_operand(tensors), tensor.numpy())
                np.testing.assert_allclose(got.view(np.float32), wanted, rtol=5e-6, atol=1e-6, err_msg=str(case))
            else:
                np.testing.assert_array_equal(got.view(np.int32), tensor.numpy().astype(np.int32))
        for slot, before, kept in zip(program.slots, state, after, strict=True):
            np.testing.assert_array_equal(outputs[slot.producer], before)
            np.testing.assert_array_equal(to_words("s", kept), before)


HOSTILE = [0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x3F800000, 0xBF800001]
OF_WINDOWS = {module.__name__ for module in (pooling, adaptive_pooling, resampling, padding)}


@pytest.mark.parametrize("name", sorted(name for name, rule in RULES.items() if rule.lower.__module__ in OF_WINDOWS))
def test_kernels_have_the_bits_of_the_reference_on_hostile_words(name: str) -> None:
    generator = np.random.default_rng(3)
    for case in CASES[name.removeprefix("aten.")]:
        graph, tensors = graph_of(name.removeprefix("aten."), case)
        words = [to_words("s", tensor) for tensor in tensors]
        for tensor, given in zip(words, tensors, strict=True):
            if given.dtype == torch.float32:
                tensor.reshape(-1)[generator.integers(tensor.size, size=5)] = generator.choice(HOSTILE, 5)
        outputs_of(lower(graph)[0], words)


@pytest.mark.parametrize("operation", sorted(DEFINED))
def test_functions_are_defined_where_torch_differs_between_machines(operation: str) -> None:
    """At infinities, NaN, signed zeros and the ends of the range, in every position of a vector."""
    operand = SPECIAL.repeat(3)[:35]
    graph, tensors = graph_of(operation, (operand,))
    program, names = lower(graph)
    outputs = outputs_of(program, [to_words("s", tensor) for tensor in tensors])
    (node,) = names.observed.values()
    words = operand.numpy()
    never = np.full(words.shape, np.nan, np.float32)
    got = outputs[node].view(np.float32)
    np.testing.assert_allclose(got, expected_at(operation, words, never), rtol=5e-6, atol=1e-6)
    assert set(outputs[node][np.isnan(got)]) <= {np.uint32(0x7FC00000)}
    for start in range(12, len(words)):
        assert outputs[node][start] == outputs[node][start % 12]


def test_every_rule_has_a_case_and_every_rule_runs_natively() -> None:
    assert {full_name(operation) for operation in CASES} == set(RULES)
    assert set(ALLOWED) == set(RULES)


def test_views_make_no_nodes() -> None:
    for operation in ("transpose.int", "permute.default", "expand.default", "unsqueeze.default", "slice.Tensor"):
        for case in CASES[operation]:
            program, names = lower(graph_of(operation, case)[0])
            copies = [name.operation for name in names.nodes]
            assert copies == ["copy"] * len(program.nodes)


def test_long_sums_run_in_lanes_and_halves() -> None:
    program, _ = lower(graph_of("sum.dim_IntList", (WIDE, [1]))[0])
    shapes = [(node.type.shape, node.terms) for node in program.nodes if node.type.shape != WIDE.shape]
    assert shapes == [((32, 2), 32), ((4, 2), 1), ((2,), 1)]


def test_no_sum_copies_its_tensor_and_long_lanes_have_pieces() -> None:
    """The shape of the first fold and what it folds, for sums over rows, columns, planes and everything."""
    maps = torch.zeros(8, 3, 14, 14)
    for case, expected in (
        ((torch.zeros(2048, 8), [0]), ((32, 8), (64,))),
        ((maps, [0, 2, 3]), ((32, 3), (8, 7))),
        ((torch.zeros(64, 3, 4, 4), [0, 2, 3]), ((32, 3), (2, 16))),
        ((torch.zeros(4, 6, 4, 5), [0, 2]), ((6, 5), (4, 4))),
        ((torch.zeros(100_000),), ((32, 13), (241,))),
    ):
        program, _ = lower(graph_of("sum.dim_IntList" if len(case) > 1 else "sum.default", case)[0])
        first = next(node for node in program.nodes if node.fold)
        assert (first.type.shape, first.fold) == expected
        assert first.operands[0].source is not Source.NODE


def test_every_operation_is_in_the_document() -> None:
    docs = Path(__file__).parents[2] / "docs"
    measured = Measurements.read(docs)
    message = "run: PYTHONPATH=tests python -m lab.operations > docs/operations.md"
    assert (docs / "operations.md").read_text() == document(measured), message
    assert set(measured.court) == set(RULES), "run: POL_WRITE_COURT=1 pytest tests/dispute/test_every_operation.py"
    families = {family.__name__ for family in FAMILIES}
    assert {rule.lower.__module__ for rule in RULES.values()} == families, "pol/graph/lowering/rules/__init__.py"


@pytest.mark.parametrize(
    ("operation", "case", "message"),
    [
        ("relu.default", (INTS,), "only float32"),
        ("pow.Tensor_Scalar", (INTS, 7), "powers 1, 2, 3 and 4"),
        ("floor_divide.default", (INTS, MORE), "positive integer number"),
        ("index.Tensor", (B, [YES]), "instead of a mask"),
        ("sort.default", (torch.zeros(1 << 20).repeat(2),), "only up to 1048576"),
    ],
)
def test_what_has_no_definition_is_named_with_its_line(operation: str, case: Case, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        lower(graph_of(operation, case)[0])
    assert "test.py:1: it()" in str(caught.value)


def test_an_unknown_operation_is_named() -> None:
    graph, _ = graph_of("exp.default", (A,))
    node = graph.nodes[0]
    unknown = AtenNode("aten.bernoulli.p", node.arguments, (), node.outputs, node.name, node.source)
    with pytest.raises(UnsupportedError, match=r"test\.py:1.*aten\.bernoulli\.p.*draw with"):
        lower(AtenGraph(graph.inputs, (unknown,), graph.next_state, graph.observed))


ODD_ARGUMENTS: list[tuple[Argument, ...]] = [
    (), (Ref(0),), (Ref(0), 9), (Ref(0), -9), (Ref(0), "x"), (Ref(0), (5, 5)), (Ref(0), (0, 0)),
    (Ref(0), (None,)), (Ref(0), 2**70), (Ref(0), float("nan")), (Ref(0), Ref(0), Ref(0)), (Ref(0), 0, Ref(0)),
    (Ref(0), 0, 5, 2, 0), (None, None, None, None, None, None, None),
]  # fmt: skip


@pytest.mark.parametrize("operation", sorted(RULES))
def test_strange_arguments_are_refused_or_lowered_to_a_valid_program(operation: str) -> None:
    for arguments, tensor in itertools.product(ODD_ARGUMENTS, (A, INTS)):
        graph, _ = graph_of("neg.default", (tensor,))
        node = AtenNode(operation, arguments, (), graph.nodes[0].outputs, "it", "here")
        try:
            program, _ = lower(AtenGraph(graph.inputs, (node,), graph.next_state, graph.observed))
        except PolError:
            continue
        program.validate()


def test_a_graph_that_reads_a_word_as_of_another_type_is_refused() -> None:
    """No operation of torch compares to a float: the formula gives an integer."""
    graph, _ = graph_of("eq.Scalar", (A, 0.0))
    node = replace(graph.nodes[0], outputs=(AtenType("float32", (3, 4)),))
    with pytest.raises(ProtocolError, match="a formula for F32 gives a Word"):
        lower(AtenGraph(graph.inputs, (node,), graph.next_state, graph.observed))


@pytest.mark.parametrize(
    ("operation", "place", "shape"),
    [
        ("native_layer_norm_backward.default", 0, (5, 3, 1)), ("native_layer_norm_backward.default", 2, (5, 1, 1)),
        ("native_layer_norm_backward.default", 3, (1,)), ("_native_batch_norm_legit_functional.default", 1, (1,)),
        ("_native_batch_norm_legit_functional.default", 3, ()), ("_native_batch_norm_legit.no_stats", 2, (1,)),
        ("native_batch_norm_backward.default", 4, (1,)), ("native_group_norm_backward.default", 4, (3,)),
        ("_log_softmax_backward_data.default", 1, (5, 1)), ("_softmax_backward_data.default", 1, (7,)),
        ("max_pool3d_with_indices_backward.default", 0, (2, 2, 2, 3, 3)), ("unfold_backward.default", 0, (3, 3, 1)),
        ("max_pool2d_with_indices_backward.default", 2, (2, 3, 3, 1)), ("avg_pool2d_backward.default", 0, (1, 3, 3, 3)),
        ("reflection_pad1d_backward.default", 1, (2, 4, 7)), ("_adaptive_avg_pool2d_backward.default", 1, (2, 1, 7, 6)),
    ],
)  # fmt: skip
def test_operands_that_contradict_each_other_are_refused(operation: str, place: int, shape: tuple[int, ...]) -> None:
    """Torch's kernels read as many words of one as of the other."""
    graph, _ = graph_of(operation, CASES[operation][0])
    inputs = list(graph.inputs)
    inputs[place] = replace(inputs[place], type=AtenType(inputs[place].type.dtype, shape))
    with pytest.raises(ProtocolError, match=r"argument \d of aten.* has shape|dimensions before the windows"):
        lower(replace(graph, inputs=tuple(inputs)))


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("permute.default", (Ref(0), (0, 1, 2))), ("full.default", ((2, 2**40), 1.5)), ("zeros.default", ((5,),)),
        ("arange.default", (2**40,)), ("arange.start_step", (0, math.inf, 1)),
        ("select_backward.default", (Ref(0), (3, 0, 4), 1, 2)), ("_adaptive_avg_pool2d.default", (Ref(0), (3, 1))),
        ("upsample_nearest1d.default", (Ref(0), (2**40,), 2.0)),
        ("upsample_linear1d_backward.default", (Ref(0), (14,), (2, 3, 2**40), False, 2.0)),
    ],
)  # fmt: skip
def test_a_graph_that_lies_about_a_shape_is_refused(operation: str, arguments: tuple[Argument, ...]) -> None:
    graph, _ = graph_of(operation, CASES[operation][0])
    node = replace(graph.nodes[0], arguments=arguments)
    with pytest.raises(ProtocolError):
        lower(replace(graph, nodes=(node,)))


@pytest.mark.parametrize("count", [2, 6, 100, 4099])
def test_equal_terms_have_a_deviation_of_exactly_zero(count: int) -> None:
    """Its gradient jumps there: a mean that is rounded would give one of size 1 where torch has 0."""
    source = torch.randn(8, 1, generator=torch.Generator().manual_seed(count)) * 100
    value = source.expand(8, count).contiguous()
    for operation in ("std.correction", "var.correction"):
        graph, tensors = graph_of(operation, (value, [1]))
        program, names = lower(graph)
        outputs = outputs_of(program, [to_words("s", tensor) for tensor in tensors])
        (node,) = names.observed.values()
        assert not outputs[node].any()
