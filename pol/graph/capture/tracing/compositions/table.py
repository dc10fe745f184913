"""Which operation is composed how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions

from pol.graph.capture.replacements.images import affine_grids as grids
from pol.graph.capture.replacements.images import grid_sampling, interpolation, windows
from pol.graph.capture.replacements.images import pooling as maxima
from pol.graph.capture.replacements.indexing import bags, masks
from pol.graph.capture.replacements.losses import ctc as connectionist
from pol.graph.capture.replacements.losses import margins as label_margins
from pol.graph.capture.replacements.numbers import quantization
from pol.graph.capture.replacements.pullback import pulled_back
from pol.graph.capture.tracing.compositions import distances, weight_norm

Composition = Callable[..., Any]
"""From the arguments of an operation to its result, or NotImplemented where the operation itself stays."""

aten = torch.ops.aten


def _grid_backward(
    gradient: Tensor, value: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool, mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    def sampled(value: Tensor, grid: Tensor) -> Tensor:
        return grid_sampling.grid_sample(value, grid, interpolation, padding, corners)

    found = pulled_back(sampled, gradient, value, grid)
    return tuple(item if is_wanted else None for item, is_wanted in zip(found, mask, strict=True))


def _of_first(forward: Composition) -> Composition:
    """The gradient of an operation's first argument; the operation has the other arguments too."""

    def backward(gradient: Tensor, value: Tensor, *rest: Any, **keywords: Any) -> Tensor:
        return pulled_back(lambda first: forward(first, *rest, **keywords), gradient, value)[0]

    return backward


def _ctc(scores: Tensor, targets: Tensor, inputs: Any, texts: Any, blank: int = 0, _zero: bool = False) -> Any:
    loss = connectionist.ctc(scores, targets, inputs, texts, blank)
    return loss, loss


def _multi_label(value: Tensor, target: Tensor, reduction: int) -> Tensor:
    return label_margins.multilabel_margin_loss(value, target, reduction)[0]


def _multi_label_backward(
    gradient: Tensor, value: Tensor, target: Tensor, reduction: int, _is_target: Tensor
) -> Tensor:
    return pulled_back(lambda given: _multi_label(given, target, reduction), gradient, value)[0]


def _bag_backward(
    gradient: Tensor, tokens: Tensor, _offsets: Tensor, bag: Tensor, sizes: Tensor, chosen: Tensor, rows: int,
    scale_by_frequency: bool, mode: int, _sparse: bool, weights: Tensor | None, padding: int = -1,
) -> Tensor:  # fmt: skip
    return bags.embedding_bag_backward(
        gradient, tokens, bag, sizes, chosen, rows, scale_by_frequency, mode, weights, padding
    )


def _unpooled(rank: int) -> Composition:
    def unpooled(value: Tensor, index: Tensor, outputs: Sequence[int], *_: Any) -> Tensor:
        return maxima.max_unpool(value, index, outputs, rank)

    return unpooled


def _at_places(rank: int) -> Composition:
    def backward(gradient: Tensor, value: Tensor, index: Tensor) -> Tensor:
        return maxima.at_places(gradient, value, index, rank)

    return backward


_INTERPOLATED = ("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa")

COMPOSITIONS: Mapping[Any, Composition] = {
    aten.grid_sampler_2d.default: grid_sampling.grid_sample,
    aten.grid_sampler_3d.default: grid_sampling.grid_sample,
    aten.grid_sampler_2d_backward.default: _grid_backward,
    aten.grid_sampler_3d_backward.default: _grid_backward,
    **{getattr(aten, name).default: interpolation.forward(getattr(aten, name).default) for name in _INTERPOLATED},
    **{
        getattr(aten, f"{name}_backward").default: interpolation.backward(getattr(aten, name).default)
        for name in _INTERPOLATED
    },
    aten.affine_grid_generator.default: grids.affine_grid,
    aten.affine_grid_generator_backward.default: grids.affine_grid_backward,
    aten.channel_shuffle.default: grids.channel_shuffle,
    aten.native_channel_shuffle.default: grids.channel_shuffle,
    aten._cdist_forward.default: distances.pairwise,
    aten._cdist_backward.default: distances.pairwise_backward,
    aten._pdist_forward.default: distances.within,
    aten._pdist_backward.default: distances.within_backward,
    aten._ctc_loss.default: _ctc,
    aten._ctc_loss.Tensor: _ctc,
    aten._ctc_loss_backward.default: connectionist.ctc_backward,
    aten._ctc_loss_backward.Tensor: connectionist.ctc_backward,
    aten.multi_margin_loss.default: torch_decompositions.multi_margin_loss,
    aten.multi_margin_loss_backward.default: _of_first(torch_decompositions.multi_margin_loss),
    aten.multilabel_margin_loss_forward.default: label_margins.multilabel_margin_loss,
    aten.multilabel_margin_loss_backward.default: _multi_label_backward,
    aten._embedding_bag.default: bags.embedding_bag,
    aten._embedding_bag_forward_only.default: bags.embedding_bag,
    aten._embedding_bag_backward.default: _bag_backward,
    aten._embedding_bag_dense_backward.default: bags.embedding_bag_backward,
    aten._embedding_bag_per_sample_weights_backward.default: bags.weights_backward,
    aten.index_put.default: masks.index_put,
    aten.masked_scatter.default: masks.masked_scatter,
    aten.masked_scatter_backward.default: masks.masked_scatter_backward,
    aten.take.default: masks.take,
    aten.put.default: masks.put,
    aten.index_reduce.default: masks.index_reduce,
    aten.histc.default: masks.histogram,
    aten.fake_quantize_per_tensor_affine_cachemask.default: quantization.per_tensor,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: quantization.per_tensor_if,
    aten.fake_quantize_per_channel_affine_cachemask.default: quantization.per_channel,
    aten._fake_quantize_learnable_per_tensor_affine.default: quantization.learned,
    aten._fake_quantize_learnable_per_tensor_affine_backward.default: quantization.learned_backward,
    aten._fake_quantize_learnable_per_channel_affine.default: quantization.learned_per_channel,
    aten._fake_quantize_learnable_per_channel_affine_backward.default: quantization.learned_per_channel_backward,
    aten.adaptive_max_pool2d.default: maxima.adaptive_max_pool,
    aten.adaptive_max_pool3d.default: maxima.adaptive_max_pool,
    aten.adaptive_max_pool2d_backward.default: _at_places(2),
    aten.adaptive_max_pool3d_backward.default: _at_places(3),
    aten.max_unpool2d.default: _unpooled(2),
    aten.max_unpool3d.default: _unpooled(3),
    aten._weight_norm_interface.default: weight_norm.weight_norm,
    aten._weight_norm_interface_backward.default: weight_norm.weight_norm_backward,
    aten.im2col.default: windows.im2col,
    aten.col2im.default: windows.col2im,
    **{getattr(aten, f"replication_pad{rank}d").default: windows.replicated for rank in (1, 2, 3)},
    **{getattr(aten, f"replication_pad{rank}d_backward").default: _of_first(windows.replicated) for rank in (1, 2, 3)},
}
"""By operation. Each is the operation up to rounding; the self-check of a capture compares them with torch's."""

WRITES: Mapping[Any, Composition] = {
    aten.index_put_.default: masks.index_put,
    aten._index_put_impl_.default: lambda value, indices, words, accumulate=False, _unsafe=False: masks.index_put(
        value, indices, words, accumulate
    ),
    aten.masked_scatter_.default: masks.masked_scatter,
    aten.put_.default: masks.put,
    aten.index_reduce_.default: masks.index_reduce,
}
"""By operation that writes into its first argument: what it writes."""
