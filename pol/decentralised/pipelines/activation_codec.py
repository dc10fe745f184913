"""What travels between the stages of a pipeline: an activation and its gradient as slots of messages."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Slots = dict[str, Tensor]


@dataclass(frozen=True)
class Sample:
    """A micro-batch: its rows, the step, the constants of the program, and the shape of its activation."""

    rows: Tensor
    step: Tensor
    known: Slots
    shape: torch.Size


class ActivationCodec:
    """Activations and gradients as they are. Others compress them, with a buffer on both sides if they need it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def constants(self) -> Slots:
        """Constants that both sides need."""
        return {}

    def buffer(self, rows: int, like: Tensor) -> Tensor | None:
        """The first value of the buffer on either side, if there is one; ``like`` is an activation of a micro-batch."""
        return None

    def encode(self, hidden: Tensor, seen: Tensor | None, sample: Sample) -> tuple[Slots, Tensor | None]:
        """The message, and the sender's buffer after it."""
        return {"hidden": hidden}, seen

    def decode(self, message: Slots, seen: Tensor | None, sample: Sample) -> tuple[Tensor, Tensor | None]:
        """The activation, and the receiver's buffer after it."""
        return message["hidden"], seen

    def encode_gradient(self, gradient: Tensor, sample: Sample) -> Slots:
        """The message that goes back."""
        return {"gradient": gradient}

    def decode_gradient(self, message: Slots, sample: Sample) -> Tensor:
        """The gradient of the activation."""
        return message["gradient"]


PLAIN = ActivationCodec()
