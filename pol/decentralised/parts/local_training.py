"""The local training of a worker that trains the small GPT on rows of its own: what DiLoCo and its relatives share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.decentralised.parts import small_gpt
from pol.graph.capture import Loop, capture, to_words
from pol.graph.captured_step import Capture


@dataclass(frozen=True)
class LocalTraining:
    """A captured step of AdamW, the weights that it begins with, and its constants for each seat."""

    capture: Capture
    weights: Mapping[str, Tensor]
    data: Sequence[Sequence[Words]]


def local_training(
    shape: small_gpt.Shape, rows: int, orders: Sequence[Tensor], rate: float, base: Mapping[str, Tensor] | None = None
) -> LocalTraining:
    """The training of a model, ``base`` or one of a fixed seed, whose seats see rows in these orders (`seat_order`)."""
    model = small_gpt.small_gpt(shape)
    if base is not None:
        model.load_state_dict(dict(base))
    text, following = small_gpt.text_rows(rows, shape.length, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    captured = capture(model, small_gpt.loss, optimizer, (text, following), orders[0], Loop(clip_norm=1.0))
    at = captured.names.constants.index("order")
    data = [[*captured.constants[:at], to_words("order", order), *captured.constants[at + 1 :]] for order in orders]
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return LocalTraining(captured, weights, data)


def seat_order(rows: int, seats: int, seat: int, steps: int, batch: int) -> Tensor:
    """The rows that a seat sees: an int64 tensor of shape (steps, batch) over its own part of the rows."""
    own = rows // seats
    generator = torch.Generator().manual_seed(1000 + seat)
    return seat * own + torch.randint(0, own, (steps, batch), generator=generator)
