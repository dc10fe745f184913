"""DeMo and DisTrO: momentum stays at home; its strongest frequencies are sent at every step, one byte for each.

Peng, Quesnelle, Kingma, DeMo: Decoupled Momentum Optimization, 2411.19870. As in DisTrO, a message has the sign of a
coefficient instead of its value. Equal magnitudes have an order (the lower frequency is first), and coefficients of
several workers are added in the order of the roster: workers stay equal bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.quantization import flat, split
from pol.decentralised.processes.round_worker import RoundWorker
from pol.decentralised.training_options import TrainingOptions
from pol.graph.capture import to_words
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

STEP, MERGE = "step", "merge"
SENT = ("message",)
ROWS, COLUMNS = 8, 16
"""A chunk of momentum: 128 numbers, whose frequencies have seven bits; the eighth bit of a byte is the sign."""


@dataclass(frozen=True)
class DisTrO(TrainingOptions):
    """Options of a training; a round is one step. ``kept`` frequencies of a chunk are sent, a multiple of four."""

    rounds: int = 50
    seats: int = 4
    sizes: Sequence[int] = (4,)
    batch: int = 8
    rows: int = 512
    rate: float = 4e-3
    decay: float = 0.9
    kept: int = 8
    shape: small_gpt.Shape = small_gpt.SMALL


def distro_plan(store: Store, options: DisTrO, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a training of the small GPT, stored; ``sizes`` are the rosters that it has merges for."""
    model = small_gpt.small_gpt(options.shape)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    orders = [data_order(options, seat) for seat in range(options.seats)]
    builder = PlanBuilder(store)
    step = distro_step(model, weights, options, orders[0])
    at = step.names.constants.index("order")
    data = [[*step.constants[:at], to_words("order", order), *step.constants[at + 1 :]] for order in orders]
    of_weights = {name: From(MERGE, name, lag=1, starts=True, inherits=True) for name in weights}
    of_step = {**of_weights, "momentum": From(STEP, "momentum", lag=1, starts=True), "message": ALWAYS}
    builder.phase(STEP, step, of_step, data=data, units=1)
    for members in options.sizes:
        received = {f"message.{k}": From(STEP, "message", f"member:{k}") for k in range(members)}
        builder.phase(MERGE, merge_step(weights, members, options), {**of_weights, **received}, members=members)
    said = {"kept": f"{options.kept} of {ROWS * COLUMNS}", "batch": str(options.batch), "model": f"GPT {options.shape}"}
    return builder.build("distro", coordinator, nonce, options.rounds, said)


def data_order(options: DisTrO, seat: int) -> Tensor:
    """The rows that a seat sees: an int64 tensor of shape (rounds, batch) over its own part of the rows."""
    own = options.rows // options.seats
    generator = torch.Generator().manual_seed(1000 + seat)
    return seat * own + torch.randint(0, own, (options.rounds, options.batch), generator=generator)


def distro_step(model: small_gpt.SmallGpt, weights: Mapping[str, Tensor], options: DisTrO, order: Tensor) -> Capture:
    """A worker's step: the gradient joins the momentum, and its strongest frequencies leave it for the message."""

    def step(state: dict[str, Tensor], constants: dict[str, Tensor], number: Tensor) -> dict[str, Tensor]:
        leaves = {name: state[name].detach().requires_grad_() for name in weights}
        rows = constants["order"].index_select(0, number.view(1)).view(-1)
        logits = torch.func.functional_call(model, leaves, constants["text"].index_select(0, rows))
        loss = small_gpt.loss(logits, constants["following"].index_select(0, rows))
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        momentum = options.decay * state["momentum"] + flat(list(gradients))
        frequencies = _transformed(momentum, constants)
        # Of equal magnitudes topk takes the first ones: its order is defined (docs/operations.md).
        chosen = torch.topk(frequencies.abs(), options.kept, dim=1).indices
        values = frequencies.gather(1, chosen)
        sent = torch.zeros_like(frequencies).scatter(1, chosen, values)
        return {"momentum": momentum - _restored(sent, constants), "message": packed(chosen, values)}

    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1)
    constants = {"text": text, "following": following, "order": order, **matrices()}
    zeros = torch.zeros_like(flat(list(weights.values())))
    state = {**weights, "momentum": zeros, "message": _no_message(zeros, options)}
    kinds = {"momentum": Component.OPTIMIZER, "message": Component.BUFFER}
    return capture_function(step, state, constants, components=kinds)


