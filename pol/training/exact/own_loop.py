"""The user's own loop around an exact step: the model's call, the loss, backward and optimizer.step() as they stand.

The loss computes a whole step and keeps its state; optimizer.step() takes it over. Between the two nothing that the
step depends on may change, and backward() has to be called once, on the loss alone. A backend of torch.compile would
see forward and backward without the update, and torch runs what it can't compile eagerly without a word.

The objects stay replaced while torch's own calls run inside, in an evaluation: other threads use them as well.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pol.errors import ProtocolError, UnsupportedError
from pol.training.exact.batch_program import require_batch
from pol.training.exact.stand_ins import DeferredOutput, UnknownGradient
from pol.training.exact.state_before import Moment, StateBefore
from pol.training.exact.training_tensors import copy_into, copy_of

ABSENT = object()


class ReplacedObjects:
    """Attributes of single objects, and the step of a scheduler, that are replaced for a while."""

    def __init__(self) -> None:
        self._entries: list[tuple[dict[str, Any], str, object]] = []
        self._own: list[object] = []
        self._scheduler: tuple[LRScheduler, type[LRScheduler], type[LRScheduler]] | None = None

    def add(self, owner: object, name: str, value: object) -> None:
        """One more attribute."""
        self._entries.append((vars(owner), name, value))

    def add_scheduler(self, scheduler: LRScheduler, step: Callable[..., object]) -> None:
        """Another step of this scheduler; by its class, as an attribute would be part of its state_dict()."""
        kind = type(scheduler)

        def step_of(this: LRScheduler, *given: Any, **named: Any) -> None:
            if this is scheduler:
                step(*given, **named)
            else:  # a copy that was made in another way
                kind.step(this, *given, **named)

        def reduced(this: LRScheduler, protocol: int) -> Any:
            """Copies and pickles are of the user's own class, which only the oldest form of pickles can name."""
            found = kind.__reduce_ex__(this, 0)
            if isinstance(found, str):
                return found
            return (found[0], tuple(kind if item is type(this) else item for item in found[1]), *found[2:])

        other = type(kind.__name__, (kind,), {"step": step_of, "__reduce_ex__": reduced})
        self._scheduler = scheduler, kind, other

    def replace(self) -> None:
        """Set the other values."""
        self._own = [space.get(name, ABSENT) for space, name, _ in self._entries]
        for space, name, value in self._entries:
            space[name] = value
        if self._scheduler is not None:
            scheduler, _, other = self._scheduler
            scheduler.__class__ = other

    def put_back(self) -> None:
        """Set the objects' own values."""
        if self._scheduler is not None:
            scheduler, kind, _ = self._scheduler
            scheduler.__class__ = kind
        for (space, name, _), own in zip(self._entries, self._own, strict=True):
            if own is ABSENT:
                space.pop(name, None)
            else:
                space[name] = own


CALL = "_compiled_call_impl"
"""The attribute of a module that is called in place of its hooks and `forward`; `torch.nn` never copies or saves it."""


class _Inside(threading.local):
    is_now = False
    """Whether this thread is in a call of torch's own."""


@dataclass(frozen=True)
class ComputedStep:
    """A step that is computed and not taken over yet.

    ``take_over`` writes its state into the user's objects, and steps the schedulers that it's given.
    """

    loss: Tensor
    take_over: Callable[[Sequence[LRScheduler]], None]


