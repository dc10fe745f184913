"""lo-fi: whole fine-tunings of one base model that never speak to each other, and one mean of their weights at the end.

Wortsman et al., lo-fi: distributed fine-tuning without communication, 2210.11948.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.local_training import local_training, seat_order
from pol.decentralised.parts.mean_of_weights import mean_step
from pol.decentralised.processes.round_worker import PhaseWorker
from pol.decentralised.training_options import TrainingOptions
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

TUNED, MEAN = "tuned", "mean"


@dataclass(frozen=True)
class LoFi(TrainingOptions):
    """Options. A fine-tuning is ``parts`` claims of ``steps`` steps each; ``seats`` are the workers."""

    parts: int = 3
    steps: int = 10
    seats: int = 3
    batch: int = 8
    rows: int = 512
    rate: float = 1e-3
    shape: small_gpt.Shape = small_gpt.SMALL


def lofi_plan(
    store: Store, options: LoFi, coordinator: str, nonce: bytes, base: Mapping[str, Tensor] | None = None
) -> RoundsPlan:
    """The plan of one round, stored: fine-tunings of ``base``, by default a network of a fixed seed, and their mean."""
    steps = options.parts * options.steps
    orders = [seat_order(options.rows, options.seats, seat, steps, options.batch) for seat in range(options.seats)]
    local = local_training(options.shape, options.rows, orders, options.rate, base)
    builder = PlanBuilder(store)
    tuned = {slot: From(TUNED, slot, "part", starts=True) for slot in local.capture.names.slots}
    builder.phase(
        TUNED, local.capture, tuned, data=local.data, steps=options.steps, parts=options.parts, units=options.steps
    )
    sent = {f"{name}.{k}": From(TUNED, name, f"member:{k}") for k in range(options.seats) for name in local.weights}
    mean = mean_step(local.weights, options.seats)
    builder.phase(MEAN, mean, {**dict.fromkeys(local.weights, ALWAYS), **sent}, members=options.seats)
    said = {"steps": str(steps), "batch": str(options.batch), "model": f"GPT {options.shape}"}
    return builder.build("lo-fi", coordinator, nonce, 1, said)


def lofi_round(options: LoFi, worker: PhaseWorker) -> None:
    """The only round of one worker: `functools.partial` gives it the options."""
    parts = [worker.make(TUNED, part) for part in range(options.parts)]
    worker.share(parts[-1], [name for name, _ in small_gpt.small_gpt(options.shape).named_parameters()])
    worker.make(MEAN)
