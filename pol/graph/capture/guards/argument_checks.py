"""Refuses wrong arguments before anything is traced, and parts of a training that a trace does not see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy
from torch.nn.utils.prune import BasePruningMethod
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks
from torch.optim.lr_scheduler import LRScheduler

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.graph.capture.loop import Loop
from pol.graph.step_program import RANGE_BITS, StepProgram

_WRAPPERS = ("torch._dynamo", "torch.jit", "torch.nn.parallel", "torch.nn.parallel.data_parallel", "torch.distributed")
_OLD_HOOKS: Mapping[type, str] = {
    BasePruningMethod: (
        "register the product with a mask by torch.nn.utils.parametrize.register_parametrization, or make the pruning "
        "permanent with torch.nn.utils.prune.remove"
    ),
}
_GRADIENT_HOOKS = {
    "_backward_hooks": "register_hook",
    "_post_accumulate_grad_hooks": "register_post_accumulate_grad_hook",
}


def require_capturable(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    optimizer: Optimizer,
    dataset: Sequence[Tensor],
    order: Tensor,
    loop: Loop,
    shapes_alone: bool = False,
) -> None:
    """Check all arguments of a capture; with ``shapes_alone`` the numbers of tensors don't matter.

    Raises:
        UnsupportedError: a model, loss, optimizer, data set or order that has no definition; says what to change.
    """
    _require_model(model, loss)
    _require_optimizer(optimizer, loop)
    _require_no_hooks(model, optimizer)
    _require_data(dataset, order)
    if order.shape[1] % loop.accumulation:
        raise UnsupportedError(
            f"batches of {order.shape[1]} examples cannot be cut into {loop.accumulation} micro-batches of equal size"
        )
    named = {
        **{f"parameter {name}": tensor for name, tensor in model.named_parameters()},
        **{f"buffer {name}": tensor for name, tensor in model.named_buffers()},
        **{f"data.{index} of the data set": tensor for index, tensor in enumerate(dataset)},
    }
    if not shapes_alone:
        _require_numbers({**named, "the order": order})
    if torch.is_autocast_enabled("cpu"):
        raise UnsupportedError(
            "leave torch.autocast before you capture: loop=Loop(precision='bf16-mixed') runs model and loss under it"
        )
    if torch.is_inference_mode_enabled():
        raise UnsupportedError("nothing can be trained in torch.inference_mode: leave it before you capture")


def _require_model(model: object, loss: object) -> None:
    if not isinstance(model, nn.Module):
        raise UnsupportedError(
            f"the model is a {type(model).__name__}, not a torch.nn.Module: put its parameters into a module"
        )
    for path, module in model.named_modules():
        what = f"model.{path}".rstrip(".")
        kind = type(module)
        if kind.__module__.startswith(_WRAPPERS) or module._compiled_call_impl is not None:
            raise UnsupportedError(
                f"{what} is wrapped ({kind.__name__}): capture the plain module that was given to torch.compile, "
                "torch.jit or DataParallel"
            )
        _require_traceable_layer(what, module)
    if not callable(loss):
        raise UnsupportedError(f"the loss is a {type(loss).__name__}: it has to be a function of output and target")
    if hasattr(loss, "_torchdynamo_orig_callable"):
        raise UnsupportedError("the loss is wrapped by torch.compile: capture the plain function")
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise UnsupportedError(f"parameter {name} has no shape yet: run the model once on a batch")
        if parameter.is_complex():
            raise UnsupportedError(
                f"parameter {name} is complex: make it a float32 parameter of pairs, "
                "nn.Parameter(torch.view_as_real(w)), and read it as torch.view_as_complex(parameter)"
            )
        if parameter.dtype not in {torch.float32, torch.bfloat16}:
            raise UnsupportedError(
                f"parameter {name} is {parameter.dtype}: only float32 and bfloat16 are defined, use model.float()"
            )


def _require_traceable_layer(what: str, module: nn.Module) -> None:
    for hook in module._forward_pre_hooks.values():
        for kind, instead in _OLD_HOOKS.items():
            if isinstance(hook, kind):
                raise UnsupportedError(
                    f"{what}: {type(module).__name__} has a hook of torch.nn.utils ({type(hook).__name__}), which sets "
                    f"an attribute anew in every step: {instead}"
                )
    if isinstance(module, _BatchNorm) and module.momentum is None and module.track_running_stats and module.training:
        raise UnsupportedError(
            f"{what}: {type(module).__name__} has momentum=None, so its averages depend on the number of batches that "
            "it reads from a buffer: give it a momentum, such as 0.1"
        )


def _require_optimizer(optimizer: object, loop: Loop) -> None:
    if not isinstance(optimizer, Optimizer):
        raise UnsupportedError(f"the optimizer is a {type(optimizer).__name__}: use one of torch.optim")
    attached = "step" in vars(optimizer) or any("initial_lr" in group for group in optimizer.param_groups)
    if attached and not isinstance(loop.scheduler, LRScheduler):
        raise UnsupportedError(
            "a learning-rate scheduler is attached to the optimizer: give it to the capture, loop=Loop(scheduler=...), "
            "or capture with an optimizer that no scheduler has seen"
        )


def _require_no_hooks(model: nn.Module, optimizer: Optimizer) -> None:
    if (
        optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or optimizer_hooks._global_optimizer_pre_hooks
        or optimizer_hooks._global_optimizer_post_hooks
    ):
        raise UnsupportedError("the optimizer has step hooks, which a capture cannot follow: remove them")
    for name, parameter in model.named_parameters():
        for attribute, register in _GRADIENT_HOOKS.items():
            if getattr(parameter, attribute, None):
                raise UnsupportedError(
                    f"parameter {name} has a gradient hook ({register}), which a capture cannot follow: remove it and "
                    "write what it does into the model or the loss"
                )


def _require_data(dataset: object, order: object) -> None:
    form = "the data set is a tuple of tensors with one row per example, the target last: (inputs, labels)"
    if not isinstance(dataset, tuple | list) or not all(isinstance(tensor, Tensor) for tensor in dataset):
        found = type(dataset).__name__
        if isinstance(dataset, tuple | list):
            found += f" of {', '.join(sorted({type(item).__name__ for item in dataset}))}"
        more = "; of a TensorDataset take .tensors" if hasattr(dataset, "tensors") else "; use torch.tensor(...)"
        raise UnsupportedError(f"{form}, not a {found}{more}")
    if len(dataset) < 2:
        raise UnsupportedError(form)
    if any(tensor.dim() == 0 or len(tensor) != len(dataset[0]) or tensor.numel() == 0 for tensor in dataset):
        raise UnsupportedError("all tensors of the data set need the same number of rows, and at least one number")
    if not isinstance(order, Tensor) or order.dim() != 2 or order.dtype != torch.int64 or order.numel() == 0:
        raise UnsupportedError("the order of the data is an int64 tensor of shape (steps, batch)")
    rows = len(dataset[0])
    if order.device.type == "cpu" and not 0 <= int(order.min()) <= int(order.max()) < rows:
        raise UnsupportedError(f"the order names rows that the data set of {rows} rows does not have")


def _require_numbers(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise UnsupportedError(
                f"{name} is {tensor.layout} on {tensor.device}: capture takes dense tensors on the CPU"
            )
        if not tensor.is_floating_point() or name.startswith("buffer"):
            continue
        if not bool(torch.isfinite(tensor).all()):
            raise UnsupportedError(f"{name} holds NaN or infinity: no training can begin from that")


def require_distances_of_state(program: StepProgram, names: Sequence[str], state: Sequence[Words]) -> None:
    """Check that every number of the first state that a step may change has a distance (docs/spec/verdict.md).

    Raises:
        UnsupportedError: a number has no distance. Masks that no step writes may hold large numbers and infinities.
    """
    for position, (name, words) in enumerate(zip(names, state, strict=True)):
        if program.has_distances(position, words):
            continue
        if not np.isfinite(words.view(np.float32)).all():
            raise UnsupportedError(f"{name} holds NaN or infinity: no training can begin from that")
        limit = 1 << (RANGE_BITS - program.slots[position].scale)
        raise UnsupportedError(
            f"{name} holds numbers of {limit} and more, and the step changes it: such a state has no distance, so no "
            "segment of its training could be accepted"
        )
