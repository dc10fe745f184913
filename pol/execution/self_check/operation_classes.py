"""Classes of ATen operations by the errors that they make: none, only the last rounding, cancellation, sums."""

from pol.graph.capture.tracing.aten_recorder import IDENTITIES, VIEWS

EXACT = VIEWS | IDENTITIES | frozenset(
    f"aten.{name}"
    for name in (
        "select.int", "slice.Tensor", "diagonal.default", "cummax.default", "cummin.default",
        "split_with_sizes.default", "split.Tensor", "unsafe_split.Tensor",
        "flip.default", "cat.default", "repeat.default", "roll.default", "constant_pad_nd.default",
        "slice_backward.default", "select_backward.default", "slice_scatter.default", "select_scatter.default",
        "tril.default", "triu.default", "full.default", "full_like.default", "scalar_tensor.default",
        "ones.default", "zeros.default", "copy.default", "where.self", "where.Scalar", "where.ScalarOther",
        "where.ScalarSelf", "maximum.default", "minimum.default", "abs.default", "neg.default", "relu.default",
        "clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor", "clamp_max.default",
        "clamp_max.Tensor", "threshold_backward.default", "softshrink_backward.default",
        "hardshrink_backward.default", "amax.default", "amin.default", "max.default", "min.default", "max.dim",
        "min.dim", "argmax.default", "argmin.default", "index_select.default", "embedding.default",
        "gather.default", "index.Tensor", "scatter.src", "scatter.value", "index_copy.default", "sort.default",
        "sort.stable", "topk.default", "max_pool2d_with_indices.default", "max_pool3d_with_indices.default",
        "pixel_shuffle.default", "pixel_unshuffle.default", "reflection_pad1d.default", "reflection_pad2d.default",
        "reflection_pad3d.default", "unfold.default", "as_strided.default",
        "sign.default", "sgn.default", "floor.default", "ceil.default", "trunc.default", "round.default",
    )
)  # fmt: skip
"""Operations without rounding: they move words, or give whole numbers."""
JUMPING = frozenset(
    f"aten.{name}"
    for name in (
        "floor_divide.default", "remainder.Scalar", "remainder.Tensor", "fmod.Scalar", "fmod.Tensor",
        "div.Tensor_mode", "div.Scalar_mode",
    )
)  # fmt: skip
"""Remainders and whole quotients are discontinuous: only their last rounding may differ."""
UNSTABLE = frozenset(
    ("aten.gelu.default", "aten.gelu_backward.default", "aten.silu_backward.default", "aten._log_softmax.default")
)
"""Sums that cancel within the operation: the error is relative to the operands and to 1, not to the result."""
LOG_SOFTMAX_BACKWARD = "aten._log_softmax_backward_data.default"
"""g - exp(y) sum(g): where a probability is close to 1, the terms cancel, and their roundings stay."""
SOFTMAX_BACKWARD = "aten._softmax_backward_data.default"
"""y (g - sum(g y)): the same."""
LAYER_NORM_BACKWARD = "aten.native_layer_norm_backward.default"
"""g - mean(g) - n mean(g n), over the deviation: the same, where g or n has one direction."""
BATCH_NORM_BACKWARD = "aten.native_batch_norm_backward.default"
GROUP_NORM_BACKWARD = "aten.native_group_norm_backward.default"
SUMS = frozenset(
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "addmm.default", "convolution.default", "convolution_backward.default",
        "sum.default", "sum.dim_IntList", "cumsum.default", "embedding_dense_backward.default", "scatter_add.default",
    )
)  # fmt: skip
"""Sums of operands, or of products of two: of squared operands they give the sum of the squared terms."""
SHARES = frozenset({"aten._native_batch_norm_legit_functional.default"})
"""Averages with a share that torch rounds: 1 - 0.997 of the rounded share differs from 0.003 by 7e-6 of it."""
