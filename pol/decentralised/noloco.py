"""NoLoCo: no collective at all; each outer step mixes a worker's weights with those of one drawn partner.

Kolehmainen et al., NoLoCo: No-all-reduce Low Communication Training Method for Large Models, 2506.10911.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pol.commitments.keccak import keccak256
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.local_training import local_training, seat_order
from pol.decentralised.parts.quantization import dequantized, flat, quantized, split
from pol.decentralised.processes.round_worker import RoundWorker
from pol.decentralised.training_options import TrainingOptions
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Roster, drawn_partners
from pol.training.storage.store import Store

LOCAL, MESSAGE, MIXED = "local", "message", "mixed"
SENT = ("packed", "scale", "slow")
"""The slots of a message: the quantized change, and the weights before it."""


@dataclass(frozen=True)
class NoLoCo(TrainingOptions):
    """Options. ``pull`` draws partners' weights together: above ``momentum``, below the root of 2 + its square."""

    rounds: int = 5
    steps: int = 10
    seats: int = 4
    batch: int = 8
    rows: int = 512
    rate: float = 3e-3
    outer_rate: float = 0.7
    momentum: float = 0.5
    pull: float = 0.9
    shape: small_gpt.Shape = small_gpt.SMALL


def noloco_plan(store: Store, options: NoLoCo, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a NoLoCo training of the small GPT, stored."""
    steps = options.rounds * options.steps
    orders = [seat_order(options.rows, options.seats, seat, steps, options.batch) for seat in range(options.seats)]
    local = local_training(options.shape, options.rows, orders, options.rate)
    names = list(local.weights)
    before = {name: From(MIXED, name, lag=1, starts=True, inherits=True) for name in (*names, "momentum")}
    builder = PlanBuilder(store)
    of_local = {
        slot: before[slot] if slot in names else From(LOCAL, slot, lag=1, starts=True)
        for slot in local.capture.names.slots
    }
    builder.phase(LOCAL, local.capture, of_local, data=local.data, steps=options.steps, units=options.steps)
    of_message = {
        **{f"before.{name}": before[name] for name in names},
        **{f"after.{name}": From(LOCAL, name) for name in names},
        **dict.fromkeys(SENT, ALWAYS),
    }
    builder.phase(MESSAGE, message_step(local.weights), of_message)
    own = {f"own.{name}": From(MESSAGE, name) for name in SENT}
    theirs = {f"partner.{name}": From(MESSAGE, name, "partner") for name in SENT}
    builder.phase(MIXED, mixed_step(local.weights, options), {**before, **own, **theirs})
    said = {"steps": str(options.steps), "batch": str(options.batch), "model": f"GPT {options.shape}"}
    return builder.build("noloco", coordinator, nonce, options.rounds, said)


def message_step(weights: Mapping[str, Tensor]) -> Capture:
    """The change of a worker in a round, quantized, and the weights that it began with."""

    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        slow = flat([state[f"before.{name}"] for name in weights])
        packed, scale = quantized(slow - flat([state[f"after.{name}"] for name in weights]))
        return {"packed": packed, "scale": scale, "slow": slow}

    state = {f"{when}.{name}": tensor for when in ("before", "after") for name, tensor in weights.items()}
    return capture_function(step, {**state, **_message(weights)}, components=dict.fromkeys(SENT, Component.BUFFER))


def mixed_step(weights: Mapping[str, Tensor], options: NoLoCo) -> Capture:
    """The outer step: momentum, the mean change of two workers, and a pull towards the mean of their weights."""

    def step(state: dict[str, Tensor], _: dict[str, Tensor], __: Tensor) -> dict[str, Tensor]:
        sides = "own", "partner"
        first, second = (dequantized(state[f"{side}.packed"], state[f"{side}.scale"]) for side in sides)
        apart = state["own.slow"] - 0.5 * (state["own.slow"] + state["partner.slow"])
        change = options.outer_rate * (0.5 * (first + second)) + options.pull * apart
        moved = options.momentum * state["momentum"] - change
        parts = split(moved, list(weights.values()))
        return {"momentum": moved} | {name: state[name] + part for name, part in zip(weights, parts, strict=True)}

    messages = {f"{side}.{name}": one for side in ("own", "partner") for name, one in _message(weights).items()}
    kinds = {"momentum": Component.OPTIMIZER} | dict.fromkeys(messages, Component.BUFFER)
    zeros = torch.zeros_like(flat(list(weights.values())))
    return capture_function(step, {**weights, "momentum": zeros, **messages}, components=kinds)


def with_drawn_partners(roster: Roster) -> Roster:
    """A roster with partners. Its beacon is made up from the plan: a coordinator of strangers takes a public one."""
    beacon = keccak256(roster.plan + roster.round.to_bytes(8, "big"))
    return replace(roster, beacon=beacon, partners=drawn_partners(beacon, roster.round, roster.members))


def noloco_round(worker: RoundWorker) -> None:
    """One round of one worker: its message goes to its partner alone."""
    worker.make(LOCAL)
    made = worker.make(MESSAGE)
    roster = worker.author.rosters[worker.round]
    own = roster.place(worker.author.name)
    partner = roster.partners[own]
    if partner != own:
        worker.deliver(made, SENT, partner)
        worker.accept(ClaimPlace(roster.members[partner].worker, *made.entry.claim.place), SENT)
    worker.make(MIXED)


def _message(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    zeros = torch.zeros_like(flat(list(weights.values())))
    packed, scale = quantized(zeros)
    return {"packed": packed, "scale": scale, "slow": zeros}
