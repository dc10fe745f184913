"""Figures of DisTrO, whose rounds are single steps: its costs are those of steps of a second, as real ones have."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lab.benchmarks.figure import Figure
from lab.rounds.distro_cheats import Copycat, RandomSigns
from lab.rounds.measured_rounds import ddp_bytes, final_weights, found_share, gpt_loss, plain_loss, timed, trained
from lab.rounds.system_figures import system_figures
from pol.decentralised.distro import MERGE, STEP, DisTrO, data_order, distro_plan, distro_round
from pol.decentralised.parts.small_gpt import Shape
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

LONG_STEPS = DisTrO(rounds=8, seats=2, sizes=(2,), batch=1024, shape=Shape(3, 64, 4, 32))
OPTIONS = DisTrO(rounds=60, seats=2, sizes=(2,), batch=64, shape=Shape(3, 64, 4, 32))
SMALL = DisTrO(rounds=3, seats=3, sizes=(3,))
PLAIN_RATE = 3e-3


def distro_figures(folder: Path) -> dict[str, Figure]:
    """Its four figures."""

    def plan_of(options: DisTrO, store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
        return distro_plan(store, options, coordinator, nonce)

    _, costs = timed(folder / "costs", partial(plan_of, LONG_STEPS), distro_round, LONG_STEPS.seats)
    honest = trained(folder / "honest", partial(plan_of, OPTIONS), distro_round, OPTIONS.seats, {})
    weights = final_weights(honest, MERGE)
    lying = trained(
        folder / "lying",
        partial(plan_of, SMALL),
        distro_round,
        SMALL.seats,
        {1: Copycat, 2: RandomSigns},
    )
    orders = [data_order(OPTIONS, seat) for seat in range(OPTIONS.seats)]
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(sum(weight.numel() for weight in weights.values()), OPTIONS.seats, 1),
        gpt_loss(OPTIONS.shape, OPTIONS.rows, weights),
        plain_loss(OPTIONS.shape, OPTIONS.rows, orders, PLAIN_RATE),
        found_share(lying, {1: STEP, 2: STEP}),
    )
