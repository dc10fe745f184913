"""Calls of every operation that has a lowering: small, odd ones, shared by all tests that go through the operations."""

from typing import Any

import torch
from torch import Tensor

from pol.execution.stock_torch.torch_executor import results_of
from pol.graph.aten_graph import Argument, AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref, TorchDType
from pol.graph.step_program import Component

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
TIES = torch.tensor([[3.0, 7, 7, 1, 1], [0.0, -0.0, 0.0, -0.0, 0.0], [1.0, float("nan"), 9, float("nan"), -9]])
INFINITE = torch.tensor([[float("-inf"), float("-inf")], [float("inf"), 1.0], [float("-inf"), 2.0]])
MAPS, GROUPS = torch.randn(4, 3, 7, 7) + 1, torch.randn(4, 6, 5, 5)
LABELS = torch.tensor([2, 0, 6, 1, 6])
STEP, SEED = torch.tensor(3), torch.tensor([-7, 1], dtype=torch.int32)
SCORES = torch.randn(5, 7)
LOG = torch.log_softmax(SCORES, 1)
ROWS = torch.tensor([4, 0, 4])
TOKENS = torch.tensor([[1, 0], [3, 1]])

Case = tuple[Any, ...]
CASES: dict[str, list[Case]] = {
    "alias.default": [(A,)],
    "clone.default": [(A,)],
    "detach.default": [(A,)],
    "copy.default": [(A, A + 1), (A, C), (INTS, MORE)],
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
    "sign.default": [(A,), (SPECIAL,), (INTS,)],
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
    "prod.default": [(A,), (INTS,)],
    "prod.dim_int": [(A, 1), (INTS, 0, True), (YES, 0), (WIDE.abs() ** 0.01, 1)],
    "max.default": [(A,), (INTS,), (WIDE,)],
    "min.default": [(A,), (INTS,), (WIDE,)],
    "max.dim": [(A, 1), (LONG, 2, True), (INTS, 0), (TIES, 1), (SPECIAL, 0), (LONG, 0)],
    "min.dim": [(A, 1), (LONG, 2, True), (INTS, 0), (TIES, 1), (SPECIAL, 0), (LONG, 0)],
    "argmax.default": [(A,), (LONG, 2), (LONG, -1, True), (TIES, 1), (LONG,), (A, None, True)],
    "argmin.default": [(A,), (LONG, 2), (LONG, -1, True), (TIES, 1), (LONG,)],
    "any.default": [(YES,), (INTS,), (A,), (WIDE > 9,)],
    "any.dim": [(INTS == 0, 1), (SPECIAL, 0, True), (WIDE > 3, 1)],
    "any.dims": [(LONG > 2, [0, 2]), (LONG > 2, [1], True)],
    "all.default": [(YES,), (INTS,), (A,)],
    "all.dim": [(INTS > 0, 1), (INTS, 1, True), (WIDE > -3, 1)],
    "var.correction": [
        (A, [1]), (LONG, [0, 2], {"correction": 0}), (WIDE, None), (LONG, [1], {"correction": 1, "keepdim": True}),
    ],
    "var_mean.correction": [(A, [1]), (LONG, [0, 2], {"correction": 0, "keepdim": True})],
    "std.correction": [(A, [1]), (WIDE, [1], {"correction": 0})],
    "linalg_vector_norm.default": [
        (A,), (WIDE, 2, [1]), (LONG, 1, [0, 2], True), (LONG, float("inf"), [1]), (LONG, float("-inf"), None),
    ],
    "logsumexp.default": [(A, [1]), (WIDE, [1], True), (LONG, [0, 2]), (INFINITE, [1])],
    "cumsum.default": [
        (A, 1), (LONG.abs(), 2), (LONG, 0), (WIDE.abs(), 1), (INTS, 1), (torch.ones(3, 64), 1),
        (torch.ones(2, 200), 1), (YES, 0), (torch.ones(5000), 0),
    ],
    "native_layer_norm.default": [
        (LONG, [70], torch.randn(70), torch.randn(70), 1e-5), (LONG, [3, 70], None, None, 1e-5),
        (A, [4], B, None, 1e-5), (WIDE, [1000], torch.randn(1000), torch.randn(1000), 1e-5),
    ],
    "native_layer_norm_backward.default": [
        (torch.randn(5, 3, 70), LONG, [70], LONG.mean(2, True), 1 / LONG.std(2, keepdim=True), torch.randn(70),
         torch.randn(70), [True, True, True]),
        (torch.randn(3, 4), A, [4], A.mean(1, True), 1 / A.std(1, keepdim=True), B, B, [True, True, True]),
        (torch.randn(3, 4), A, [4], A.mean(1, True), 1 / A.std(1, keepdim=True), B, B, [False, True, True]),
        (torch.randn(3, 4), A, [4], A.mean(1, True), 1 / A.std(1, keepdim=True), None, None, [True, False, False]),
    ],
    "_native_batch_norm_legit_functional.default": [
        (LONG, torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3), True, 0.1, 1e-5),
        (MAPS, None, None, torch.randn(3), torch.rand(3), True, 0.25, 1e-3),
        (A, B, B, B, B.abs(), True, 0.1, 1e-5),
    ],
    "_native_batch_norm_legit.no_stats": [(MAPS, torch.randn(3), torch.randn(3), True, 0.1, 1e-5)],
    "native_batch_norm_backward.default": [
        (torch.randn(4, 3, 7, 7), MAPS, torch.randn(3), None, None, MAPS.mean((0, 2, 3)), 1 / MAPS.std((0, 2, 3)),
         True, 1e-5, [True, True, True]),
    ],
    "native_group_norm.default": [
        (GROUPS, torch.randn(6), torch.randn(6), 4, 6, 25, 3, 1e-5), (GROUPS, None, None, 4, 6, 25, 2, 1e-5),
    ],
    "native_group_norm_backward.default": [
        (torch.randn(4, 6, 5, 5), GROUPS, torch.randn(4, 3), torch.rand(4, 3), torch.randn(6), 4, 6, 25, 3,
         [True, True, True]),
        (torch.randn(4, 6, 5, 5), GROUPS, torch.randn(4, 3), torch.rand(4, 3), None, 4, 6, 25, 3,
         [True, False, False]),
    ],
    "_log_softmax.default": [(SCORES, 1, False), (SCORES, 0, False), (WIDE, -1, False)],
    "_softmax.default": [(SCORES, 1, False), (LONG, 1, False)],
    "_log_softmax_backward_data.default": [(SCORES, LOG, 1, torch.float32)],
    "_softmax_backward_data.default": [(SCORES, LOG.exp(), 1, torch.float32)],
    "mm.default": [(A, A.t().contiguous()), (WIDE, WIDE.t().contiguous()), (INTS, INTS.t().contiguous())],
    "bmm.default": [(LONG, LONG.transpose(1, 2).contiguous()), (INTS[None], INTS.t()[None])],
    "_int_mm.default": [(INTS.to(torch.int8), INTS.t().contiguous().to(torch.int8))],
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
    "pol.uniform.default": [
        (STEP, SEED, 0, [2, 3], 0.0, 1.0), (STEP, SEED, 1, [], 0.0, 1.0), (STEP, SEED, 2, [70, 1], -0.5, 0.5),
    ],
    "pol.normal.default": [(STEP, SEED, 0, [5, 300], 0.0, 1.0), (STEP, SEED, 9, [2, 2, 2], 3.0, 0.5)],
    "pol.bernoulli.default": [(STEP, SEED, 4, [300], p) for p in (0.0, 1.0, 0.1, 2.0**-33, 1.0 - 2.0**-34)],
    "pol.integers.default": [
        (STEP, SEED, 4, [300], *limits) for limits in ((0, 2), (-5, 6), (7, 8), (-(2**31), 2**31 - 1))
    ],
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
        (torch.randn(2, 4, 3, 3), IMAGES, KERNELS, [4], TWICE, [1, 1], [1, 1], False, NONE, 1, [True, True, False])
    ],
}
MASKED = torch.where(torch.rand(4, 70) < 0.3, float("-inf"), torch.randn(4, 70))
MASKED[1] = float("-inf")
CLASS_WEIGHTS = torch.rand(7) + 0.5
IMAGE_LOG, IMAGE_LABELS = torch.randn(2, 7, 3, 2).log_softmax(1), torch.randint(0, 7, (2, 3, 2))
TIES = torch.tensor([[1.0, 3.0, 3.0, -0.0, 0.0, 3.0], [2.0, float("nan"), float("inf"), 2.0, -1.0, float("-inf")]])
QUOTIENTS, TENTHS = torch.arange(-24, 24) / 8, torch.tensor([0.1, -0.1, 0.3, 0.7]).repeat(12)
HALVES = torch.tensor([0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 1e9, -3e38, float("inf"), float("nan"), 0.49999997])
WHOLE = torch.tensor([[-7, -1, 0], [1, 6, 2147483647]])
PLACES, OTHERS = torch.tensor([3, 0, 3, -1]), torch.tensor([1, -7, 1, 6])
CASES |= {
    "split.Tensor": [(LONG, 32, 2), (A, 2)],
    "unsafe_split.Tensor": [(A, 3, 1)],
    "flip.default": [(A, [0]), (LONG, [0, -1]), (INTS, [])],
    "ones.default": [([2, 3],)],
    "zeros.default": [([4],)],
    "cat.default": [([A, A + 1],), ([A, C, A], 1), ([INTS, INTS],), ([SPECIAL, SPECIAL], -1), ([A] * 20, 1), ([A],)],
    "repeat.default": [(A, [2, 1]), (A, [3, 1, 2]), (B, [1]), (INTS, [1, 3])],
    "roll.default": [(A, [1], [1]), (A, [-2, 5], [0, 1]), (A, [3]), (INTS, [0], [1])],
    "constant_pad_nd.default": [
        (A, [1, 2]),
        (LONG, [0, 0, 2, -1, -1, 3], 0.5),
        (A, [-1, -1, 1, 1], -0.0),
        (INTS, [1, 1], 7),
    ],
    "slice_backward.default": [
        (A, [3, 9], 1, 2, 6, 1),
        (A, [3, 9], 1, 1, 2**63 - 1, 2),
        (A, [7, 4], 0, -7, -1, 2),
        (A, [10, 4], 0, 1, 9, 3),
    ],
    "select_backward.default": [(A, [3, 5, 4], 1, 2), (A, [3, 4, 2], -1, -1), (torch.tensor(2.0), [3], 0, 1)],
    "slice_scatter.default": [
        (LONG, LONG[:, 1:] * 2, 1, 1),
        (A, C, 1, 2, 3),
        (A, A[:2], 0, -3, -1),
        (INTS, MORE[None], 0, 1),
        (LONG, LONG[:, :, :23] * 2, 2, 1, 70, 3),
        (INTS, INTS[:, :1], 1, 0, 2, 2),
    ],
    "select_scatter.default": [(A, B, 0, 1), (A, C[:, 0], 1, -1)],
    "tril.default": [(A,), (A, 1), (LONG, -1), (SPECIAL.reshape(3, 4), 0), (INTS, 1)],
    "triu.default": [(A,), (A, 2), (LONG, -2)],
    "silu.default": [(A,), (A * 30,), (SPECIAL,)],
    "silu_backward.default": [(A, POSITIVE), (A, A * 30)],
    "softshrink_backward.default": [(A, A.flip(0), 0.5)],
    "hardshrink_backward.default": [(A, A.flip(0), 0.5)],
    "log10.default": [(POSITIVE,)],
    "isnan.default": [(SPECIAL,)],
    "isinf.default": [(SPECIAL,)],
    "floor.default": [(HALVES,), (SPECIAL,)],
    "ceil.default": [(HALVES,), (SPECIAL,)],
    "trunc.default": [(HALVES,), (SPECIAL,)],
    "round.default": [(HALVES,), (SPECIAL,)],
    "fmod.Scalar": [(A, 0.75), (A, -0.1), (SPECIAL, 3.0)],
    "fmod.Tensor": [(A, POSITIVE), (A, -POSITIVE), (QUOTIENTS, TENTHS)],
    "floor_divide.default": [
        (A, 0.25), (A, -0.1), (QUOTIENTS, TENTHS), (WHOLE, 1), (WHOLE, 3), (WHOLE, 7), (WHOLE, 2147483647),
        (WHOLE, 65537),
    ],
    "remainder.Scalar": [
        (A, 0.75), (A, -0.1), (QUOTIENTS, 0.1), (WHOLE, 1), (WHOLE, 3), (WHOLE, 7), (WHOLE, 2147483647),
        (WHOLE, 65537),
    ],
    "remainder.Tensor": [(A, POSITIVE), (A, -POSITIVE), (QUOTIENTS, TENTHS)],
    "div.Tensor_mode": [(QUOTIENTS, TENTHS, {"rounding_mode": "floor"})]
    + [(A, POSITIVE, {"rounding_mode": mode}) for mode in ("floor", "trunc", None)],
    "div.Scalar_mode": [(WHOLE, 2, {"rounding_mode": "floor"}), (A, 0.3, {"rounding_mode": "trunc"})],
    "clamp.Tensor": [(A, B, C), (A, None, C), (INTS, MORE, MORE + 2)],
    "clamp_min.Tensor": [(A, C), (SPECIAL, SPECIAL.flip(0))],
    "clamp_max.default": [(A, 0.2), (INTS, 3)],
    "clamp_max.Tensor": [(A, B), (INTS, MORE)],
    "where.Scalar": [(A > 0, 1.5, -2.0)],
    "pow.Tensor_Tensor": [(POSITIVE, A), (A, torch.full((3, 4), 2.0))],
    "pow.Scalar": [(0.9, A), (2, A)],
    "logical_xor.default": [(YES, NO)],
    "bitwise_xor.Tensor": [(YES, NO), (INTS, MORE)],
    "bitwise_and.Scalar": [(INTS, 3)],
    "bitwise_or.Scalar": [(INTS, 3)],
    "scatter.src": [(A, 1, torch.tensor([[1, 1], [3, 0]]), A[:2, :2] * 9), (INTS, 0, torch.tensor([[1, 0, 1]]), INTS)],
    "scatter.value": [(A, 1, torch.tensor([[1], [3], [0]]), 7.5), (INTS, 0, torch.tensor([[1, 0]]), -2)],
    "index_add.default": [
        (A, 0, ROWS % 3, torch.randn(3, 4)),
        (A, 1, TOKENS.flatten() % 4, torch.randn(3, 4)),
        (A, 0, ROWS % 3, torch.randn(3, 4), {"alpha": 0.3}),
        (INTS, 1, torch.tensor([0, 2]), INTS[:, :2]),
    ],
    "index_copy.default": [(A, 0, torch.tensor([2, 0]), torch.randn(2, 4))],
    "index.Tensor": [
        (SCORES, [PLACES]),
        (SCORES, [None, OTHERS]),
        (SCORES, [PLACES, OTHERS]),
        (LONG, [None, TOKENS % 3]),
        (LONG, [TOKENS, None, TOKENS + 5]),
        (LONG, [TOKENS[:, :1], TOKENS[0] % 3]),
        (INTS, [torch.tensor(1), MORE % 3]),
    ],
    "index_put.default": [
        (SCORES, [PLACES], torch.randn(4, 7), True),
        (SCORES, [PLACES[1:]], torch.randn(3, 7)),
        (SCORES, [PLACES, OTHERS], torch.randn(4), True),
        (SCORES, [None, OTHERS], torch.tensor(1.5), True),
        (LONG, [TOKENS, None, TOKENS + 5], torch.randn(2, 2, 3), True),
        (INTS, [torch.tensor([1, 0])], MORE, True),
        (SCORES, [PLACES[:2], OTHERS[:2]], torch.randn(2), False),
    ],
    "topk.default": [
        (SCORES, 3), (SCORES, 2, 0), (TIES[:, :3], 1), (TIES, 4), (torch.zeros(3, 64), 2),
        (torch.tensor([[1.0, 2.0] * 20]), 7, 1, False), (WIDE[:, :90], 5, -1, False), (LONG, 2, 1), (INTS, 2),
    ],
    "sort.default": [(SCORES,), (WIDE[:, :70], 1, True), (INTS, 0)],
    "sort.stable": [
        (TIES, {"stable": True}),
        (TIES, {"stable": True, "descending": True}),
        (TIES, {"stable": True, "dim": 0}),
    ],
    "_safe_softmax.default": [(MASKED, 1), (SCORES, -1), (MASKED, 0)],
    "nll_loss2d_forward.default": [(IMAGE_LOG, IMAGE_LABELS, weight, 1, -100) for weight in (None, CLASS_WEIGHTS)],
    "nll_loss2d_backward.default": [
        (torch.tensor(1.5), IMAGE_LOG, IMAGE_LABELS, weight, 1, 3, torch.tensor(5.0))
        for weight in (None, CLASS_WEIGHTS)
    ],
}  # fmt: skip
CASES["gelu.default"] += [(A,), (A * 4,), (SPECIAL[:5],)]
CASES["gelu_backward.default"] += [(A, POSITIVE), (A, A * 4)]
CASES["arange.start_step"] += [(0.5, 3.0, 0.25)]
CASES["pow.Tensor_Scalar"] += [(POSITIVE, 2.5), (POSITIVE, -0.3), (A, 0), (INTS, 3), (POSITIVE, 7)]
CASES["maximum.default"] += [(INTS, MORE)]
CASES["minimum.default"] += [(INTS, MORE)]
CASES["abs.default"] += [(INTS,)]
CASES["bitwise_and.Tensor"] += [(INTS, MORE)]
CASES["bitwise_not.default"] += [(INTS,)]
CASES["logical_and.default"] += [(INTS, MORE), (A, YES)]
CASES["logical_not.default"] += [(INTS,), (SPECIAL,)]
CASES["nll_loss_forward.default"] += [
    (LOG, LABELS, CLASS_WEIGHTS, reduction, ignored) for reduction in (0, 1, 2) for ignored in (-100, 6)
]
CASES["nll_loss_backward.default"] += [
    (torch.tensor(1.5), LOG, LABELS, CLASS_WEIGHTS, reduction, 6, torch.tensor(3.0)) for reduction in (1, 2)
]
POOLED, CHANNEL = torch.randn(2, 3, 7, 6), torch.randn(2, 3, 7)
OPEN = torch.tensor([[[1.0, 1.0, -0.0], [float("nan"), 0.0, float("-inf")], [-1.0, float("-inf"), float("-inf")]]])
SOLID = torch.randn(1, 2, 4, 5, 6)


