"""DiLoCo with int8 messages: local AdamW, a quantized pseudo-gradient, an ordered mean, an outer Nesterov step.

Douillard et al., DiLoCo: Distributed Low-Communication Training of Language Models, 2311.08105; the loop of OpenDiLoCo
(2407.07852), the int8 messages and joining workers of INTELLECT-1 (2412.01152).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.local_training import local_training, seat_order
from pol.decentralised.parts.quantization import dequantized, flat, quantized, split
from pol.decentralised.processes.round_worker import PhaseWorker
from pol.decentralised.training_options import TrainingOptions
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

LOCAL, MESSAGE, MERGE = "local", "message", "merge"
SENT = ("packed", "scale")
"""The slots of a message that others receive."""


@dataclass(frozen=True)
class DiLoCo(TrainingOptions):
    """Options of a training. ``steps`` are those of a worker in a round; ``seats`` have data of their own."""

    rounds: int = 5
    steps: int = 10
    seats: int = 4
    sizes: Sequence[int] = (2, 3, 4)
    batch: int = 8
    rows: int = 512
    rate: float = 3e-3
    outer_rate: float = 0.7
    momentum: float = 0.9
    shape: small_gpt.Shape = small_gpt.SMALL


def diloco_plan(store: Store, options: DiLoCo, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a DiLoCo training of the small GPT, stored; ``sizes`` are the rosters that it has merges for."""
    orders = [data_order(options, seat) for seat in range(options.seats)]
    local = local_training(options.shape, options.rows, orders, options.rate)
    weights = local.weights
    builder = PlanBuilder(store)
    of_local = {
        slot: From(MERGE, slot, lag=1, starts=True, inherits=True)
        if slot in weights
        else From(LOCAL, slot, lag=1, starts=True)
        for slot in local.capture.names.slots
    }
    # All members sign the same merge, and a message is little work: steps are what counts.
    builder.phase(LOCAL, local.capture, of_local, data=local.data, steps=options.steps, units=options.steps)
    message = message_step(weights)
    of_message = {
        **{f"before.{name}": From(MERGE, name, lag=1, starts=True, inherits=True) for name in weights},
        **{f"after.{name}": From(LOCAL, name) for name in weights},
        **dict.fromkeys(SENT, ALWAYS),
    }
    builder.phase(MESSAGE, message, of_message)
    for members in options.sizes:
        merge = merge_step(weights, members, options.outer_rate, options.momentum)
        of_merge = {
            **{name: From(MERGE, name, lag=1, starts=True, inherits=True) for name in (*weights, "momentum")},
            **{f"{name}.{k}": From(MESSAGE, name, f"member:{k}") for k in range(members) for name in SENT},
        }
        builder.phase(MERGE, merge, of_merge, members=members)
    said = {"steps": str(options.steps), "batch": str(options.batch), "model": f"GPT {options.shape}"}
    return builder.build("diloco", coordinator, nonce, options.rounds, said)


def data_order(options: DiLoCo, seat: int) -> Tensor:
    """The rows that a seat sees: an int64 tensor of shape (all steps, batch) over its own part of the rows."""
    return seat_order(options.rows, options.seats, seat, options.rounds * options.steps, options.batch)


def message_step(weights: Mapping[str, Tensor]) -> Capture:
    """The pseudo-gradient of a worker, quantized: before - after."""

    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        change = flat([state[f"before.{name}"] - state[f"after.{name}"] for name in weights])
        packed, scale = quantized(change)
        return {"packed": packed, "scale": scale}

    packed, scale = quantized(torch.zeros_like(flat(list(weights.values()))))
    state = {f"{when}.{name}": tensor for when in ("before", "after") for name, tensor in weights.items()}
    kinds = dict.fromkeys(SENT, Component.BUFFER)
    return capture_function(step, {**state, "packed": packed, "scale": scale}, components=kinds)


def merge_step(weights: Mapping[str, Tensor], members: int, rate: float, momentum: float) -> Capture:
    """The outer step: the mean of the messages in the order of the roster, then Nesterov's."""

    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        total = dequantized(state["packed.0"], state["scale.0"])
        for k in range(1, members):
            total = total + dequantized(state[f"packed.{k}"], state[f"scale.{k}"])
        mean = total * (1 / members)
        moved = momentum * state["momentum"] + mean
        change = split(rate * (mean + momentum * moved), list(weights.values()))
        return {"momentum": moved} | {name: state[name] - part for name, part in zip(weights, change, strict=True)}

    zeros = torch.zeros_like(flat(list(weights.values())))
    packed, scale = quantized(zeros)
    messages = {f"{name}.{k}": like for k in range(members) for name, like in zip(SENT, (packed, scale), strict=True)}
    kinds = {"momentum": Component.OPTIMIZER} | dict.fromkeys(messages, Component.BUFFER)
    return capture_function(step, {**weights, "momentum": zeros, **messages}, components=kinds)


def diloco_round(worker: PhaseWorker) -> None:
    """One round of one worker, between its beginning and its end."""
    worker.make(LOCAL)
    worker.share(worker.make(MESSAGE), SENT)
    worker.make(MERGE)
