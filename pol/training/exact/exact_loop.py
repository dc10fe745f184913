"""The public way into exact training: ``step = pol.exact(...)``, then ``step(x, y)`` for every batch."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from pol.execution.device.open_device import CPU
from pol.graph.capture.loop import Loop
from pol.graph.capture.training import Loss
from pol.training.exact.exact_step import ExactStep


def exact(
    model: nn.Module,
    loss: Loss,
    optimizer: Optimizer,
    loop: Loop = Loop(),  # noqa: B008  # immutable
    *,
    steps: int,
    seed: int = 0,
    threads: int | None = None,
    check: bool = True,
    device: str = CPU,
) -> ExactStep:
    """A training step with defined bits, in place of forward, backward and update: ``value = step(x, y)``.

    A loop that keeps its lines takes the same steps inside of ``with step.own_loop() as loss:``.

    Args:
        model, loss, optimizer: a step computes ``loss(model(*inputs), target)``; the last tensor of a batch is the
            target. None is the loss that the model gives itself: ``step(**batch)``.
        loop: all that happens around the update; its scheduler is stepped by the step.
        steps: number of steps of the whole training.
        seed: 64 bits that decide dropout and other random numbers of the forward pass.
        threads: of the kernels, which change no bit; torch's number of threads by default.
        check: run two of the user's own eager steps beside the first program.
        device: what executes the steps, with the same bits: ``cpu``, ``cuda``, ``cuda:N`` or ``host``, a GPU's kernels
            on the processor. Tensors stay where they are.

    Raises:
        ProtocolError: there is no such name of a device.
        OperationalError: at the first batch, if the device can't be used.
        UnsupportedError: at the first batch, with the user's line, for what has no definition.
    """
    return ExactStep(model, loss, optimizer, loop, steps=steps, seed=seed, threads=threads, check=check, device=device)