MAXIMA: list[Case] = [
    (POOLED, TWICE, TWICE, NONE, [1, 1], False),
    (POOLED, [3, 3], TWICE, [1, 1], [1, 1], False),
    (POOLED, [2, 3], [1, 2], [1, 1], [2, 1], True),
    (POOLED[0], [3], [], [1], [1], True),
    (OPEN, TWICE, [1, 1], [1, 1], [1, 1], False),
    (POOLED, TWICE, [3, 3], NONE, [1, 1], False),
]
AVERAGES: list[Case] = [
    (POOLED, TWICE, [], NONE, False, True, None),
    (POOLED, [3, 3], TWICE, [1, 1], False, True, None),
    (POOLED, [3, 3], TWICE, [1, 1], True, False, None),
    (POOLED, [3, 3], TWICE, [1, 1], True, True, None),
    (POOLED, [3, 2], [1, 3], [1, 0], False, True, 5),
    (POOLED, TWICE, [3, 3], NONE, False, True, None),
]
SIZES = [[1, 1], [3, 2], [7, 6], [9, 4]]
for rank, cases in ((2, MAXIMA), (3, [(SOLID, [2, 2, 3], [2, 2, 2], [0, 1, 1], [1, 1, 1], False)])):
    forward = getattr(torch.ops.aten, f"max_pool{rank}d_with_indices").default
    CASES[f"max_pool{rank}d_with_indices.default"] = list(cases)
    CASES[f"max_pool{rank}d_with_indices_backward.default"] = [
        (torch.randn_like(value), *case, index) for case in cases for value, index in [forward(*case)]
    ]
