"""Solvers that cheat, for the demonstration and the attack tests. An honest role never imports this module."""

from collections.abc import Collection, Mapping

from torch import Tensor

from pol.errors import ProtocolError
from pol.training.task.task_training import StepExecutor


class SkippingExecutor:
    """Claims to train every step and leaves out some: for those the state stays what it was.

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


def every(steps: int, share: int) -> frozenset[int]:
    """One step of every ``share``: ``every(300, 10)`` leaves out 10 % of the steps, spread evenly."""
    if share < 1:
        raise ProtocolError(f"can't leave out one step of every {share}")
    return frozenset(range(share - 1, steps, share))
