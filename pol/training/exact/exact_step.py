"""One call in place of forward, backward and update: a training step with the bits of its captured program.

step = exact(model, loss, optimizer, Loop(scheduler=scheduler), steps=1000)
for x, y in loader:
    value = step(x, y)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pol.errors import ProtocolError, UnsupportedError
from pol.execution.device.open_device import CPU, require_device_name
from pol.graph.capture.assemble import Course, capture_course
from pol.graph.capture.loop import Loop, options_of
from pol.graph.capture.optimizers import Options
from pol.graph.capture.optimizers.optimizer_step import varying_options
from pol.graph.capture.tracing.step_inputs import AVERAGE
from pol.graph.capture.training import Dataset, Losses, Optimizers, Training, named_tensors
from pol.graph.step_program import MAX_STEPS
from pol.training.exact.batch_program import BatchProgram, require_batch
from pol.training.exact.own_loop import ComputedStep, OwnLoop
from pol.training.exact.present_setting import present_setting
from pol.training.exact.state_before import Moment
from pol.training.exact.training_tensors import TrainingTensors
from pol.training.exact.user_objects import UserObjects, trained_beside
from pol.training.task.task_training import to_tensor

LOOK_EVERY = 50
"""Steps after which the user's objects are compared with those that the programs have read."""
MOST_THREADS = 1024
MANY_PROGRAMS = 16
MOST_SHAPES = 8
"""Programs that are kept, one for each shape of a batch."""