SOLID_AVERAGES: list[Case] = [
    (SOLID, [2, 2, 2], [], [0, 0, 0], False, True, None),
    (SOLID, [3, 3, 3], [2, 2, 2], [1, 1, 1], False, True, None),
]
for rank, cases in ((2, AVERAGES), (3, SOLID_AVERAGES)):
    forward = getattr(torch.ops.aten, f"avg_pool{rank}d").default
    CASES[f"avg_pool{rank}d.default"] = list(cases)
    CASES[f"avg_pool{rank}d_backward.default"] = [(torch.randn_like(forward(*case)), *case) for case in cases]
CASES |= {
    "_adaptive_avg_pool2d.default": [(POOLED, size) for size in SIZES] + [(POOLED[0], [4, 4])],
    "_adaptive_avg_pool2d_backward.default": [(torch.randn(2, 3, *size), POOLED) for size in SIZES],
    "_adaptive_avg_pool3d.default": [(SOLID, [3, 2, 4])],
    "_adaptive_avg_pool3d_backward.default": [(torch.randn(1, 2, 3, 2, 4), SOLID)],
    "reflection_pad1d.default": [(CHANNEL, [2, 1]), (CHANNEL[0], [0, 6])],
    "reflection_pad1d_backward.default": [(torch.randn(2, 3, 10), CHANNEL, [2, 1])],
    "reflection_pad2d.default": [(POOLED, [1, 2, 3, 0])],
    "reflection_pad2d_backward.default": [(torch.randn(2, 3, 10, 9), POOLED, [1, 2, 3, 0])],
    "reflection_pad3d.default": [(SOLID, [1, 2, 0, 1, 3, 2])],
    "reflection_pad3d_backward.default": [(torch.randn(1, 2, 9, 6, 9), SOLID, [1, 2, 0, 1, 3, 2])],
    "unfold.default": [(A, 1, 2, 1), (LONG, 2, 8, 5), (A, 0, 3, 1), (INTS, -1, 2, 1), (torch.tensor(2.0), 0, 1, 1)],
    "as_strided.default": [(A, [2, 3], [1, 2], 1), (LONG, [5, 13, 3, 8], [210, 5, 70, 1]), (INTS, [2], [0], 4)],
    "unfold_backward.default": [
        (torch.randn(3, 3, 2), [3, 4], 1, 2, 1),
        (torch.randn(5, 3, 13, 8), [5, 3, 70], 2, 8, 5),
        (torch.randn(1, 4, 2), [3, 4], 0, 2, 2),
        (torch.randn(2, 2), [7], 0, 2, 3),
    ],
    "pixel_shuffle.default": [(torch.randn(2, 8, 3, 4), 2)],
    "pixel_unshuffle.default": [(torch.randn(2, 2, 6, 4), 2)],
}
INTERPOLATIONS = {1: "linear1d", 2: "bilinear2d", 3: "trilinear3d"}
for rank, x in ((1, CHANNEL), (2, POOLED), (3, SOLID)):
    old = list(x.shape[2:])
    sizes = [([2 * n for n in old], 2.0), ([2 * n for n in old], None), ([n + 2 for n in old], None)]
    for new, scale in [*sizes, ([int(n * 0.6) for n in old], 0.6)]:
        scales = [scale] * rank
        gradient, shape = torch.randn(*x.shape[:2], *new), list(x.shape)
        for name in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
            CASES.setdefault(f"{name}.default", []).append((x, new, *scales))
            CASES.setdefault(f"{name}_backward.default", []).append((gradient, new, shape, *scales))
        for corners in (False, True):
            name = f"upsample_{INTERPOLATIONS[rank]}"
            CASES.setdefault(f"{name}.default", []).append((x, new, corners, *scales))
            CASES.setdefault(f"{name}_backward.default", []).append((gradient, new, shape, corners, *scales))
