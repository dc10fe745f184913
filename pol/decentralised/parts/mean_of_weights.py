"""The mean of the weights of all members, as a program."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component


def mean_step(weights: Mapping[str, Tensor], members: int) -> Capture:
    """The mean of the weights of all members, in the order of the roster."""

    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        found = {}
        for name in weights:
            total = state[f"{name}.0"]
            for k in range(1, members):
                total = total + state[f"{name}.{k}"]
            found[name] = total * (1 / members)
        return found

    sent = {f"{name}.{k}": torch.zeros_like(one) for k in range(members) for name, one in weights.items()}
    return capture_function(step, {**weights, **sent}, components=dict.fromkeys(sent, Component.BUFFER))
