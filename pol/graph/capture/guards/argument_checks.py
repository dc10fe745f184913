"""Refuses wrong arguments before anything is traced, and parts of a training that a trace does not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.graph.aten_graph import WORD_TYPES
from pol.graph.capture.loop import Loop
from pol.graph.capture.training import Dataset, Phase, Training
from pol.graph.refusals import Report, refuse
from pol.graph.step_program import RANGE_BITS, StepProgram

_WRAPPERS = ("torch.jit", "torch.nn.parallel", "torch.distributed")
_GRADIENT_HOOKS = {
    "_backward_hooks": "register_hook",
    "_post_accumulate_grad_hooks": "register_post_accumulate_grad_hook",
}


def require_capturable(
    training: Training, dataset: Dataset, order: Tensor, shapes_alone: bool = False, report: Report = refuse
) -> None:
    """Check all arguments of a capture; with ``shapes_alone`` the numbers of tensors don't matter.

    Raises:
        UnsupportedError: a model, loss, optimizer, data set or order that has no definition; says what to change.
    """
    for problem in _problems(training, dataset, order, shapes_alone):
        report(UnsupportedError(problem))


def _problems(training: Training, dataset: Dataset, order: Tensor, shapes_alone: bool) -> Iterator[str]:
    model: Any = training.model
    loop = training.loop
    if not isinstance(model, nn.Module):
        yield f"the model is a {type(model).__name__}, not a torch.nn.Module: put its parameters into a module"
        return
    yield from _of_model(model)
    for phase in training.phases:
        yield from _of_loss(phase)
    for optimizer in training.optimizers:
        yield from _of_optimizer(optimizer, loop)
    yield from _of_hooks(training)
    yield from _of_schedulers(training)
    of_data = list(_of_data(dataset, order))
    yield from of_data
    if of_data:
        return
    if order.shape[1] % loop.accumulation:
        yield (
            f"batches of {order.shape[1]} examples cannot be cut into {loop.accumulation} micro-batches of equal size"
        )
    entries = dataset.items() if isinstance(dataset, Mapping) else enumerate(dataset)
    named = {
        **{f"parameter {name}": tensor for name, tensor in model.named_parameters()},
        **{f"buffer {name}": tensor for name, tensor in model.named_buffers()},
        **{f"data.{key} of the data set": tensor for key, tensor in entries},
    }
    if not shapes_alone:
        yield from _of_numbers({**named, "the order": order})
    if torch.is_autocast_enabled("cpu"):
        yield (
            "leave torch.autocast before you capture: loop=Loop(precision='bf16-mixed') runs model and loss under it"
        )
    if torch.is_inference_mode_enabled():
        yield "nothing can be trained in torch.inference_mode: leave it before you capture"


def _of_model(model: nn.Module) -> Iterator[str]:
    for path, module in model.named_modules():
        what = f"model.{path}".rstrip(".")
        kind = type(module)
        if kind.__module__.startswith(_WRAPPERS):
            yield (
                f"{what} is wrapped ({kind.__name__}): capture the plain module that was given to it, "
                f"{what}.module of a parallel one"
            )
        yield from _of_layer(what, module)
    for name, parameter in model.named_parameters():
        has_no_shape: bool = is_lazy(parameter)
        if has_no_shape:
            yield f"parameter {name} has no shape yet: run the model once on a batch"
        elif parameter.is_complex():
            yield (
                f"parameter {name} is complex: make it a float32 parameter of pairs, "
                "nn.Parameter(torch.view_as_real(w)), and read it as torch.view_as_complex(parameter)"
            )
        elif parameter.dtype not in {torch.float32, torch.bfloat16}:
            yield (f"parameter {name} is {parameter.dtype}: only float32 and bfloat16 are defined, use model.float()")
    for name, buffer in model.named_buffers():
        if not buffer.numel():
            yield (
                f"buffer {name} is empty, and the program's state keeps its shapes: run the model once on a batch "
                "before you capture it, which gives an observer its shape, or remove the buffer"
            )
        elif not buffer.is_complex():
            yield from _of_type(f"buffer {name}", buffer, "use model.float()")


def _of_loss(phase: Phase) -> Iterator[str]:
    loss: object = phase.objective.loss
    if loss is not None and not callable(loss):
        yield f"the loss is a {type(loss).__name__}: it has to be a function of output and target"


def _of_type(what: str, tensor: Tensor, floats: str) -> Iterator[str]:
    """A type that has no words."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in WORD_TYPES:
        instead = floats if tensor.is_floating_point() else "convert it with .long()"
        if tensor.is_complex():
            instead = "take pairs of real numbers, torch.view_as_real(x)"
        yield f"{what} is {kind}, which has no definition: {instead}"


