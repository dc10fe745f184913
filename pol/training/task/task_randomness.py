"""The random numbers of a task in the user's own loop: stock torch draws the numbers that the step program defines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import pol.execution.stock_torch.torch_random  # noqa: F401  # gives the draws their numbers
from pol.errors import UnsupportedError
from pol.execution.stock_torch.defined_results import DefinedResults
from pol.graph.capture.tracing.random_operations import CounterRandomness, seed_words
from pol.training.task import initialization


class TaskRandomness:
    """The random numbers of a task's 64-bit seed (docs/spec/randomness.md).

    ``with randomness.step(t): loss = loss_fn(model(x), y)`` draws the numbers of step ``t`` of the captured program;
    ``with randomness.initialization(): model = Model()`` draws the same initial weights on every machine. Inside,
    torch's generators stay untouched, an operation without a definition raises UnsupportedError, and topk takes the
    first places among equal numbers, as the captured program does.

    Raises:
        UnsupportedError: the seed isn't an integer of 64 bits.
    """

    def __init__(self, seed: int = 0):
        self._seed = seed_words(seed)
        self._initialized = 0

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Draws of one step. Its forward passes follow one another in one such context and start at ordinal 0.

        Raises:
            UnsupportedError: no step has this number.
        """
        if not 0 <= number < initialization.STEP:
            raise UnsupportedError(f"step {number} is not in 0 .. 2^32-2")
        with DefinedResults(), CounterRandomness(torch.tensor(number), self._seed):
            yield

    @contextmanager
    def initialization(self) -> Iterator[None]:
        """Draws outside of all steps; a second such context continues the first one."""
        mode = CounterRandomness(torch.tensor(initialization.STEP), self._seed)
        mode.ordinal = self._initialized
        try:
            with mode:
                yield
        finally:
            self._initialized = mode.ordinal
