"""Samples of operations and variants of these keep the bytes that they had: types, shapes, optional arguments."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import torch

from operation_samples import CASES, INTS, LABELS, LONG, MAPS, MORE, SCORES, WIDE, YES, A, B, C, Case, graph_of
from pol.errors import UnsupportedError
from pol.graph.aten_graph import LOWERING_VERSION, AtenGraph
from pol.graph.lowering import lower

SOLID = torch.randn(1, 4, 6, 5, 7)
IMAGE = torch.randn(2, 4, 9, 8)
MANY = torch.randn(3, 5, 4, 6, 7, 2)
BATCH = torch.randn(4, 3)
HIGH, WITHIN, ALL = [2, 2], [1, 1], [True, True, True]
COLUMN = torch.randn(3, 2).t()

VARIANTS: dict[str, list[Case]] = {
    "abs.default": [(WIDE,)],
    "add.Tensor": [(INTS, 5), (INTS, MORE, {"alpha": -2}), (YES, YES)],
    "sub.Tensor": [(A, B, {"alpha": -1}), (INTS, MORE, {"alpha": 5})],
    "amax.default": [(INTS, [1]), (MANY, [0, 2, 4]), (MANY, [1, 3, 5], True), (LONG, [0, 1, 2])],
    "amin.default": [(INTS, [0], True), (MANY, [0, 2, 5]), (LONG, [0, 1, 2])],
    "sum.dim_IntList": [(MANY, [0, 2, 4]), (MANY, [0, 2, 4, 5]), (MANY, [0, 1, 2, 3, 4, 5]), (COLUMN, [1])],
    "mean.dim": [(MANY, [1, 3, 5]), (torch.randn(70_000), [0]), (torch.tensor(2.0), [0])],
    "sum.default": [(torch.randn(9000),), (torch.randn(300_000),), (torch.tensor(2.0),)],
    "argmax.default": [(torch.tensor(2.0),), (INTS,), (INTS, 1, True)],
    "max.dim": [(torch.tensor(2.0), 0), (INTS, 1, True)],
    "any.dim": [(INTS, 1, True)],
    "var.correction": [(A, [1], {"correction": 5}), (torch.tensor(2.0), None), (LONG, None, {"correction": 0.5})],
    "std.correction": [(MANY, [0, 2, 4], {"keepdim": True})],
    "cumsum.default": [(torch.tensor(2.0), 0), (INTS, 0, {"dtype": torch.float32}), (torch.ones(2, 3, 300), 1)],
    "logsumexp.default": [(MANY, [0, 2], True)],
    "native_layer_norm.default": [(MANY, [7, 2], None, None, 1e-3), (LONG, [70], None, torch.randn(70), 1e-5)],
    "native_layer_norm_backward.default": [
        (
            MANY, MANY * 2, [7, 2], MANY.mean((4, 5), True), MANY.std((4, 5), keepdim=True), None, None,
            [True, False, False],
        ),
        (WIDE, WIDE * 2, [1000], WIDE.mean(1, True), WIDE.std(1, keepdim=True), WIDE[0], WIDE[0], [True, False, True]),
    ],
    "_native_batch_norm_legit_functional.default": [
        (BATCH, torch.randn(3), None, torch.randn(3), torch.rand(3), True, 0.1, 1e-5),
        (MAPS, None, torch.randn(3), torch.randn(3), torch.rand(3), True, 0.1, 1e-5),
    ],
    "native_batch_norm_backward.default": [
        (MAPS, MAPS * 2, None, None, None, MAPS.mean((0, 2, 3)), MAPS.std((0, 2, 3)), True, 1e-5, [True, False, True]),
        (BATCH, BATCH * 2, torch.randn(3), None, None, BATCH.mean(0), BATCH.std(0), True, 1e-5, ALL),
    ],
    "native_group_norm.default": [(IMAGE, torch.randn(4), None, 2, 4, 72, 2, 1e-5)],
    "native_group_norm_backward.default": [
        (IMAGE, IMAGE * 2, torch.randn(2, 2), torch.rand(2, 2), torch.randn(4), 2, 4, 72, 2, [False, True, True]),
    ],
    "addmm.default": [(B[:3], A, COLUMN[:1].expand(4, 3), {"alpha": 2.0})],
    "convolution.default": [
        (IMAGE, torch.randn(6, 2, 3, 3), torch.randn(6), HIGH, WITHIN, HIGH, False, [0, 0], 2),
        (IMAGE, torch.randn(4, 3, 3, 3), None, HIGH, WITHIN, HIGH, True, WITHIN, 1),
        (IMAGE, torch.randn(4, 3, 3, 3), torch.randn(6), [3, 2], WITHIN, WITHIN, True, WITHIN, 2),
        (SOLID, torch.randn(2, 4, 2, 3, 1), None, [2, 1, 3], [1, 0, 0], [1, 2, 1], False, [0, 0, 0], 1),
        (LONG, torch.randn(2, 3, 5), torch.randn(2), [3], [2], [2], False, [0], 1),
        (LONG, torch.randn(3, 2, 5), torch.randn(2), [3], [2], [2], True, [1], 1),
    ],
    "convolution_backward.default": [
        (torch.randn(2, 6, 4, 3), IMAGE, torch.randn(6, 2, 3, 3), [6], HIGH, WITHIN, HIGH, False, [0, 0], 2, ALL),
        (torch.randn(2, 3, 20, 18), IMAGE, torch.randn(4, 3, 3, 3), [3], HIGH, WITHIN, HIGH, True, WITHIN, 1, ALL),
        (torch.randn(5, 2, 22), LONG, torch.randn(2, 3, 5), [2], [3], [2], [2], False, [0], 1, ALL),
    ],
    "embedding_dense_backward.default": [(torch.randn(5, 3), LABELS, 7, 2, False)],
    "index_add.default": [(SCORES, 0, LABELS % 5, SCORES * 2)],
    "scatter_add.default": [(INTS, 1, torch.tensor([[0, 2], [1, 1]]), INTS[:, :2])],
    "index_put.default": [(LONG, [LABELS % 5, LABELS % 3, LABELS], torch.randn(5), False)],
    "index.Tensor": [(SCORES.flip(0), [LABELS % 5]), (INTS, [None, LABELS % 3])],
    "nll_loss2d_forward.default": [
        (MAPS.log_softmax(1), torch.randint(0, 3, (4, 7, 7)), None, reduction, 2) for reduction in (0, 1, 2)
    ],
    "nll_loss2d_backward.default": [
        (torch.randn(4, 7, 7), MAPS.log_softmax(1), torch.randint(0, 3, (4, 7, 7)), torch.rand(3), 0, 1, torch.ones(()))
    ],
    "pow.Tensor_Scalar": [(INTS, 1), (INTS, 4), (A, 0.0), (A, -3)],
    "clamp.default": [(INTS, -1, 4), (INTS, None, 4)],
    "where.self": [(INTS > 0, INTS, MORE)],
    "remainder.Tensor": [(A, C)],
    "_softmax.default": [(MANY, 3, False), (WIDE, 1, False)],
    "_softmax_backward_data.default": [(WIDE, WIDE * 2, 1, torch.float32)],
    "_log_softmax_backward_data.default": [(WIDE, WIDE * 2, 1, torch.float32)],
    "_safe_softmax.default": [(MANY, 2), (WIDE, 1)],
    "linalg_vector_norm.default": [(WIDE, 1), (MANY, float("inf"), [0, 2]), (A, float("-inf"), [1], True), (A, 2, [0])],
    "topk.default": [(torch.tensor(2.0), 1), (INTS, 2, 1, False)],
    "sort.default": [(torch.tensor(2.0),), (INTS, 1, True)],
    "arange.start_step": [(0, 9, 2), (-3.0, 3.0, 0.5)],
}  # fmt: skip


def in_bfloat16(graph: AtenGraph) -> AtenGraph:
    """The same graph with bfloat16 in the place of float32."""
    return AtenGraph.from_dict(json.loads(json.dumps(graph.to_dict()).replace('"float32"', '"bfloat16"')))


def digest(graphs: Iterable[AtenGraph]) -> str:
    """How many of the graphs have a lowering, and a SHA-256 of their programs."""
    found, count = hashlib.sha256(), 0
    for graph in graphs:
        try:
            found.update(lower(graph)[0].to_bytes())
        except UnsupportedError:
            continue
        count += 1
    return f"{count} {found.hexdigest()[:32]}"


def digests() -> dict[str, str]:
    """By operation: of its samples; of its variants, and of both in bfloat16."""
    found = {}
    for operation in sorted(CASES):
        samples, variants = (
            [graph_of(operation, case)[0] for case in of.get(operation, [])] for of in (CASES, VARIANTS)
        )
        (plain, more) = digest(samples).split(), digest([*variants, *map(in_bfloat16, [*samples, *variants])])
        assert int(plain[0]) == len(samples), operation
        found[operation] = f"{plain[1]} {more}"
    return found


def test_the_lowering_is_that_of_its_version() -> None:
    """A new case gives a new digest; any other change raises LOWERING_VERSION: readers lower old tasks again.

    `POL_WRITE_LOWERINGS=1 pytest tests/graph/test_lowering_variants.py` writes the digests of a new version.
    """
    path = Path(__file__).with_name("lowerings.json")
    found = {"version": str(LOWERING_VERSION), **digests()}
    if os.environ.get("POL_WRITE_LOWERINGS"):
        path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    assert json.loads(path.read_text()) == found