def _of_layer(what: str, module: nn.Module) -> Iterator[str]:
    if isinstance(module, _BatchNorm) and module.momentum is None and module.track_running_stats and module.training:
        yield (
            f"{what}: {type(module).__name__} has momentum=None, so its averages depend on the number of batches that "
            "it reads from a buffer: give it a momentum, such as 0.1"
        )


def _of_optimizer(optimizer: object, loop: Loop) -> Iterator[str]:
    if not isinstance(optimizer, Optimizer):
        yield f"the optimizer is a {type(optimizer).__name__}: use one of torch.optim, or a list of them"
        return
    attached = "step" in vars(optimizer)  # torch wraps it, while `initial_lr` may be the optimizer's own
    if attached and not any(scheduler.optimizer is optimizer for scheduler in loop.schedulers):
        yield (
            "a learning-rate scheduler is attached to the optimizer: give it to the capture, loop=Loop(scheduler=...), "
            "or capture with an optimizer that no scheduler has seen"
        )


def is_recorders(hook: object) -> bool:
    """Whether a hook is that of a recorder, which looks and changes nothing."""
    return str(getattr(hook, "__module__", "")).startswith("pol.training.")


def _of_hooks(training: Training) -> Iterator[str]:
    given: Sequence[object] = training.optimizers
    optimizers = [item for item in given if isinstance(item, Optimizer)]
    hooks = [
        table for item in optimizers for table in (item._optimizer_step_pre_hooks, item._optimizer_step_post_hooks)
    ]
    hooks += [optimizer_hooks._global_optimizer_pre_hooks, optimizer_hooks._global_optimizer_post_hooks]
    if any(not is_recorders(hook) for table in hooks for hook in table.values()):
        yield "the optimizer has step hooks, which a capture cannot follow: remove them"
    for name, parameter in training.model.named_parameters():
        for attribute, register in _GRADIENT_HOOKS.items():
            if any(not is_recorders(hook) for hook in (getattr(parameter, attribute, None) or {}).values()):
                yield (
                    f"parameter {name} has a gradient hook ({register}), which a capture cannot follow: remove it and "
                    "write what it does into the model or the loss"
                )


def _of_schedulers(training: Training) -> Iterator[str]:
    for scheduler in training.loop.schedulers:
        if not any(scheduler.optimizer is own for own in training.optimizers):
            yield "the scheduler belongs to another optimizer than the one that is captured"


def _of_data(dataset: object, order: object) -> Iterator[str]:
    form = "the data set is a tuple of tensors with one row per example, the target last: (inputs, labels)"
    if isinstance(dataset, Mapping):
        tensors: Sequence[Any] = list(dataset.values())
        form = "the data set is a dictionary of tensors with one row per example, the target last"
    elif isinstance(dataset, tuple | list):
        tensors = dataset
    else:
        more = "; of a TensorDataset take .tensors" if hasattr(dataset, "tensors") else "; use torch.tensor(...)"
        yield f"{form}, not a {type(dataset).__name__}{more}"
        return
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        kinds = ", ".join(sorted({type(item).__name__ for item in tensors}))
        yield f"{form}, not a {type(dataset).__name__} of {kinds}; use torch.tensor(...)"
        return
    if not tensors:
        yield form
        return
    for key, tensor in dataset.items() if isinstance(dataset, Mapping) else enumerate(tensors):
        if tensor.dim() == 0 or len(tensor) != len(tensors[0]) or tensor.numel() == 0:
            yield (
                f"data.{key} of the data set has the shape {tuple(tensor.shape)}, others have {len(tensors[0])} rows: "
                "all tensors need the same number of rows, and at least one number. What all steps share, such as the "
                "edges of one graph, is a buffer of the model (register_buffer); graphs of other sizes are padded to "
                "one shape, with a mask"
            )
            return
        yield from _of_type(f"data.{key} of the data set", tensor, "convert it with .float()")
    if not isinstance(order, Tensor) or order.dim() != 2 or order.dtype != torch.int64 or order.numel() == 0:
        yield "the order of the data is an int64 tensor of shape (steps, batch)"
        return
    rows = len(tensors[0])
    if order.device.type == "cpu" and not 0 <= int(order.min()) <= int(order.max()) < rows:
        yield f"the order names rows that the data set of {rows} rows does not have"


def _of_numbers(tensors: Mapping[str, Tensor]) -> Iterator[str]:
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            yield (f"{name} is {tensor.layout} on {tensor.device}: capture takes dense tensors on the CPU")
            continue
        if not tensor.is_floating_point() or name.startswith("buffer"):
            continue
        if not bool(torch.isfinite(tensor).all()):
            yield f"{name} holds NaN or infinity: no training can begin from that"


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
