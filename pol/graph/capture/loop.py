"""The loop around the optimizer: schedule, accumulation, clipping, averages of the weights, precision."""

from __future__ import annotations

import copy
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from pol.errors import UnsupportedError
from pol.graph.capture.optimizers import Options

CLIP_EPSILON = 1e-6
"""The number that torch.nn.utils.clip_grad_norm_ adds to the norm."""


@dataclass(frozen=True)
class Loop:
    """The parts of a training loop besides `loss.backward()` and `optimizer.step()`; by default none.

    scheduler: a torch.optim.lr_scheduler of the optimizer, stepped after every step, or a function from the number of
    the step (from 0) to a factor of each group's learning rate; of several optimizers a sequence of schedulers.
    clip_norm, clip_value: as torch.nn.utils.clip_grad_norm_ and clip_grad_value_ over the parameters that the optimizer
    updates, all of them together.
    accumulation: the row of a step is cut into as many micro-batches of equal size, one after another, and each loss is
    divided by their number; the losses observed are their mean.
    items: a function of the tensors of a micro-batch that counts its items, such as tokens. The loss is then a sum over
    items, and is divided by their number in all micro-batches: a mean of means isn't the mean of all. A model that
    gives its own loss takes that number as `num_items_in_batch`, as in transformers.
    ema: decay of a moving average of each updated parameter, `ema = ema + (1 - decay) * (parameter - ema)` after every
    step, beginning with the initial parameters. It's state named `ema.` and the parameter; nothing reads it.
    precision: "bf16-mixed" runs model and loss under torch.autocast("cpu", torch.bfloat16).

    Raises UnsupportedError for undefined values.
    """

    scheduler: LRScheduler | Callable[[int], float] | Sequence[LRScheduler] | None = field(default=None, compare=False)
    clip_norm: float | None = None
    clip_value: float | None = None
    accumulation: int = 1
    items: Callable[..., Tensor] | None = None
    ema: float | None = None
    precision: Literal["float32", "bf16-mixed"] = "float32"

    def __post_init__(self) -> None:
        if self.precision not in {"float32", "bf16-mixed"}:
            raise UnsupportedError(f"precision {self.precision!r} is not defined: use 'float32' or 'bf16-mixed'")
        if type(self.accumulation) is not int or self.accumulation < 1:
            raise UnsupportedError("accumulation is a number of micro-batches, 1 or more")
        if self.clip_norm is not None and self.clip_value is not None:
            raise UnsupportedError("gradients are clipped by their norm or by value, not both: set one of the two")
        for name, bound in (("clip_norm", self.clip_norm), ("clip_value", self.clip_value)):
            if bound is not None and not 0 < bound < math.inf:
                raise UnsupportedError(f"{name} is a positive number, or None for no clipping")
        if self.ema is not None and not 0 <= self.ema < 1:
            raise UnsupportedError("ema is a decay of at least 0 and below 1, such as 0.999")
        if self.items is not None and not callable(self.items):
            raise UnsupportedError("items is a function of a micro-batch: lambda x, labels: (labels != -100).sum()")
        several = isinstance(self.scheduler, list | tuple)
        if several and not all(isinstance(item, LRScheduler) for item in self.schedulers):
            raise UnsupportedError("of several schedulers each is a torch.optim.lr_scheduler of one of the optimizers")
        if not (
            self.scheduler is None or several or isinstance(self.scheduler, LRScheduler) or callable(self.scheduler)
        ):
            raise UnsupportedError(
                f"the scheduler is a {type(self.scheduler).__name__}: give one torch.optim.lr_scheduler (SequentialLR "
                "or ChainedScheduler joins several) or a function from the step to a factor"
            )

    @property
    def schedulers(self) -> Sequence[LRScheduler]:
        """The schedulers of optimizers; a function of the step is none."""
        if isinstance(self.scheduler, LRScheduler):
            return [self.scheduler]
        return list(self.scheduler) if isinstance(self.scheduler, list | tuple) else []

    def forward_precision(self) -> AbstractContextManager[object]:
        """The context of model and loss."""
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast("cpu", torch.bfloat16)

    def clipped(self, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The clipped gradients, for the optimizer."""
        if self.clip_value is not None:
            return {name: g.clamp(-self.clip_value, self.clip_value) for name, g in gradients.items()}
        if self.clip_norm is None or not gradients:
            return dict(gradients)
        norms = [torch.linalg.vector_norm(g.float()) for g in gradients.values()]
        norm = torch.linalg.vector_norm(torch.stack(norms))
        factor = (self.clip_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)
        return {name: g * factor for name, g in gradients.items()}

    def averaged(self, average: Tensor, parameter: Tensor) -> Tensor:
        """The moving average after a step that gave `parameter`."""
        share = 1.0 - (self.ema or 0.0)
        moved = torch.add(average.float(), parameter.float() - average.float(), alpha=share)
        return moved.to(average.dtype)

    def options(
        self, optimizer: Optimizer, steps: int, first: int = 0, scheduled: Sequence[Sequence[str]] = ()
    ) -> Sequence[Sequence[Options]]:
        """The options of every parameter group at every step; optimizer and scheduler stay as they are.

        They are where step `first` begins. Steps before it are not executed: they only say that the options named in
        `scheduled`, by group, were others then, so that a program keeps them in tables and rounds them as it did.
        Raises UnsupportedError for a scheduler that cannot be run in advance.
        """
        own = self.scheduler
        if callable(own) and not isinstance(own, LRScheduler):
            with _NoTrainingTensors(optimizer):
                factors = [float(own(step)) for step in range(steps)]
            groups = options_of(optimizer)
            return [[{**group, "lr": group["lr"] * factor} for group in groups] for factor in factors]
        scheduler = next((item for item in self.schedulers if item.optimizer is optimizer), None)
        if scheduler is None:
            return [options_of(optimizer)] * steps
        if isinstance(scheduler, ReduceLROnPlateau):
            raise UnsupportedError("ReduceLROnPlateau depends on the course of the training: use a fixed schedule")
        course = _simulated(optimizer, scheduler, steps - first)
        past = [
            {**group, **{key: _other(group[key]) for key in keys}}
            for group, keys in zip(course[0], scheduled or [()] * len(course[0]), strict=True)
        ]
        return [*([past] * first), *course]


class _NoTrainingTensors(TorchFunctionMode):
    """While active, refuses to read tensors of the training: a schedule runs before the training."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__()
        members = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
        gradients = [parameter.grad for parameter in members if parameter.grad is not None]
        self._memory = {tensor.untyped_storage()._cdata for tensor in (*members, *kept, *gradients)}

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function if it takes other tensors, or asks for a shape."""
        found = [item for item in tree_leaves((args, kwargs)) if isinstance(item, Tensor)]
        if func not in _SHAPES:
            with torch._C.DisableTorchFunction():
                memory = {tensor.untyped_storage()._cdata for tensor in found}
            if memory & self._memory:
                raise UnsupportedError(
                    "the schedule reads a parameter, its gradient or its optimizer state. A schedule is run before the "
                    "training, so it may depend on the number of the step only: use a fixed schedule"
                )
        return func(*args, **(kwargs or {}))


_SHAPES = {
    *(getattr(Tensor, name).__get__ for name in ("shape", "ndim", "dtype", "device", "requires_grad")),
    *(Tensor.size, Tensor.numel, Tensor.dim, Tensor.__len__, Tensor.is_floating_point),
}


def _simulated(optimizer: Optimizer, scheduler: LRScheduler, steps: int) -> Sequence[Sequence[Options]]:
    # Parameters and state are not copied: a scheduler does not need them.
    known = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    memo: dict[int, object] = {**known, id(optimizer.state): defaultdict(dict)}
    try:
        twin = copy.deepcopy(scheduler, memo)
    except Exception as error:
        raise UnsupportedError(
            f"{type(scheduler).__name__} cannot be copied ({error}): give a function from the step to a factor"
        ) from error
    found = []
    with warnings.catch_warnings(), _NoTrainingTensors(optimizer):
        # Without optimizer steps in between, every scheduler warns about its first step.
        warnings.simplefilter("ignore")
        for _ in range(steps):
            found.append(options_of(twin.optimizer))
            try:
                twin.step()
            except TypeError as error:
                raise UnsupportedError(
                    f"{type(scheduler).__name__}.step() needs arguments that only a training has: use a fixed schedule"
                ) from error
    return found


def scheduled_options(optimizer: Optimizer, options: Sequence[Sequence[Options]]) -> Sequence[Sequence[str]]:
    """By parameter group: the options that differ from the present ones of the optimizer in some step."""
    found: list[dict[str, None]] = [{} for _ in optimizer.param_groups]
    now = options_of(optimizer)
    last: Sequence[Options] = now
    for groups in options:
        if groups is not last:
            for keys, group, current in zip(found, groups, now, strict=True):
                keys.update({key: None for key, value in group.items() if key not in current or current[key] != value})
        last = groups
    return [list(keys) for keys in found]


def options_of(optimizer: Optimizer) -> list[Options]:
    """Options as numbers, group by group."""
    return [{key: _plain(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def _other(value: Any) -> Any:
    """Another value of an option that a schedule changes."""
    if isinstance(value, tuple):
        return tuple(_other(item) for item in value)
    return value / 2 if value else 0.5


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, tuple | list):
        return tuple(_plain(item) for item in value)
    return value