def merge_step(weights: Mapping[str, Tensor], members: int, options: DisTrO) -> Capture:
    """The mean of the signs that were sent for a frequency, in the order of the roster; the sign of what it restores.

    A frequency that nobody has sent is 0.
    """
    zeros = torch.zeros_like(flat(list(weights.values())))

    def step(state: dict[str, Tensor], constants: dict[str, Tensor], _: Tensor) -> dict[str, Tensor]:
        received = [unpacked(state[f"message.{k}"]) for k in range(members)]
        chosen, signs = (torch.cat(parts, 1) for parts in zip(*received, strict=True))
        frequencies = zeros.view(-1, ROWS * COLUMNS).scatter_reduce(1, chosen, signs, "mean", include_self=False)
        change = split(options.rate * torch.sign(_restored(frequencies, constants)), list(weights.values()))
        return {name: state[name] - part for name, part in zip(weights, change, strict=True)}

    messages = {f"message.{k}": _no_message(zeros, options) for k in range(members)}
    kinds = dict.fromkeys(messages, Component.BUFFER)
    return capture_function(step, {**weights, **messages}, matrices(), components=kinds)


def matrices() -> dict[str, Tensor]:
    """The cosine transforms of the rows and columns of a chunk: orthonormal, computed once, committed as constants."""
    return {"rows": _cosines(ROWS), "columns": _cosines(COLUMNS)}


def packed(chosen: Tensor, values: Tensor) -> Tensor:
    """Words of four bytes: of each chosen frequency its number and the sign of its value; shape (chunks, kept / 4)."""
    codes = (chosen.to(torch.int32) | ((values < 0).to(torch.int32) << 7)).view(len(chosen), -1, 4)
    low, second, third, high = codes.unbind(2)
    return low | (second << 8) | (third << 16) | (high << 24)


def unpacked(words: Tensor) -> tuple[Tensor, Tensor]:
    """The frequencies and signs of `packed`, each of shape (chunks, kept)."""
    codes = torch.stack([(words >> shift) & 255 for shift in (0, 8, 16, 24)], 2).view(len(words), -1)
    return (codes & 127).to(torch.int64), 1.0 - 2.0 * (codes >> 7).to(torch.float32)


def _cosines(size: int) -> Tensor:
    rows = [
        [
            math.cos(math.pi * (2 * at + 1) * number / (2 * size)) * math.sqrt((1 if number == 0 else 2) / size)
            for at in range(size)
        ]
        for number in range(size)
    ]
    return torch.tensor(rows, dtype=torch.float64).to(torch.float32)


def _transformed(vector: Tensor, constants: Mapping[str, Tensor]) -> Tensor:
    chunks = vector.view(-1, ROWS, COLUMNS)
    return (constants["rows"] @ chunks @ constants["columns"].t()).reshape(-1, ROWS * COLUMNS)


def _restored(frequencies: Tensor, constants: Mapping[str, Tensor]) -> Tensor:
    chunks = frequencies.view(-1, ROWS, COLUMNS)
    return (constants["rows"].t() @ chunks @ constants["columns"]).reshape(-1)


def _no_message(vector: Tensor, options: DisTrO) -> Tensor:
    return torch.zeros(len(vector) // (ROWS * COLUMNS), options.kept // 4, dtype=torch.int32)


def distro_round(worker: RoundWorker) -> None:
    """One step of one worker, between `RoundWorker.begin` and `RoundWorker.finish`."""
    worker.share(worker.make(STEP), SENT)
    worker.make(MERGE)
