"""Training that isn't the task's training: rejected by distance. Honest training passes with room to spare."""

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from digits_training import honest, loaded, profiled, relative, solve, solve_with, verdict
from lab.attacks.shortcuts import every
from pol.claims.acceptance_rule import is_accepted, relative_limit
from pol.demo import digits
from pol.errors import ProtocolError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import capture
from pol.training.task.task_training import StepExecutor
from pol.verification.profile.profile_threshold import FLOOR
from pol.verification.verdict.verdict import Outcome, Reason

SEGMENTS = range(12)


class Changing:
    """Trains honestly and changes the state after every step."""

    def __init__(self, change: Callable[[Tensor], Tensor]):
        self._executor = NativeExecutor(loaded().aten)
        self._change = change

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        state, observed = self._executor.run(state, constants, step)
        return [self._change(tensor) for tensor in state], observed


def test_honest_native_training_is_accepted_with_a_wide_margin() -> None:
    training = honest()
    for segment in SEGMENTS:
        result = verdict(training, segment)
        assert result.outcome is Outcome.ACCEPTED, result.detail
        claim = result.claim
        assert claim is not None
        for distance, reference, threshold in zip(
            claim.distances, claim.references, profiled().thresholds, strict=True
        ):
            assert is_accepted(64 * distance, reference, threshold)  # eight times as far would still pass


@pytest.mark.slow  # two threads hinder each other in so small a model
def test_honest_training_on_more_threads_is_accepted() -> None:
    training = solve(threads=2)
    assert all(verdict(training, segment).outcome is Outcome.ACCEPTED for segment in SEGMENTS)


def test_skipping_a_tenth_of_the_steps_is_rejected_everywhere() -> None:
    training = solve(every(digits.STEPS, 10))
    for segment in SEGMENTS:
        result = verdict(training, segment)
        assert result.outcome is Outcome.REJECTED
        assert result.reasons == (Reason.DISTANCE_ABOVE_THRESHOLD,)
        parameter, _, optimizer = relative(training, segment)
        assert parameter > 500 * relative_limit(profiled().thresholds[0])
        assert optimizer > 500 * relative_limit(profiled().thresholds[2])


@pytest.mark.parametrize("step", [75, 87, 99])
def test_skipping_a_single_step_is_rejected_in_its_segment(step: int) -> None:
    training = solve({step})
    assert verdict(training, 3).outcome is Outcome.REJECTED
    assert verdict(training, 2).outcome is Outcome.ACCEPTED
    assert verdict(training, 4).outcome is Outcome.ACCEPTED


def test_another_order_of_the_data_is_rejected() -> None:
    training = solve_with(WithConstants(NativeExecutor(loaded().aten), digits.order(seed=2)))
    assert all(verdict(training, segment).outcome is Outcome.REJECTED for segment in SEGMENTS)


class WithConstants:
    """Trains honestly on another order table."""

    def __init__(self, executor: StepExecutor, order: Tensor):
        self._executor = executor
        self._order = order

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        return self._executor.run(state, [*constants[:2], self._order], step)


@pytest.mark.parametrize("rate", [0.0495, 0.06])
def test_another_learning_rate_is_rejected(rate: float) -> None:
    model = digits.build_model(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    other = capture(model, digits.loss_function, optimizer, digits.dataset(), digits.order(1))
    training = solve_with(NativeExecutor(other.aten))
    assert all(verdict(training, segment).outcome is Outcome.REJECTED for segment in SEGMENTS)


def test_training_in_low_precision_is_rejected() -> None:
    training = solve_with(Changing(lambda tensor: tensor.bfloat16().float()))
    assert all(verdict(training, segment).outcome is Outcome.REJECTED for segment in SEGMENTS)


def test_a_smaller_batch_is_rejected() -> None:
    order = digits.order(1)
    halves = torch.cat([order[:, :16], order[:, :16]], dim=1)  # every sample twice: half the work
    training = solve_with(WithConstants(NativeExecutor(loaded().aten), halves))
    assert all(verdict(training, segment).outcome is Outcome.REJECTED for segment in SEGMENTS)


def test_the_thresholds_come_from_measurement() -> None:
    assert profiled().thresholds[0] >= FLOOR
    assert profiled().thresholds[2] >= FLOOR
    with pytest.raises(ProtocolError):
        every(300, 0)