CASES |= {
    "diagonal.default": [(A,), (A, 1), (LONG, -1, 0, 2), (LONG, 2, -1, 1)],
    "bitwise_left_shift.Tensor": [(INTS, MORE), (MORE[:, None], MORE)],
    "bitwise_right_shift.Tensor": [(INTS, MORE), (WHOLE, torch.tensor([0, 1, 31]))],
    "cumprod.default": [(A, 1), (INTS, 0), (1 + WIDE * 0.01, 1), (YES, 0), (LONG[:, :, :9], -1)],
    "cummax.default": [(A, 1), (INTS, 0), (WIDE, 1), (TIES, 1), (SPECIAL, 0), (LONG, 1), (torch.tensor(2.0), 0)],
    "cummin.default": [(A, 1), (INTS, 0), (WIDE, 1), (TIES, 1), (SPECIAL, 0), (LONG, -1)],
    "logcumsumexp.default": [(A, 1), (WIDE, 1), (INFINITE, 1), (LONG, 0)],
    "searchsorted.Tensor": [
        (A.sort(1)[0], A),
        (torch.arange(-2.0, 3.0), A, {"right": True}),
        (INTS.sort(1)[0], INTS, {"side": "right", "out_int32": True}),
        (torch.arange(-2.0, 3.0), SPECIAL),
    ],
    "bucketize.Tensor": [
        (A, B.sort()[0]),
        (INTS, torch.tensor([-2, 0, 5]), {"right": True}),
        (INTS, torch.arange(4.0)),
    ],
}
TARGETS = torch.randint(0, 5, (9, 7))
CASES["scatter_reduce.two"] = [
    (SCORES, 0, TARGETS % 4, torch.randn(9, 7), kind, {"include_self": keeps})
    for kind in ("sum", "mean", "prod", "amax", "amin")
    for keeps in (True, False)
] + [
    (INTS, 1, torch.tensor([[0, 2, 2]]), INTS.flip(1), kind, {"include_self": keeps})
    for kind in ("sum", "prod", "amax", "amin")
    for keeps in (True, False)
]
ENDS = torch.tensor([2, 2, 8], dtype=torch.int32)
CASES["_grouped_mm.default"] = [
    (torch.randn(8, 4), torch.randn(3, 4, 8), ENDS),
    (torch.randn(3, 8, 4), torch.randn(4, 8), ENDS),
    (torch.randn(4, 8), torch.randn(8, 8), ENDS),
    (torch.randn(3, 8, 4), torch.randn(3, 4, 8)),
]
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