class OwnLoop:
    """Lets the lines of a training loop take exact steps.

    Args:
        model, loss, optimizer: those of the exact step.
        scheduler: the scheduler that the loop steps after every step of the optimizer, if there is one.
        compute: the next step on a batch, in a setting.
        moment: all that a step depends on besides the numbers in tensors, as it is now.
        threads: of the kernels.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Any, Any], Tensor],
        optimizer: Optimizer,
        scheduler: LRScheduler | None,
        compute: Callable[[Sequence[Tensor], Any], ComputedStep],
        moment: Callable[[], Moment],
        threads: Callable[[], int],
    ) -> None:
        self._model, self._loss, self._optimizer, self._scheduler = model, loss, optimizer, scheduler
        self._compute = compute
        self._inside = _Inside()
        # Past the attribute that is replaced, and with the hooks.
        self._own_call: Callable[..., Any] = model._call_impl
        self._own_loss: Callable[..., Any] = loss._call_impl if isinstance(loss, nn.Module) else loss
        self._own_schedule = None if scheduler is None else scheduler.step
        self._before = StateBefore(model, optimizer, moment, threads)
        self._replaced = ReplacedObjects()
        self._replaced.add(model, CALL, self._call)
        self._replaced.add(optimizer, "step", self._step_of(optimizer))
        if isinstance(loss, nn.Module):
            self._replaced.add(loss, CALL, self.loss)
        if scheduler is not None:
            self._replaced.add_scheduler(scheduler, self._step_scheduler)
        self._gradients: dict[nn.Parameter, UnknownGradient] = {}
        self._output: DeferredOutput | None = None
        self._inputs: list[Tensor] = []
        self._computed: ComputedStep | None = None
        self._losses = 0
        self._is_backward = False
        self._awaits_scheduler = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """The lines of the loop stand inside; the objects are restored at the end, also after an exception."""
        if CALL in vars(self._model):
            raise ProtocolError(
                "the calls of the model are replaced already, by model.compile() or by another own_loop(): leave that"
            )
        self._replaced.replace()
        try:
            yield
            self._require_complete()
        finally:
            self._replaced.put_back()
            for parameter, stand_in in self._gradients.items():
                if parameter.grad is stand_in:
                    parameter.grad = None
            self._output = self._computed = None

    @contextmanager
    def as_they_were(self) -> Iterator[None]:
        """The objects inside are the user's own, for all threads; what stands for gradients is away."""
        away = [(parameter, own) for parameter, own in self._gradients.items() if parameter.grad is own]
        self._replaced.put_back()
        for parameter, _ in away:
            parameter.grad = None
        try:
            yield
        finally:
            for parameter, own in away:
                parameter.grad = own
            self._replaced.replace()

    def loss(self, *given: Any, **named: Any) -> Any:
        """The loss of the model's output and a target; of other values as ever.

        Raises:
            UnsupportedError: the step has no definition, or the loss has other arguments.
            ProtocolError: the output is not that of the last call.
        """
        if not any(isinstance(item, DeferredOutput) for item in (*given, *named.values())):
            with self._in_torch():
                return self._own_loss(*given, **named)
        if named or len(given) != 2 or isinstance(given[1], DeferredOutput):
            raise UnsupportedError("the loss of an exact step has two arguments: call loss(model(x), target)")
        if given[0] is not self._output:
            raise ProtocolError(
                "the output is not that of the last model(x), or it had its loss: call loss(model(x), y)"
            )
        self._output.is_waiting, self._output = False, None
        target = given[1]
        require_batch({str(len(self._inputs)): target})
        computed = self._compute([*self._inputs, copy_of(target)], self._before.setting)  # a copy as in `_call`
        self._before.keep_optimizer()
        self._computed, self._is_backward = computed, False
        self._losses += 1
        place = self._losses  # whoever keeps the loss shall not keep the state that was computed with it
        leaf = computed.loss.detach().requires_grad_()
        leaf.register_hook(lambda gradient: self._backward(place, gradient))  # type: ignore[no-untyped-call]  # torch declares no types
        return leaf.clone()

    def _call(self, *inputs: Any, **named: Any) -> Any:
        """The call of the model."""
        if self._inside.is_now or not torch.is_grad_enabled():
            with self._in_torch():
                return self._own_call(*inputs, **named)
        if named:
            raise UnsupportedError(
                f"the model is called with {', '.join(named)}=: an exact step calls model(*inputs); give all in order, "
                "or wrap the model in a module that does"
            )
        self._require_complete()
        require_batch({str(place): item for place, item in enumerate(inputs)})
        self._before.keep()
        # A loader may fill the same memory again before the loss.
        self._inputs = [copy_into(kept, item) for kept, item in zip_longest(self._inputs[: len(inputs)], inputs)]
        self._output = DeferredOutput(self.loss, self._loss)
        return self._output

    def _backward(self, place: int, gradient: Tensor) -> None:
        """Note the backward pass of a loss, by its place among all."""
        if self._computed is None or place != self._losses or self._is_backward:
            raise ProtocolError("backward() of a loss that had it, or is not the last one: call it once for each loss")
        if float(gradient) != 1.0:
            raise UnsupportedError(
                f"the loss is multiplied by {float(gradient):g} before backward(): put the factor into the loss. For "
                "micro-batches call the model once on all of them, and give the step loop=pol.Loop(accumulation=...); "
                "leave out a gradient scaler"
            )
        trainable, updated = self._trainable(), self._before.updated
        for name, parameter in trainable.items():
            is_kept = parameter not in updated and parameter.grad is self._gradients.get(parameter)
            if parameter.grad is not None and not is_kept:
                raise ProtocolError(
                    f"{name} has a gradient before backward(), which an exact step would leave out: call "
                    "optimizer.zero_grad(), or model.zero_grad() for what it doesn't hold, once before each "
                    "backward(), and put all terms into the loss"
                )
        for parameter in trainable.values():
            if parameter not in self._gradients:
                self._gradients[parameter] = UnknownGradient.of(parameter)
            parameter.grad = self._gradients[parameter]
        self._is_backward = True

    def _step_of(self, optimizer: Optimizer) -> Callable[..., None]:
        """The step as a function that looks like the optimizer's own, for schedulers."""

        @functools.wraps(optimizer.step)
        def step(closure: object = None) -> None:
            self._step(closure)

        return step

    def _step(self, closure: object = None) -> None:
        """The step of the optimizer."""
        if closure is not None:
            raise UnsupportedError("optimizer.step(closure): call loss(model(x), y).backward() before it, without one")
        if self._computed is None or not self._is_backward:
            raise ProtocolError("optimizer.step() without a backward(): call loss(model(x), y).backward() before it")
        updated = self._before.updated
        for name, parameter in self._trainable().items():
            if parameter in updated and parameter.grad is not self._gradients.get(parameter):
                raise ProtocolError(
                    f"the gradient of {name} has changed between backward() and optimizer.step(), which an exact step "
                    "would leave out: freeze with requires_grad_(False), and call zero_grad() before backward()"
                )
        self._before.require_same()
        self._computed.take_over(())
        self._computed, self._awaits_scheduler = None, self._scheduler is not None

    def _step_scheduler(self, epoch: object = None) -> None:
        """The step of the scheduler."""
        if epoch is not None:
            raise UnsupportedError("scheduler.step() with a number is another schedule: call it without")
        if not self._awaits_scheduler or self._own_schedule is None:
            raise ProtocolError("scheduler.step() without an optimizer.step(): call it once after each of them")
        self._own_schedule()
        self._awaits_scheduler = False

    def _require_complete(self) -> None:
        """Check that no line is missing after those that came."""
        if self._output is not None:
            raise ProtocolError(
                "the output of the last model(x) had no loss, so it was not computed: call loss(model(x), y) on each; "
                "evaluate under torch.no_grad()"
            )
        if self._computed is not None:
            raise ProtocolError(
                "the step of the last loss was not taken: after loss(...) come backward() and optimizer.step(); "
                "evaluate under torch.no_grad()"
            )
        if self._awaits_scheduler:
            raise ProtocolError(
                "scheduler.step() was not called after optimizer.step(): an exact step has one call for each step. For "
                "a schedule that counts epochs give pol.Loop a function of the step"
            )

    def _trainable(self) -> dict[str, nn.Parameter]:
        """All parameters to which torch's backward() gives a gradient, by name: another optimizer may hold some."""
        return {name: parameter for name, parameter in self._before.parameters.items() if parameter.requires_grad}

    @contextmanager
    def _in_torch(self) -> Iterator[None]:
        """Calls by this thread inside are torch's own."""
        before, self._inside.is_now = self._inside.is_now, True
        try:
            yield
        finally:
            self._inside.is_now = before
