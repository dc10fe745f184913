"""The two calls of `InPlaceExecutor` on a device."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.execution.device.device_executor import DeviceExecutor


class BegunStep:
    """`begin` computes the whole step on the device and leaves the state as it is; `finish` gives the next one.

    Args:
        executor: observes what `begin` gives.
        changing: the slots whose next tensors `finish` gives.
    """

    def __init__(self, executor: DeviceExecutor, changing: Sequence[int]) -> None:
        self._executor, self._changing = executor, changing
        self._after: list[Words] | None = None

    def begin(self, state: Sequence[Words], step: int, constants: Sequence[Words]) -> list[Words]:
        """The observed nodes' outputs. Raises as `DeviceExecutor.advance`."""
        self._after, observed = self._executor.advance(state, step, constants)
        return observed

    def finish(self) -> list[Words]:
        """The changing slots after the step that was begun, in arrays of their own."""
        assert self._after is not None, "begin() comes before"
        after, self._after = self._after, None
        return [after[slot] for slot in self._changing]
