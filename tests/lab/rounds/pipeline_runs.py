"""Runs of trainings by elastic processes, read back from their logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pol.decentralised.pipelines.pipeline_processes import RosterOf, run_pipeline
from pol.decentralised.processes.local_processes import Author, Round, local_key
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

PlanOf = Callable[[Store, str, bytes], RoundsPlan]
"""The plan of a coordinator with a nonce, stored."""


def trained(
    folder: Path,
    plan_of: PlanOf,
    do_round: Round,
    workers: int,
    rosters: RosterOf,
    cheats: Mapping[int, Author] | None = None,
    killed: Mapping[int, int] | None = None,
) -> LoggedRounds:
    """Train in processes, and read the whole log."""
    store = Store(f"file://{folder}/store")
    plan = plan_of(store, local_key(-1).name, bytes(32))
    run_pipeline(folder, plan, do_round, workers, rosters, cheats, killed)
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)
