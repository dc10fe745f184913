"""Runs a captured step with torch's own kernels: how a solver trains. Bits may differ between machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pol.errors import OperationalError, ProtocolError
from pol.execution.native import torch_random
from pol.execution.native.torch_order import stable_topk
from pol.graph.aten_graph import WORD_TYPES, Argument, AtenGraph, AtenInput, AtenNode, AtenType, Ref, TorchDType

_ALLOWED_NAMES = (
    "alias.default", "clone.default", "detach.default", "lift_fresh_copy.default", "transpose.int", "permute.default",
    "expand.default", "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "view.default",
    "_unsafe_view.default", "select.int", "slice.Tensor", "split_with_sizes.default", "full.default",
    "full_like.default", "scalar_tensor.default", "arange.default", "arange.start", "arange.start_step",
    "eq.Scalar", "eq.Tensor", "ne.Scalar", "ne.Tensor", "lt.Scalar", "lt.Tensor", "le.Scalar", "le.Tensor",
    "gt.Scalar", "gt.Tensor", "ge.Scalar", "ge.Tensor", "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar",
    "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar", "maximum.default", "minimum.default", "sqrt.default",
    "abs.default", "neg.default", "exp.default", "log.default", "tanh.default", "sigmoid.default", "rsqrt.default",
    "reciprocal.default", "relu.default", "expm1.default", "log1p.default", "erf.default",
    "exp2.default", "log2.default", "sin.default", "cos.default",
    "gelu.default", "gelu_backward.default", "sign.default", "sgn.default",
    "scatter_add.default",
    "threshold_backward.default", "tanh_backward.default",
    "sigmoid_backward.default", "clamp.default", "clamp_min.default", "where.self", "where.ScalarOther",
    "where.ScalarSelf", "pow.Tensor_Scalar", "_to_copy.default", "logical_and.default", "bitwise_and.Tensor",
    "logical_or.default", "bitwise_or.Tensor", "logical_not.default", "bitwise_not.default", "sum.default",
    "sum.dim_IntList", "mean.default", "mean.dim", "amax.default", "amin.default",
    "prod.default", "prod.dim_int", "max.default", "min.default", "max.dim", "min.dim", "argmax.default",
    "argmin.default", "any.default", "any.dim", "any.dims", "all.default", "all.dim", "var.correction",
    "var_mean.correction", "std.correction", "linalg_vector_norm.default", "logsumexp.default", "cumsum.default",
    "native_layer_norm.default", "native_layer_norm_backward.default", "_native_batch_norm_legit_functional.default",
    "_native_batch_norm_legit.no_stats", "native_batch_norm_backward.default", "native_group_norm.default",
    "native_group_norm_backward.default", "_log_softmax.default",
    "_softmax.default", "_log_softmax_backward_data.default", "_softmax_backward_data.default", "mm.default",
    "bmm.default", "addmm.default", "index_select.default", "embedding.default", "gather.default",
    "convolution.default", "convolution_backward.default", "copy.default",
    "max_pool2d_with_indices.default", "max_pool2d_with_indices_backward.default",
    "max_pool3d_with_indices.default", "max_pool3d_with_indices_backward.default", "avg_pool2d.default",
    "avg_pool2d_backward.default", "avg_pool3d.default", "avg_pool3d_backward.default",
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d.default",
    "_adaptive_avg_pool3d_backward.default", "upsample_nearest1d.default", "upsample_nearest2d.default",
    "upsample_nearest3d.default", "upsample_nearest1d_backward.default", "upsample_nearest2d_backward.default",
    "upsample_nearest3d_backward.default", "_upsample_nearest_exact1d.default", "_upsample_nearest_exact2d.default",
    "_upsample_nearest_exact3d.default", "_upsample_nearest_exact1d_backward.default",
    "_upsample_nearest_exact2d_backward.default", "_upsample_nearest_exact3d_backward.default",
    "upsample_linear1d.default", "upsample_bilinear2d.default", "upsample_trilinear3d.default",
    "upsample_linear1d_backward.default", "upsample_bilinear2d_backward.default",
    "upsample_trilinear3d_backward.default", "reflection_pad1d.default",
    "reflection_pad2d.default", "reflection_pad1d_backward.default", "reflection_pad2d_backward.default",
    "pixel_shuffle.default", "pixel_unshuffle.default",
    "embedding_dense_backward.default", "nll_loss_forward.default", "nll_loss_backward.default",
    "split.Tensor", "unsafe_split.Tensor", "flip.default", "ones.default", "zeros.default", "cat.default",
    "repeat.default", "roll.default", "constant_pad_nd.default", "slice_backward.default", "select_backward.default",
    "slice_scatter.default", "select_scatter.default", "tril.default", "triu.default", "silu.default",
    "silu_backward.default", "softshrink_backward.default", "hardshrink_backward.default",
    "log10.default", "isnan.default", "isinf.default", "floor.default", "ceil.default", "trunc.default",
    "round.default", "floor_divide.default", "remainder.Scalar", "remainder.Tensor", "fmod.Scalar",
    "fmod.Tensor", "div.Tensor_mode",
    "div.Scalar_mode", "clamp.Tensor", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor", "where.Scalar",
    "pow.Tensor_Tensor", "pow.Scalar", "logical_xor.default", "bitwise_xor.Tensor", "bitwise_and.Scalar",
    "bitwise_or.Scalar", "scatter.src", "scatter.value", "index_add.default", "index_copy.default", "index.Tensor",
    "index_put.default", "sort.default", "sort.stable", "_safe_softmax.default",
    "nll_loss2d_forward.default", "nll_loss2d_backward.default",
)  # fmt: skip


def _overload(name: str) -> Callable[..., Any]:
    packet, overload = name.split(".")
    operation: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), overload)
    return operation


ALLOWED: Mapping[str, Callable[..., Any]] = {
    **{f"aten.{name}": _overload(name) for name in _ALLOWED_NAMES},
    # A graph says nothing of strides, and copies that only change them are left out of it: where a view isn't possible
    # reshape makes the copy.
    **dict.fromkeys(("aten.view.default", "aten._unsafe_view.default"), _overload("reshape.default")),
    "aten.topk.default": stable_topk,
    **torch_random.DRAWS,
}
"""The only operations that a graph can run: each is a pure function of tensors and numbers."""

CREATED = frozenset(
    f"aten.{name}"
    for name in (
        "full.default",
        "ones.default",
        "zeros.default",
        "scalar_tensor.default",
        "arange.default",
        "arange.start",
        "arange.start_step",
    )
)
"""Operations that make a tensor without being led to a device by an operand."""
DTYPES: Mapping[str, torch.dtype] = {name: getattr(torch, name) for name in WORD_TYPES}
"""torch's dtypes by the names that graphs use."""