class ExactStep:
    """Executes training steps canonically: the same bytes on every processor and GPU, with any number of threads.

    model, loss, optimizer, loop, seed, check: as for `pol.capture`; a step computes ``loss(model(*inputs), target)``,
    or the phases of several losses and optimizers.
    steps: of the whole training; the schedule is worked out for them.
    threads: of the kernels; torch's number of threads by default.
    device: ``cpu``, or a device that executes the steps: ``cuda``, ``cuda:N``, ``host``. Tensors stay where they are.

    After each call, parameters, buffers, optimizer and scheduler hold the values of the next step, as after the user's
    own loop. Evaluation, `state_dict()` and changes of the learning rate between steps work as usual. Gradients are
    not kept in ``.grad``. ``averages`` holds the moving averages of the weights, if the loop has any.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Losses,
        optimizer: Optimizers,
        loop: Loop = Loop(),  # noqa: B008  # immutable
        *,
        steps: int,
        seed: int = 0,
        threads: int | None = None,
        check: bool = True,
        device: str = CPU,
    ) -> None:
        self._training = _training_of(model, loss, optimizer, loop, steps, threads)
        self.number = 0
        """Steps that were taken; the next one draws the random numbers of this number."""
        self.averages: dict[str, Tensor] = {}
        self._called = model
        """The model as the user calls it, which torch.compile may have wrapped."""
        self._model, self._loss, self._optimizer, self._loop = self._training.model, loss, optimizer, loop
        self._steps, self._seed, self._check = steps, seed, check
        self._threads, self._device = threads, require_device_name(device)
        self._programs: dict[Any, BatchProgram] = {}
        self._objects: UserObjects | None = None
        self._told: set[str] = set()
        self._made = 0
        self._own: OwnLoop | None = None
        """The loop that takes the steps."""
        self._is_torn = False
        """Whether the state in the user's objects was written in part."""
        self._setting: Any = None
        self._base: list[list[Options]] = []
        self._options: list[Sequence[Sequence[Options]]] = []
        """Of each optimizer: those of its groups at each step."""
        self._scheduled: list[list[str]] = []
        """By group of all optimizers: the options that a schedule changes; they stay in tables after a resumption."""

    def __call__(self, *batch: Tensor, **named: Tensor) -> Tensor:
        """One step on a batch, the target last, or with names; the loss, outside of any autograd graph.

        It is a scalar; of several phases a tensor with the loss of each.

        Raises:
            UnsupportedError: the step has no definition, or the batch's integers have no meaning in it.
        """
        if self._own is not None:
            raise ProtocolError(
                "step(...) inside of its own_loop(), where optimizer.step() takes the steps: use one way"
            )
        if batch and named:
            raise UnsupportedError("a batch has places or names, not both: step(x, y), or step(**batch)")
        computed = self._compute(named or batch)
        computed.take_over(self._loop.schedulers)
        return computed.loss

    @contextmanager
    def own_loop(self) -> Iterator[Callable[..., Any]]:
        """Inside, the user's own loop takes the same steps: loss(model(x), target), backward, optimizer.step().

        The loss that this gives computes a whole step of the model's inputs and the target, and optimizer.step() takes
        it over. The scheduler is stepped by the loop. Under torch.no_grad() model and loss are torch's, for evaluation.

        Raises:
            UnsupportedError: at the line of the loop that an exact step can't follow.
        """
        for name in trained_beside(self._model, self._loss):
            raise UnsupportedError(
                f"{name} requires a gradient, and an exact step trains parameters of the model alone: make it one "
                "that the step's optimizer holds, or freeze it with requires_grad_(False)"
            )
        if not callable(self._loss) or len(self._training.optimizers) > 1:
            raise UnsupportedError(
                "own_loop() needs a loss function and one optimizer: call step(x, y), or step(**batch), in place of "
                "its lines"
            )
        schedulers = [*self._loop.schedulers, None]
        about = self._compute, self._moment, self._threads_now
        own = OwnLoop(self._called, self._loss, self._training.optimizers[0], schedulers[0], *about)
        with own.active():
            self._own = own
            try:
                yield own.loss
            finally:
                self._own = None

    def _compute(self, batch: Dataset, setting: Any = None) -> ComputedStep:
        """The next step on a batch; the setting is the present one, if there is a program for it."""
        if self.number >= self._steps:
            raise ProtocolError(
                f"all {self._steps} steps were taken: create the exact step with steps= of your training"
            )
        self._require_whole()
        tensors = named_tensors(batch)
        require_batch(tensors)
        shape = tuple((key, tensor.dtype, tuple(tensor.shape)) for key, tensor in tensors.items())
        if setting is None or setting != self._setting or shape not in self._programs:
            setting = self._setting_now()
        if setting != self._setting or not self._follows_schedule():
            self._programs.clear()
            self._setting, self._objects = self._setting_now(), None
        program = self._programs.get(shape)
        if self._own is not None:
            self._require_same_loss()
        if program is None or self.number % LOOK_EVERY == 0:
            with nullcontext() if self._own is None else self._own.as_they_were():
                self._tell_changes()
                program = program or self._captured(batch)
        self._programs.pop(shape, None)
        while len(self._programs) >= MOST_SHAPES:
            del self._programs[next(iter(self._programs))]
        self._programs[shape] = program
        loss = program.begin(list(tensors.values()), self.number)
        return ComputedStep(loss, lambda schedulers: self._take_over(program, schedulers))

    def _take_over(self, program: BatchProgram, schedulers: Sequence[LRScheduler]) -> None:
        """Write the state after a step; an interruption in between leaves parts of two states."""
        self._is_torn = True
        program.finish()
        self.number += 1
        for scheduler in self._loop.schedulers:
            scheduler.optimizer._opt_called = True  # type: ignore[attr-defined]  # else it warns that no step came before
        for scheduler in schedulers:
            scheduler.step()
        self._is_torn = False

    def _require_whole(self) -> None:
        if self._is_torn:
            raise ProtocolError(
                "a step was interrupted while its state was written, so model and optimizer hold parts of two states: "
                "load the last checkpoint, also into this step with load_state_dict()"
            )

    def _require_same_loss(self) -> None:
        """Refuse at once what a call of the step warns of now and then: torch would follow it in these lines."""
        for name in () if self._objects is None else self._objects.changed_in_loss():
            raise ProtocolError(
                f"{name} has changed, and the programs of this exact step have the value that it had when they were "
                "made: create the exact step anew and load its state_dict()"
            )

    def _moment(self) -> Moment:
        return Moment(self.number, self._setting_now(), options_of(self._training.optimizers[0]))

    def _setting_now(self) -> Any:
        return present_setting(self._model, self._training.losses, self._training.optimizers)

    def _options_now(self) -> list[list[Options]]:
        return [options_of(own) for own in self._training.optimizers]

    def _threads_now(self) -> int:
        return torch.get_num_threads() if self._threads is None else self._threads

    def state_dict(self) -> dict[str, Any]:
        """The number of the next step, the averages of the weights, and the options that a schedule changes."""
        self._require_whole()
        scheduled = [list(keys) for keys in self._scheduled]
        return {"number": self.number, "averages": dict(self.averages), "scheduled": scheduled}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at the number of a `state_dict`; model, optimizer and scheduler are loaded by themselves."""
        number, averages = state.get("number"), state.get("averages")
        shapes = {name: parameter.shape for name, parameter in self._model.named_parameters()}
        if type(number) is not int or not 0 <= number <= self._steps or not isinstance(averages, Mapping):
            raise ProtocolError(
                f"this is no state of an exact step of {self._steps} steps: give what its state_dict() returned"
            )
        if any(name not in shapes or shapes[name] != tensor.shape for name, tensor in averages.items()):
            raise ProtocolError("the averages are those of another model: give the state of this training")
        if self._loop.ema is not None and number and not averages:
            raise ProtocolError("the state has no averages, and the loop keeps some: give the state of this training")
        self.number = number
        self.averages = {name: tensor.clone() for name, tensor in averages.items()}
        groups = [group for own in self._options_now() for group in own]
        scheduled = state.get("scheduled", [])
        if number and not (
            isinstance(scheduled, list)
            and len(scheduled) == len(groups)
            and all(set(keys) <= set(group) for keys, group in zip(scheduled, groups, strict=True))
        ):
            raise ProtocolError("the state is of an optimizer with other groups: give the state of this training")
        self._scheduled = [list(keys) for keys in scheduled]
        self._options, self._objects = [], None
        self._programs.clear()
        self._is_torn = False

    def _captured(self, batch: Dataset) -> BatchProgram:
        """The program of batches of this shape, from the present state on."""
        if self._objects is None:
            self._objects = UserObjects(self._model, self._loss)
        first = next(iter(named_tensors(batch).values()), torch.empty(()))
        rows = torch.arange(len(first) if first.dim() else 0)[None]
        self._made += 1
        if self._made == MANY_PROGRAMS:
            warnings.warn(
                f"{MANY_PROGRAMS} programs were made for {self.number} steps, and each takes a capture: keep "
                "the shapes of batches few, and let Loop(scheduler) or Loop(function) set what changes in every step",
                stacklevel=4,
            )
        if not self._is_on_schedule():
            self._base, known = self._options_now(), iter(self._scheduled)
            self._options = [
                self._loop.options(own, self._steps, self.number, [*islice(known, len(own.param_groups))])
                for own in self._training.optimizers
            ]
            self._scheduled = [keys for options in self._options for keys in varying_options(options)]
        course = Course(self._options, self.number)
        own = self._model, self._loss, self._optimizer
        captured = capture_course(*own, batch, rows, self._loop, self._seed, self._check, course)
        for slot, words in zip(captured.aten.slots, captured.state, strict=True):
            name = slot.name.removeprefix(AVERAGE)
            if slot.name.startswith(AVERAGE) and name not in self.averages:
                self.averages[name] = to_tensor(slot.type, words)
        tensors = TrainingTensors(captured, self._training, self.averages)
        return BatchProgram(captured, tensors, self._device, self._threads_now(), self.number, self._steps)

    def _tell_changes(self) -> None:
        """Warn, once for each, of objects that are others than when the programs were made."""
        for name in () if self._objects is None else self._objects.changed():
            if name not in self._told:
                self._told.add(name)
                warnings.warn(
                    f"{name} has changed, and the programs of this exact step have the value that it had when they "
                    "were made: if the step reads it, create the exact step anew, or make it a buffer",
                    stacklevel=4,
                )

    def _follows_schedule(self) -> bool:
        """Whether options and counters of the optimizers are those for which the programs were made."""
        if not self._programs:
            return True
        if not all(program.is_counted(self.number) for program in self._programs.values()):
            return False
        return self._is_on_schedule()

    def _is_on_schedule(self) -> bool:
        """Whether the options of the optimizers are those that their schedules have now."""
        if not self._options:
            return False
        expected = [options[self.number] for options in self._options] if self._loop.schedulers else self._base
        return self._options_now() == expected


def _training_of(model: Any, loss: Losses, optimizer: Any, loop: Any, steps: object, threads: object) -> Training:
    if not isinstance(model, nn.Module):
        raise UnsupportedError(f"the model is a {type(model).__name__}: give a torch.nn.Module")
    if not isinstance(loop, Loop):
        raise UnsupportedError(f"the loop is a {type(loop).__name__}: give pol.Loop(scheduler), or leave it out")
    if type(steps) is not int or not 1 <= steps < MAX_STEPS:
        raise UnsupportedError(f"steps={steps!r}: give the number of steps of the whole training, 1 to 2^32 - 2")
    if threads is not None and (type(threads) is not int or not 0 <= threads <= MOST_THREADS):
        raise UnsupportedError(f"threads={threads!r}: give a number up to {MOST_THREADS}, or 0 for all cores")
    training = Training.of(model, loss, optimizer, (), loop)
    given: Sequence[object] = training.optimizers
    for own in given:
        if not isinstance(own, Optimizer):
            raise UnsupportedError(f"the optimizer is a {type(own).__name__}: give a torch.optim.Optimizer, or a list")
    return training
