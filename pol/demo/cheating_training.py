"""A cheating executor for the demo and the attack tests. No honest role imports this module."""

from collections.abc import Collection, Mapping

from torch import Tensor

from pol.training.task.task_training import StepExecutor


class SkippingExecutor:
    """Claims to train every step and skips some, whose state stays unchanged.

    The last honest loss is reported in their place.
    """

    def __init__(self, executor: StepExecutor, skipped: Collection[int]):
        self._executor = executor
        self._skipped = frozenset(skipped)
        self._observed: Mapping[str, Tensor] = {}

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        """Train the step, or pretend to."""
        if step in self._skipped:
            return state, self._observed
        state, self._observed = self._executor.run(state, constants, step)
        return state, self._observed