class NativeExecutor:
    """Steps of an ATen graph on a device. A stranger's graph is data: what is not allowed is never looked up.

    Raises ProtocolError for an operation outside the allow-list, a malformed argument, or a result of another type
    than the graph states.
    """

    def __init__(self, graph: AtenGraph, device: str = "cpu") -> None:
        for node in graph.nodes:
            if node.operation not in ALLOWED:
                raise ProtocolError(f"{node.name}: the operation {node.operation!r} is not in the allow-list")
        self._graph = graph
        self._device = torch.device(device)
        self._last_use = _last_uses(graph)

    def run(
        self, state: Sequence[Tensor], constants: Sequence[Tensor], step: int
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """The next state and the observed tensors; inputs are converted to the types and the device of the graph."""
        graph = self._graph
        given = [*state, *constants, torch.tensor(step, dtype=torch.int64)]
        if len(given) != len(graph.inputs):
            raise ProtocolError(f"{len(given) - 1} tensors were given for {len(graph.inputs) - 1} state and constants")
        values: dict[int, tuple[Tensor, ...]] = {}
        with torch.no_grad():
            for number, (entry, tensor) in enumerate(zip(graph.inputs, given, strict=True)):
                values[number] = (self._input(entry, tensor),)
            for position, node in enumerate(graph.nodes):
                values[len(graph.inputs) + position] = self.call(node, values)
                for number in self._last_use.get(position, ()):
                    del values[number]
            # Copies where a slot shows another one or an input, so that no two tensors share memory.
            next_state = [values[ref.value][ref.output].clone() for ref in graph.next_state]
            observed = {name: values[ref.value][ref.output].clone() for name, ref in graph.observed}
        return next_state, observed

    def _input(self, entry: AtenInput, tensor: Tensor) -> Tensor:
        if tuple(tensor.shape) != entry.type.shape:
            raise ProtocolError(f"{entry.name} has shape {tuple(tensor.shape)}, the graph says {entry.type.shape}")
        wanted = DTYPES[entry.type.dtype]
        if wanted.is_floating_point != tensor.dtype.is_floating_point:
            raise ProtocolError(f"{entry.name} is {tensor.dtype}, the graph says {entry.type.dtype}")
        return tensor.detach().to(device=self._device, dtype=wanted)

    def call(self, node: AtenNode, values: Mapping[int, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The results of one operation, with the values that it refers to by number."""
        arguments = [_argument(argument, values) for argument in node.arguments]
        keywords = {name: _argument(argument, values) for name, argument in node.keywords}
        if node.operation in CREATED:
            keywords["device"] = self._device
        try:
            result = ALLOWED[node.operation](*arguments, **keywords)
        except MemoryError as error:
            raise OperationalError(f"{node.name}: not enough memory") from error
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error):
                raise OperationalError(f"{node.name}: not enough memory on {self._device}") from error
            raise ProtocolError(f"{node.name}: {node.operation} rejects its arguments: {error}") from error
        results = tuple(result) if isinstance(result, tuple | list) else (result,)
        results = wanted(results, arguments)
        actual = [AtenType(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in results]
        if actual != list(node.outputs):
            raise ProtocolError(f"{node.name}: {node.operation} gives {actual}, the graph says {list(node.outputs)}")
        return results


def wanted(results: Sequence[Tensor | None], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    """The results that an output mask (a last argument of booleans) asks for; torch computes more at times."""
    last = arguments[-1] if arguments else None
    mask = [True] * len(results)
    if isinstance(last, list | tuple) and len(last) == len(results) and all(isinstance(flag, bool) for flag in last):
        mask = list(last)
    return tuple(item for item, flag in zip(results, mask, strict=True) if flag and item is not None)


def _argument(argument: Argument, values: Mapping[int, tuple[Tensor, ...]]) -> Any:
    if isinstance(argument, Ref):
        return values[argument.value][argument.output]
    if isinstance(argument, TorchDType):
        if argument.name not in DTYPES:
            raise ProtocolError(f"the dtype {argument.name!r} is not in use here")
        return DTYPES[argument.name]
    if isinstance(argument, tuple):
        return [_argument(item, values) for item in argument]
    return argument


def _last_uses(graph: AtenGraph) -> dict[int, list[int]]:
    """Which values nothing needs after a node, so that memory is given back early."""
    last: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        last[len(graph.inputs) + position] = position
        for argument in (*node.arguments, *(value for _, value in node.keywords)):
            if isinstance(argument, Ref):
                last[argument.value] = position
            elif isinstance(argument, tuple):
                last.update((item.value, position) for item in argument if isinstance(item, Ref))
    for ref in (*graph.next_state, *(ref for _, ref in graph.observed)):
        last.pop(ref.value, None)
    uses: dict[int, list[int]] = {}
    for number, position in last.items():
        uses.setdefault(position, []).append(number)
    return uses
