"""Figures of trainings whose network is cut into stages or modules: pipelines, DiPaCo, recovery after a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from lab.benchmarks.figure import Figure
from lab.rounds.dipaco_cheats import EasierShard, FalseRouting, OwnShard
from lab.rounds.failure_cheats import NeighborCopier, OlderWeights, SilentlyOlderWeights
from lab.rounds.measured_rounds import (
    TimedAuthor,
    ddp_bytes,
    final_weights,
    found_share,
    plain_loss,
    timed_round,
    worker_costs,
)
from lab.rounds.pipeline_cheats import (
    CovertCoefficients,
    GradientReplacer,
    GradientScaler,
    IdentityActivations,
    StaleBasis,
    StaleBuffer,
    WrongDelta,
)
from lab.rounds.pipeline_runs import PlanOf, trained
from lab.rounds.system_figures import system_figures
from pol.decentralised.dipaco import LEVELS, PATHS, SHARD, DiPaCo, dipaco_plan, dipaco_round, local, merge, path_roster
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.aq_sgd import aq_sgd_plan, fixed_roster
from pol.decentralised.pipelines.checkfree import THREE_BLOCKS, checkfree_plan, checkfree_round, spare_roster
from pol.decentralised.pipelines.oobleck import template_roster
from pol.decentralised.pipelines.pipeline import (
    HEAD,
    Pipeline,
    forward,
    micro_batches,
    pipeline_plan,
    pipeline_round,
    staged_roster,
    update,
)
from pol.decentralised.pipelines.pipeline_processes import RosterOf
from pol.decentralised.pipelines.protocol_models import protocol_models_plan
from pol.decentralised.processes.local_processes import Author, Round
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

SHAPE = small_gpt.Shape(2, 64, 4, 32)
LARGE = Pipeline(rounds=40, parts=4, batch=16, rows=256, rate=3e-3, shape=SHAPE)
SMALL = Pipeline(rounds=3, parts=2, rows=32)
KILLED = 2
"""Before which round a worker is killed."""
Plan = Callable[[Store, Pipeline, str, bytes], RoundsPlan]


def swarm_figures(folder: Path) -> dict[str, Figure]:
    """Two stages of two workers."""
    cheats: dict[int, Author] = {0: IdentityActivations, 1: GradientScaler, 3: GradientReplacer}
    liars = {0: forward(0), 1: HEAD, 3: HEAD}
    small = replace(SMALL, parts=LARGE.parts)
    lying = trained(
        folder / "lying",
        _plan(pipeline_plan, small),
        pipeline_round,
        4,
        partial(staged_roster, stages=2, parts=4),
        cheats,
    )
    rosters = partial(staged_roster, stages=2, parts=LARGE.parts)
    return _pipeline(folder, pipeline_plan, LARGE, 4, rosters, found_share(lying, liars))


def aq_sgd_figures(folder: Path) -> dict[str, Figure]:
    """Two stages, one worker each, that send changes."""
    return _compressed(folder, aq_sgd_plan, {0: WrongDelta, 1: StaleBuffer})


def protocol_models_figures(folder: Path) -> dict[str, Figure]:
    """Two stages, one worker each, that send coefficients."""
    # A stale basis is a lie where bases change before the round of the lies.
    turning = partial(protocol_models_plan, lasts=SMALL.parts)
    return _compressed(folder, protocol_models_plan, {0: StaleBasis, 1: CovertCoefficients}, turning)


def oobleck_figures(folder: Path) -> dict[str, Figure]:
    """Two pipelines of two stages; one worker is killed."""
    cheats: dict[int, Author] = {3: OlderWeights, 2: SilentlyOlderWeights}
    small = replace(SMALL, rounds=4)
    rosters = partial(template_roster, parts=small.parts)
    lying = trained(
        folder / "lying", _plan(pipeline_plan, small), pipeline_round, 4, rosters, cheats, killed={1: KILLED}
    )
    found = found_share(lying, {3: forward(0), 2: HEAD})
    return _pipeline(folder, pipeline_plan, LARGE, 4, partial(template_roster, parts=LARGE.parts), found, {1: KILLED})


def checkfree_figures(folder: Path) -> dict[str, Figure]:
    """Three stages, of which the middle one is lost and recovered; a spare worker takes it over."""
    small = replace(SMALL, rounds=4, stages=3, shape=THREE_BLOCKS)
    rosters = partial(spare_roster, parts=small.parts, lost=KILLED)
    cheats: dict[int, Author] = {0: NeighborCopier}
    plan = _plan(checkfree_plan, small)
    lying = trained(folder / "lying", plan, checkfree_round, 4, rosters, cheats, {1: KILLED})
    options = replace(LARGE, stages=3, shape=replace(SHAPE, layers=3))
    rosters = partial(spare_roster, parts=options.parts, lost=KILLED)
    found = found_share(lying, {0: update(1)})
    return _pipeline(folder, checkfree_plan, options, 4, rosters, found, {1: KILLED}, checkfree_round)


def dipaco_figures(folder: Path) -> dict[str, Figure]:
    """Two modules on two levels, four paths."""
    small = DiPaCo(rounds=2, steps=3, batch=4, rows=64)
    cheats: dict[int, Author] = {1: EasierShard, 2: FalseRouting, 3: OwnShard}

    def plan_of(options: DiPaCo) -> PlanOf:
        return lambda store, coordinator, nonce: dipaco_plan(store, options, coordinator, nonce)

    lying = trained(folder / "lying", plan_of(small), dipaco_round, PATHS, path_roster, cheats)
    options = DiPaCo(rounds=4, steps=50, batch=16, rows=512, shape=SHAPE)
    authors: dict[int, Author] = dict.fromkeys(range(PATHS), TimedAuthor)
    work = partial(timed_round, dipaco_round, str(folder / "honest"))
    rounds = trained(folder / "honest", plan_of(options), work, PATHS, path_roster, authors)
    costs = worker_costs(folder / "honest", PATHS)
    vectors = [final_weights(rounds, merge(level, 0))["weights"] for level in LEVELS]
    generator = torch.Generator().manual_seed(3)
    order = torch.randint(0, options.rows, (options.rounds * options.steps, options.batch), generator=generator)
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(sum(len(vector) for vector in vectors), PATHS, options.steps),
        _stages_loss(options.shape, options.rows, vectors),
        plain_loss(options.shape, options.rows, [order], options.rate),
        found_share(lying, {1: local(1), 2: SHARD, 3: local(3)}),
    )


def _compressed(folder: Path, plan: Plan, cheats: dict[int, Author], lied: Plan | None = None) -> dict[str, Figure]:
    rosters = partial(fixed_roster, parts=SMALL.parts)
    lying = trained(folder / "lying", _plan(lied or plan, SMALL), pipeline_round, 2, rosters, cheats)
    found = found_share(lying, {0: forward(0), 1: HEAD})
    return _pipeline(folder, plan, LARGE, 2, partial(fixed_roster, parts=LARGE.parts), found)


def _plan(plan: Plan, options: Pipeline) -> PlanOf:
    return lambda store, coordinator, nonce: plan(store, options, coordinator, nonce)


def _pipeline(
    folder: Path,
    plan: Plan,
    options: Pipeline,
    workers: int,
    rosters: RosterOf,
    found: float,
    killed: Mapping[int, int] | None = None,
    do_round: Round = pipeline_round,
) -> dict[str, Figure]:
    """The figures of two honest trainings, one for what is learned, one for costs; a round is one step of all."""
    learned = trained(folder / "learned", _plan(plan, options), do_round, workers, rosters, None, killed)
    vectors = [_last_weights(learned, stage) for stage in range(options.stages)]
    order = micro_batches(options).view(options.rounds, -1)
    wide = replace(options, rounds=5, batch=64, shape=small_gpt.Shape(options.shape.layers, 128, 4, 64))
    authors: dict[int, Author] = dict.fromkeys(range(workers), TimedAuthor)
    work = partial(timed_round, do_round, str(folder / "costs"))
    measured = trained(folder / "costs", _plan(plan, wide), work, workers, rosters, authors, killed)
    costs = worker_costs(folder / "costs", 1 if killed else workers)  # of the first, which stays, if one is killed
    parameters = sum(len(_last_weights(measured, stage)) for stage in range(options.stages))
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(parameters, workers, 1),
        _stages_loss(options.shape, options.rows, vectors),
        plain_loss(options.shape, options.rows, [order], options.rate),
        found,
    )


def _last_weights(rounds: LoggedRounds, stage: int) -> torch.Tensor:
    return final_weights(rounds, update(stage))["weights"]


def _stages_loss(shape: small_gpt.Shape, rows: int, vectors: list[torch.Tensor]) -> float:
    """The loss over text that no worker has seen, of the network out of its stages."""
    text, following = small_gpt.text_rows(rows, shape.length, seed=2)
    hidden = text
    with torch.no_grad():
        for stage, vector in zip(gpt_stages(shape, len(vectors)), vectors, strict=True):
            hidden = stage.run(vector, hidden)
        return float(small_gpt.loss(hidden, following))
