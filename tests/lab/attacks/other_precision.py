"""Training in another precision than float32."""

from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import torch

from lab.attacks.attack_loop import Around, AttackLoop, RoundedProducts
from lab.attacks.attack_target import Floats, State
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE


def looped(workshop: Workshop, around: Around) -> Forgery:
    """The user's loop in torch, forward and backward in another precision; weights and optimizer stay float32."""
    target = workshop.target
    loop = AttackLoop(target, around)
    states = [workshop.start]
    for segment in range(target.segments):
        states.append(loop.train(states[-1], segment * target.interval, target.interval))
        workshop.steps += target.interval
    return Forgery(states)


def autocast() -> AbstractContextManager[object]:
    """bfloat16 by torch.autocast."""
    return torch.autocast("cpu", torch.bfloat16)


def low_weights(workshop: Workshop) -> Forgery:
    """Weights, buffers and optimizer state are kept in bfloat16."""
    target = workshop.target
    state, states = workshop.start, [workshop.start]
    for step in range(target.task.document.steps):
        state = workshop.with_numbers(workshop.train(state, step, 1), _bfloat16)
        if (step + 1) % target.interval == 0:
            states.append(state)
    return Forgery(states)


def half_checkpoints(workshop: Workshop) -> Forgery:
    """Trained in float32; every checkpoint is published, and gone on from, in float16."""

    def halved(_start: State, end: State) -> State:
        return workshop.with_numbers(end, lambda _, values: values.astype(np.float16).astype(np.float32))

    return Forgery(workshop.tamper(halved, range(workshop.target.segments)))


def _bfloat16(_place: int, values: Floats) -> Floats:
    rounded: Floats = torch.from_numpy(values.copy()).bfloat16().float().numpy()
    return rounded


ATTACKS = (
    Attack("bf16-autocast", "forward and backward pass in bfloat16", partial(looped, around=autocast), FOLKLORE),
    Attack("bf16-weights", "the whole state in bfloat16", low_weights, FOLKLORE),
    Attack("tf32", "products of operands with 11 bits", partial(looped, around=lambda: RoundedProducts(11)), FOLKLORE),
    Attack("fp16-checkpoints", "checkpoints in float16", half_checkpoints, FOLKLORE),
    Attack(
        "20-bit-products",
        "products of operands with 20 of 24 bits",
        partial(looped, around=lambda: RoundedProducts(20)),
        hides=True,
    ),
)
