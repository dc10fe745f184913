"""Everything that a capture would refuse, found in one pass: work goes on behind each refusal with a stand-in."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim import SGD

from pol.errors import ProtocolError, UnsupportedError
from pol.graph.capture.assemble import (
    OBSERVER,
    RecordedStep,
    capture_course,
    explained,
    optimizer_steps,
    record_step,
    step_inputs,
)
from pol.graph.capture.guards.argument_checks import require_capturable
from pol.graph.capture.guards.index_ranges import require_indices_in_range
from pol.graph.capture.guards.number_ranges import require_integers_fit
from pol.graph.capture.loop import Loop
from pol.graph.capture.tracing.step_inputs import StepInputs
from pol.graph.capture.tracing.trace import TraceFailureError
from pol.graph.capture.training import Dataset, Losses, Optimizers, Training, named_tensors
from pol.graph.lowering.lower import report_refusals
from pol.graph.refusals import Refusal, Refusals


def check_capture(
    model: nn.Module,
    loss: Losses,
    optimizer: Optimizers,
    dataset: Dataset,
    order: Tensor,
    loop: Loop = Loop(),  # noqa: B008  # immutable
    seed: int = 0,
) -> list[Refusal]:
    """All that `capture` refuses of these arguments, not only the first; none if it captures them.

    An operation that is refused gives unknown numbers of its shape, a decision that depends on numbers is taken as
    true, and an optimizer without a definition stands aside. Where the step itself fails, nothing behind that is found.
    """
    found = Refusals()
    observer = OBSERVER.set(None)
    try:
        try:
            training = Training.of(model, loss, optimizer, dataset, loop)
            require_capturable(training, dataset, order, report=found)
            _report_step(training, dataset, order, seed, found)
        except UnsupportedError as error:
            found(error)
        except Exception:
            if not found:  # what was refused is the cause
                raise
        if not found:
            try:
                capture_course(model, loss, optimizer, dataset, order, loop, seed, check=True)
            except UnsupportedError as error:
                found(error)
    finally:
        OBSERVER.reset(observer)
    return found.list()


def _report_step(training: Training, dataset: Dataset, order: Tensor, seed: int, found: Refusals) -> None:
    recorded, inputs, steps = _recorded(training, dataset, order, seed, found)
    tensors = [*(tensor for _, tensor in inputs.constants()), *recorded.constants]
    named = {entry.name: tensor for entry, tensor in zip(recorded.aten.constants, tensors, strict=True)}
    require_indices_in_range(recorded.aten, named, found)
    require_integers_fit(recorded.aten, named, {name: tensor for name, _, tensor in inputs.slots()}, steps, found)
    try:
        report_refusals(recorded.aten, found)
    except ProtocolError:
        if not found:  # a graph with stand-ins may contradict itself
            raise


def _recorded(
    training: Training, dataset: Dataset, order: Tensor, seed: int, found: Refusals
) -> tuple[RecordedStep, StepInputs, int]:
    """The step with its own optimizers, or with plain descent in their place."""
    try:
        options = [training.loop.options(own, len(order)) for own in training.optimizers]
        plans = optimizer_steps(training, options)
        inputs = step_inputs(training, plans, named_tensors(dataset), order, seed)
        return record_step(training, plans, inputs, found), inputs, len(order)
    except TraceFailureError as error:
        raise explained(error, training, options, inputs) from error
    except UnsupportedError as error:
        is_known = all(type(own) is SGD for own in training.optimizers)
        if is_known or not ("optimizer" in str(error) or "schedule" in str(error)):
            raise
        found(error)
    plain = Training(training.model, training.phases, tuple(_descent(own) for own in training.optimizers), Loop())
    return _recorded(plain, dataset, order, seed, found)


def _descent(optimizer: torch.optim.Optimizer) -> SGD:
    return SGD([member for group in optimizer.param_groups for member in group["params"]], 0.1)
