"""Every operation that has a lowering gives torch's numbers, and every one is tested here."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pol.errors import PolError, ProtocolError, UnsupportedError
from pol.execution.reference import ReferenceExecutor
from pol.execution.torch_native import ALLOWED, NativeExecutor, wanted
from pol.graph.aten import (
    LOWERING_VERSION,
    Argument,
    AtenGraph,
    AtenInput,
    AtenNode,
    AtenType,
    InputRole,
    Ref,
    TorchDType,
)
from pol.graph.capture import to_words
from pol.graph.lowering import RULES, lower
from pol.graph.operations import DEFINITIONS, document
from pol.graph.step_program import Component, StepProgram

torch.manual_seed(7)
A, B, C = torch.randn(3, 4), torch.randn(4), torch.randn(3, 1)
POSITIVE = torch.rand(3, 4) + 0.1
LONG = torch.randn(5, 3, 70)
WIDE = torch.randn(2, 1000)
INTS, MORE = torch.tensor([[3, -2, 7], [0, 5, -9]]), torch.tensor([1, 4, 2])
YES, NO = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-40, 3e38, -3e38, 88.8, -104.0]
)
LABELS = torch.tensor([2, 0, 6, 1, 6])
SCORES = torch.randn(5, 7)
LOG = torch.log_softmax(SCORES, 1)
ROWS = torch.tensor([4, 0, 4])
TOKENS = torch.tensor([[1, 0], [3, 1]])

Case = tuple[Any, ...]
CASES: dict[str, list[Case]] = {
    "alias.default": [(A,)],
    "clone.default": [(A,)],
    "detach.default": [(A,)],
    "lift_fresh_copy.default": [(A,)],
    "transpose.int": [(A, 0, 1), (LONG, -1, 0)],
    "permute.default": [(LONG, [2, 0, 1]), (LONG, [-1, 1, 0])],
    "expand.default": [(C, [3, 4]), (B, [2, 3, 4]), (C, [-1, 2])],
    "unsqueeze.default": [(A, 1), (A, -1)],
    "squeeze.default": [(C,)],
    "squeeze.dim": [(C, 1), (C, 0)],
    "squeeze.dims": [(C, [0, 1])],
    "view.default": [(A, [2, 6]), (A, [-1]), (A, [3, 2, 2])],
    "_unsafe_view.default": [(A, [12])],
    "select.int": [(A, 1, 2), (A, 0, -1)],
    "slice.Tensor": [(A, 1, 1, 3), (A, 0, 0, 2**63 - 1, 2), (A, 1, -3, -1)],
    "split_with_sizes.default": [(LONG, [20, 50], 2)],
    "full.default": [([2, 3], 1.5)],
    "full_like.default": [(A, 2.5), (INTS, 3)],
    "scalar_tensor.default": [(0.1,)],
    "arange.default": [(5,)],
    "arange.start": [(2, 5)],
    "arange.start_step": [(9, 1, -3)],
    "add.Tensor": [(A, B), (A, C, {"alpha": -0.1}), (INTS, MORE, {"alpha": 3}), (A, 1), (A, torch.tensor(2))],
    "add.Scalar": [(A, 0.7), (INTS, 4)],
    "sub.Tensor": [(A, B), (A, C, {"alpha": 0.3}), (INTS, MORE)],
    "sub.Scalar": [(A, 0.7)],
    "mul.Tensor": [(A, B), (A, 0.9), (INTS, MORE), (A[0], YES)],
    "mul.Scalar": [(A, 0.9)],
    "div.Tensor": [(A, B), (A, 3), (INTS, MORE), (SPECIAL, SPECIAL.flip(0))],
    "div.Scalar": [(A, 3.0)],
    "maximum.default": [(A, B), (SPECIAL, SPECIAL.flip(0))],
    "minimum.default": [(A, B), (SPECIAL, SPECIAL.flip(0))],
    "sqrt.default": [(POSITIVE,), (SPECIAL,)],
    "abs.default": [(A,), (SPECIAL,)],
    "neg.default": [(A,), (INTS,)],
    "exp.default": [(A,), (SPECIAL,)],
    "log.default": [(POSITIVE,), (SPECIAL,)],
    "expm1.default": [(A,), (SPECIAL,)],
    "log1p.default": [(POSITIVE,), (SPECIAL,)],
    "erf.default": [(A,), (SPECIAL,)],
    "exp2.default": [(A,), (SPECIAL,)],
    "log2.default": [(POSITIVE,), (SPECIAL,)],
    "sin.default": [(A,), (SPECIAL,)],
    "cos.default": [(A,), (SPECIAL,)],
    "tanh.default": [(A,), (SPECIAL,)],
    "sigmoid.default": [(A,), (SPECIAL,)],
    "rsqrt.default": [(POSITIVE,)],
    "reciprocal.default": [(A,), (SPECIAL,)],
    "relu.default": [(A,), (SPECIAL,)],
    "gelu.default": [(A, {"approximate": "tanh"})],
    "gelu_backward.default": [(A, POSITIVE, {"approximate": "tanh"})],
    "sign.default": [(A,), (SPECIAL,)],
    "sgn.default": [(A,)],
    "threshold_backward.default": [(A, A.flip(0), 0), (A, A.flip(0), 0.5)],
    "tanh_backward.default": [(A, POSITIVE)],
    "sigmoid_backward.default": [(A, POSITIVE)],
    "clamp.default": [(A, -0.5, 0.5), (A, 0.1), (A, None, 0.2), (SPECIAL, -1.0, 1.0)],
    "clamp_min.default": [(A, 0.2)],
    "where.self": [(A > 0, A, C), (YES, B, B.flip(0))],
    "where.ScalarOther": [(A > 0, A, 0.0)],
    "where.ScalarSelf": [(A > 0, 1.0, A)],
    "pow.Tensor_Scalar": [(POSITIVE, power) for power in (1, 2, 3, 4, -1, -2, 0.5, -0.5)],
    "_to_copy.default": [
        (A * 3, {"dtype": torch.int64}), (INTS, {"dtype": torch.float32}), (A.round(), {"dtype": torch.bool}),
        (YES, {"dtype": torch.float32}), (INTS, {"dtype": torch.int32}),
    ],
    "logical_and.default": [(YES, NO)],
    "bitwise_and.Tensor": [(YES, NO)],
    "logical_or.default": [(YES, NO)],
    "bitwise_or.Tensor": [(YES, NO)],
    "logical_not.default": [(YES,)],
    "bitwise_not.default": [(YES,)],
    "sum.default": [(A,), (INTS,), (WIDE,)],
    "sum.dim_IntList": [
        (A, [0]), (A, [1], True), (LONG, [0, 2]), (WIDE, [1]), (LONG, [-1], True), (A, None), (YES, [0]),
        (INTS, [1], {"dtype": torch.float32}),
    ],
    "mean.default": [(A,)],
    "mean.dim": [(A, [1]), (LONG, [1, 2], True)],
    "amax.default": [(A, [1]), (WIDE, [1], True)],
    "amin.default": [(A, [0]), (WIDE, [1])],
    "_log_softmax.default": [(SCORES, 1, False), (SCORES, 0, False), (WIDE, -1, False)],
    "_softmax.default": [(SCORES, 1, False), (LONG, 1, False)],
    "_log_softmax_backward_data.default": [(SCORES, LOG, 1, torch.float32)],
    "_softmax_backward_data.default": [(SCORES, LOG.exp(), 1, torch.float32)],
    "mm.default": [(A, A.t().contiguous()), (WIDE, WIDE.t().contiguous())],
    "bmm.default": [(LONG, LONG.transpose(1, 2).contiguous())],
    "addmm.default": [(torch.randn(3), A, A.t().contiguous()), (C, A, A.t().contiguous(), {"alpha": 0.5, "beta": 2})],
    "index_select.default": [(SCORES, 0, ROWS), (SCORES, 1, ROWS), (INTS, 1, torch.tensor([2]))],
    "embedding.default": [(SCORES, TOKENS)],
    "gather.default": [(SCORES, 1, LABELS[:, None]), (SCORES, 0, TOKENS)],
    "scatter_add.default": [
        (torch.zeros(5, 7), 1, LABELS[:, None], torch.randn(5, 1)),
        (SCORES, 0, torch.randint(0, 5, (9, 7)), torch.randn(9, 7)),
    ],
    "embedding_dense_backward.default": [
        (torch.randn(2, 2, 3), TOKENS, 4, -1, False), (torch.randn(2, 2, 3), TOKENS, 4, 1, False),
    ],
    "nll_loss_forward.default": [
        (LOG, LABELS, None, reduction, ignored) for reduction in (0, 1, 2) for ignored in (-100, 6)
    ] + [(LOG[0], LABELS[0], None, 1, -100)],
    "nll_loss_backward.default": [
        (torch.tensor(1.5), LOG, LABELS, None, reduction, ignored, torch.tensor(5.0 if ignored < 0 else 3.0))
        for reduction in (1, 2) for ignored in (-100, 6)
    ] + [(torch.randn(5), LOG, LABELS, None, 0, -100, torch.tensor(5.0))],
}  # fmt: skip
IMAGES, KERNELS = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3)
TWICE, NONE = [2, 2], [0, 0]
CASES |= {
    "convolution.default": [
        (IMAGES, KERNELS, None, [1, 1], [1, 1], [1, 1], False, NONE, 1),
        (IMAGES, KERNELS, B, TWICE, [1, 1], [1, 1], False, NONE, 1),
        (IMAGES, torch.randn(3, 2, 3, 3), None, TWICE, [1, 1], [1, 1], True, [1, 1], 1),
    ],
    "convolution_backward.default": [
        (torch.randn(2, 4, 3, 3), IMAGES, KERNELS, [4], TWICE, [1, 1], [1, 1], False, NONE, 1, [True, True, False]),
    ],
}
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
for relation in RELATIONS:
    CASES[f"{relation}.Tensor"] = [
        (INTS, MORE),
        (SPECIAL, SPECIAL.flip(0)),
        (torch.arange(4.0), torch.tensor([0.0, 2, 2, 1])),
    ]
    CASES[f"{relation}.Scalar"] = [(INTS, 0), (A, 0.0), (SPECIAL, 1), (INTS, 0.5)]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def graph_of(operation: str, case: Case) -> tuple[AtenGraph, list[Tensor]]:
    """A graph of one operation whose tensor arguments are state."""
    keywords = case[-1] if isinstance(case[-1], dict) else {}
    given = [item for item in case if not isinstance(item, dict)]
    tensors = [item for item in given if isinstance(item, Tensor)] or [A]
    numbers = iter(range(len(tensors)))

    def plain(item: Any) -> Argument:
        if isinstance(item, Tensor):
            return Ref(next(numbers))
        if isinstance(item, torch.dtype):
            return TorchDType(name_of(item))
        return tuple(item) if isinstance(item, list) else item

    state = [
        AtenInput(InputRole.STATE, f"s{i}", AtenType(name_of(t.dtype), tuple(t.shape)), Component.PARAMETER)
        for i, t in enumerate(tensors)
    ]
    inputs = (
        *state,
        AtenInput(InputRole.CONSTANT, "c", AtenType("float32", ())),
        AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
    )
    results = ALLOWED[f"aten.{operation}"](*given, **keywords)
    results = wanted(results if isinstance(results, tuple | list) else [results], given)
    outputs = tuple(AtenType(name_of(t.dtype), tuple(t.shape)) for t in results)
    pairs = tuple(sorted((key, plain(value)) for key, value in keywords.items()))
    node = AtenNode(f"aten.{operation}", tuple(plain(item) for item in given), pairs, outputs, "it", "test.py:1: it()")
    observed = tuple((f"out{i}", Ref(len(inputs), i)) for i in range(len(results)))
    return AtenGraph(inputs, (node,), tuple(Ref(i) for i in range(len(state))), observed), tensors


@pytest.mark.parametrize("operation", sorted(CASES))
def test_lowering_gives_the_numbers_of_torch(operation: str) -> None:
    for case in CASES[operation]:
        graph, tensors = graph_of(operation, case)
        program, names = lower(graph)
        assert StepProgram.from_bytes(program.to_bytes()) == program
        assert lower(AtenGraph.from_dict(graph.to_dict()))[0] == program
        scalar = torch.tensor(0.0)
        after, expected = NativeExecutor(graph).run(tensors, [scalar], 0)
        state = [to_words("s", tensor) for tensor in tensors]
        outputs = ReferenceExecutor(program, [to_words("c", scalar)]).run(state, 0)
        for name, tensor in expected.items():
            got = outputs[names.observed[name]]
            if tensor.dtype == torch.float32:
                np.testing.assert_allclose(
                    got.view(np.float32), tensor.numpy(), rtol=5e-6, atol=1e-6, err_msg=str(case)
                )
            else:
                np.testing.assert_array_equal(got.view(np.int32), tensor.numpy().astype(np.int32))
        for slot, before, kept in zip(program.slots, state, after, strict=True):
            np.testing.assert_array_equal(outputs[slot.producer], before)
            np.testing.assert_array_equal(to_words("s", kept), before)


def test_every_rule_has_a_case_and_every_rule_runs_natively() -> None:
    covered = {f"aten.{operation}" for operation in CASES}
    assert covered == set(RULES)
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
    assert shapes == [((2, 32), 32), ((2, 16), 1), ((2, 8), 1), ((2, 4), 1), ((2, 2), 1), ((2,), 1)]


def lowering_digests() -> dict[str, str]:
    """Per operation of CASES: SHA-256 of the programs that its cases give."""
    result = {}
    for operation in sorted(CASES):
        digest = hashlib.sha256()
        for case in CASES[operation]:
            digest.update(lower(graph_of(operation, case)[0])[0].to_bytes())
        result[operation] = digest.hexdigest()[:32]
    return result


def test_the_lowering_is_that_of_its_version() -> None:
    """A new case gives a new digest; any other change raises LOWERING_VERSION: readers lower old tasks again.

    `POL_WRITE_LOWERINGS=1 pytest tests/graph/test_lowering_operations.py` writes the digests of a new version.
    """
    path = Path(__file__).with_name("lowerings.json")
    if os.environ.get("POL_WRITE_LOWERINGS"):
        found = {"version": str(LOWERING_VERSION), **lowering_digests()}
        path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    assert json.loads(path.read_text()) == {"version": str(LOWERING_VERSION), **lowering_digests()}


def test_every_operation_is_in_the_document() -> None:
    path = Path(__file__).parents[2] / "docs" / "operations.md"
    assert path.read_text() == document(), "run: python -m pol.graph.operations > docs/operations.md"
    assert {f"aten.{name}" for name in DEFINITIONS} == set(RULES)


@pytest.mark.parametrize(
    ("operation", "case", "message"),
    [
        ("gelu.default", (A,), "exact GELU"),
        ("pow.Tensor_Scalar", (A, 2.5), "power 2.5"),
        ("nll_loss_forward.default", (LOG, LABELS, torch.ones(7), 1, -100), "class weights"),
        ("maximum.default", (INTS, MORE), "only float32"),
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
    with pytest.raises(UnsupportedError, match=r"test\.py:1.*aten\.bernoulli\.p.*random"):
        lower(AtenGraph(graph.inputs, (unknown,), graph.next_state, graph.observed))


ODD_ARGUMENTS: list[tuple[Argument, ...]] = [
    (),
    (Ref(0),),
    (Ref(0), 9),
    (Ref(0), -9),
    (Ref(0), "x"),
    (Ref(0), (5, 5)),
    (Ref(0), (0, 0)),
    (Ref(0), (None,)),
    (Ref(0), 2**70),
    (Ref(0), float("nan")),
    (Ref(0), Ref(0), Ref(0)),
    (Ref(0), 0, Ref(0)),
    (Ref(0), 0, 5, 2, 0),
    (None, None, None, None, None, None, None),
]


@pytest.mark.parametrize("operation", sorted(RULES))
def test_strange_arguments_are_refused_or_lowered_to_a_valid_program(operation: str) -> None:
    for arguments in ODD_ARGUMENTS:
        graph, _ = graph_of("exp.default", (A,))
        node = AtenNode(operation, arguments, (), graph.nodes[0].outputs, "it", "here")
        try:
            program, _ = lower(AtenGraph(graph.inputs, (node,), graph.next_state, graph.observed))
        except PolError:
            continue
        program.validate()


def test_a_graph_that_lies_about_a_shape_is_refused() -> None:
    graph, _ = graph_of("permute.default", (A, [1, 0]))
    node = graph.nodes[0]
    lying = AtenNode(node.operation, node.arguments, (), (AtenType("float32", (3, 4)),), "it", "")
    with pytest.raises(ProtocolError, match="the graph says"):
        lower(AtenGraph(graph.inputs, (lying,), graph.next_state, graph.observed))
