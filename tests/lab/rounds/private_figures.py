"""Figures of DP-SGD on sealed data."""

from __future__ import annotations

from pathlib import Path

import torch

from lab.benchmarks.figure import Figure
from lab.rounds.measured_rounds import ddp_bytes, final_weights, found_share, gpt_loss, plain_loss, timed, trained
from lab.rounds.private_cheats import CarelessOwner
from lab.rounds.system_figures import system_figures
from pol.decentralised.private_step import MERGE, PRIVATE, PrivateTraining, private_plan, private_round
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

OPTIONS = PrivateTraining(rounds=5, steps=30)
SMALL = PrivateTraining(rounds=4, steps=1, rows=48, sampled=1 / 8)
PLAIN_RATE = 3e-3


def private_figures(folder: Path) -> dict[str, Figure]:
    """Its four figures, and the bound on what the weights tell about one example."""

    def plan_of(options: PrivateTraining, store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
        return private_plan(store, options, coordinator, nonce, seeds=[11, 12])

    rounds, costs = timed(folder / "honest", lambda *given: plan_of(OPTIONS, *given), private_round, OPTIONS.seats)
    weights = final_weights(rounds, MERGE)
    lying = trained(
        folder / "lying", lambda *given: plan_of(SMALL, *given), private_round, SMALL.seats, {1: CarelessOwner}
    )
    generator = torch.Generator().manual_seed(0)
    batch = round(OPTIONS.sampled * OPTIONS.rows)
    steps = OPTIONS.rounds * OPTIONS.steps
    orders = [torch.randint(0, OPTIONS.rows, (steps, batch), generator=generator) for _ in range(OPTIONS.seats)]
    return {
        **system_figures(
            max(1 - cost.program_seconds / cost.seconds for cost in costs),
            max(cost.sent for cost in costs),
            ddp_bytes(sum(weight.numel() for weight in weights.values()), OPTIONS.seats, OPTIONS.steps),
            gpt_loss(OPTIONS.shape, OPTIONS.rows, weights),
            plain_loss(OPTIONS.shape, OPTIONS.rows, orders, PLAIN_RATE),
            found_share(lying, {1: PRIVATE}),
        ),
        "epsilon": Figure(OPTIONS.epsilon(), "at delta 1e-5, against those without the seed"),
    }
