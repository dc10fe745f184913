"""Trainings of many workers: what proofs cost, what workers send, what models learn, and which lies are found."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks.figure import Figure
from lab.rounds.system_figures import system_figures

MeasuredSystem = Callable[[Path], dict[str, Figure]]
"""Figures of a system in an empty folder, those of `system_figures`, and others of its own."""

ALONE = frozenset({"late_joiner_root_equal", "honest_accused_in_1000_rounds"})
"""Names that stand without a system's."""


def rounds_figures() -> dict[str, Figure]:
    """The figures of all systems, ``NAME_overhead`` and so on."""
    figures: dict[str, Figure] = {}
    for name, measure in SYSTEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder))
            figures |= {what if what in ALONE else f"{name}_{what}": figure for what, figure in found.items()}
    return figures


def _diloco(folder: Path) -> dict[str, Figure]:
    from lab.rounds.diloco_cheats import Magnifier
    from lab.rounds.measured_rounds import ddp_bytes, final_weights, found_share, gpt_loss, plain_loss, timed, trained
    from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE, DiLoCo, data_order, diloco_plan, diloco_round
    from pol.decentralised.parts.small_gpt import Shape
    from pol.demo.cheating_workers import Sandbagger
    from pol.rounds.plan.rounds_plan import RoundsPlan
    from pol.training.storage.store import Store

    options = DiLoCo(rounds=4, steps=100, seats=2, sizes=(2,), batch=16, shape=Shape(3, 64, 4, 32))
    small = DiLoCo(rounds=3, steps=5, seats=3, sizes=(3,))

    def plan_of(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
        return diloco_plan(store, options, coordinator, nonce)

    rounds, costs = timed(folder / "honest", plan_of, diloco_round, options.seats)
    weights = final_weights(rounds, MERGE)
    parameters = sum(weight.numel() for name, weight in weights.items() if name != "momentum")
    lying = trained(
        folder / "lying",
        lambda *given: diloco_plan(given[0], small, *given[1:]),
        diloco_round,
        small.seats,
        {1: Sandbagger, 2: Magnifier},
    )
    orders = [data_order(options, seat) for seat in range(options.seats)]
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(parameters, options.seats, options.steps),
        gpt_loss(options.shape, options.rows, weights),
        plain_loss(options.shape, options.rows, orders, options.rate),
        found_share(lying, {1: LOCAL, 2: MESSAGE}),
    )


def _distro(folder: Path) -> dict[str, Figure]:
    from lab.rounds.distro_figures import distro_figures

    return distro_figures(folder)


def _decoupled(folder: Path) -> dict[str, Figure]:
    from lab.rounds.decoupled_figures import decoupled_figures

    return decoupled_figures(folder)


def _private(folder: Path) -> dict[str, Figure]:
    from lab.rounds.private_figures import private_figures

    return private_figures(folder)


def _relative(name: str) -> MeasuredSystem:
    """A system of `lab.benchmarks.diloco_relatives`."""

    def measure(folder: Path) -> dict[str, Figure]:
        from lab.benchmarks import diloco_relatives

        measured: MeasuredSystem = getattr(diloco_relatives, f"{name}_figures")
        return measured(folder)

    return measure


def _of_stages(name: str) -> MeasuredSystem:
    """A system of `lab.benchmarks.pipeline_costs`."""

    def measure(folder: Path) -> dict[str, Figure]:
        from lab.benchmarks import pipeline_costs

        measured: MeasuredSystem = getattr(pipeline_costs, f"{name}_figures")
        return measured(folder)

    return measure


def _placement(folder: Path) -> dict[str, Figure]:
    from lab.rounds.placement_runs import placement_figures

    return placement_figures(folder)


SYSTEMS: dict[str, MeasuredSystem] = {
    "diloco": _diloco,
    "elastic": _relative("elastic"),
    "lofi": _relative("lofi"),
    "noloco": _relative("noloco"),
    "drill": _relative("drill"),
    "distro": _distro,
    "decoupled": _decoupled,
    "private": _private,
    "placement": _placement,
    **{name: _of_stages(name) for name in ("swarm", "aq_sgd", "protocol_models", "dipaco", "oobleck", "checkfree")},
}
