"""Figures of DisTrO, whose rounds are single steps."""

from __future__ import annotations

from pathlib import Path

from lab.benchmarks.figure import Figure
from lab.rounds.distro_cheats import Copycat, RandomSigns
from lab.rounds.measured_rounds import ddp_bytes, final_weights, found_share, gpt_loss, plain_loss, timed, trained
from lab.rounds.system_figures import system_figures
from pol.decentralised.distro import MERGE, STEP, DisTrO, data_order, distro_plan, distro_round
from pol.decentralised.small_gpt import Shape

OPTIONS = DisTrO(rounds=60, seats=2, sizes=(2,), batch=64, shape=Shape(3, 64, 4, 32))
SMALL = DisTrO(rounds=3, seats=3, sizes=(3,))
PLAIN_RATE = 3e-3


def distro_figures(folder: Path) -> dict[str, Figure]:
    """Its four figures."""
    rounds, costs = timed(folder / "honest", lambda *given: distro_plan(given[0], OPTIONS, *given[1:]), distro_round, 2)
    weights = final_weights(rounds, MERGE)
    lying = trained(
        folder / "lying",
        lambda *given: distro_plan(given[0], SMALL, *given[1:]),
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