def full_name(operation: str) -> str:
    return operation if operation.startswith("pol.") else f"aten.{operation}"


def graph_of(operation: str, case: Case) -> tuple[AtenGraph, list[Tensor]]:
    """A graph of one operation whose tensor arguments are state."""
    keywords = case[-1] if isinstance(case[-1], dict) else {}
    given = [item for item in case if not isinstance(item, dict)]
    leaves = [leaf for item in given for leaf in (item if isinstance(item, list) else [item])]
    tensors = [item for item in leaves if isinstance(item, Tensor)] or [A]
    numbers = iter(range(len(tensors)))

    def plain(item: Any) -> Argument:
        if isinstance(item, Tensor):
            return Ref(next(numbers))
        if isinstance(item, torch.dtype):
            return TorchDType(name_of(item))
        return tuple(map(plain, item)) if isinstance(item, list) else item

    state = [
        AtenInput(InputRole.STATE, f"s{i}", AtenType(name_of(t.dtype), tuple(t.shape)), Component.PARAMETER)
        for i, t in enumerate(tensors)
    ]
    inputs = (
        *state,
        AtenInput(InputRole.CONSTANT, "c", AtenType("float32", ())),
        AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
    )
    results = results_of(full_name(operation), given, keywords)
    outputs = tuple(AtenType(name_of(t.dtype), tuple(t.shape)) for t in results)
    pairs = tuple(sorted((key, plain(value)) for key, value in keywords.items()))
    node = AtenNode(full_name(operation), tuple(plain(item) for item in given), pairs, outputs, "it", "test.py:1: it()")
    observed = tuple((f"out{i}", Ref(len(inputs), i)) for i in range(len(results)))
    return AtenGraph(inputs, (node,), tuple(Ref(i) for i in range(len(state))), observed), tensors
