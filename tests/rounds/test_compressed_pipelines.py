"""AQ-SGD and subspace activations on a pipeline of two processes: their lies, and buffers that are out of step."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.pipeline_cheats import CovertCoefficients, StaleBasis, StaleBuffer, WrongDelta
from lab.rounds.pipeline_runs import PlanOf, trained
from pol.decentralised.pipelines.aq_sgd import aq_sgd_plan, buffers_out_of_step, fixed_roster
from pol.decentralised.pipelines.pipeline import HEAD, Pipeline, forward, pipeline_round
from pol.decentralised.pipelines.protocol_models import protocol_models_plan, turned_bases
from pol.decentralised.processes.local_processes import Author, local_key
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

OPTIONS = Pipeline(rounds=3, parts=2, rows=16)
ROSTERS = partial(fixed_roster, parts=OPTIONS.parts)


def aq_sgd(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return aq_sgd_plan(store, OPTIONS, coordinator, nonce)


def subspace(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return protocol_models_plan(store, OPTIONS, coordinator, nonce, rank=8, lasts=2)


def run(folder: Path, system: PlanOf, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    return trained(folder, system, pipeline_round, 2, ROSTERS, cheats)


@pytest.mark.parametrize("system", [aq_sgd, subspace])
def test_honest_workers(system: PlanOf, tmp_path: Path) -> None:
    rounds = run(tmp_path, system)
    assert len(rounds.claims) == OPTIONS.rounds * (3 * OPTIONS.parts + 2)
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    if system is aq_sgd:
        assert not buffers_out_of_step(rounds)
        assert len({rounds.end(e)[-1].root for e in rounds.claims.values() if e.claim.phase == 0}) == 6  # they move


@pytest.mark.parametrize(
    ("system", "cheats"),
    [(aq_sgd, (WrongDelta, StaleBuffer)), (subspace, (StaleBasis, CovertCoefficients))],
)
def test_lies_of_both_sides(system: PlanOf, cheats: tuple[Author, Author], tmp_path: Path) -> None:
    rounds = run(tmp_path, system, dict(enumerate(cheats)))
    assert not list(findings_by_roots(rounds))
    found = list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    told = [(finding.lie, finding.worker, finding.round, finding.phase) for finding in found]
    assert sorted(told, key=str) == sorted(
        [
            (Lie.EXECUTION, local_key(stage).name, 1, phase)
            for stage, phase in ((0, forward(0)), (1, HEAD))
            for _ in range(OPTIONS.parts)
        ],
        key=str,
    )
    if system is aq_sgd:
        first = buffers_out_of_step(rounds)[0]
        assert [entry.claim.round for entry in first] == [1, 1]
        assert {entry.claim.digest for entry in first} <= {finding.claim for finding in found}
    with court() as evm:
        for worker in (0, 1):
            lie = next(finding.claim for finding in found if finding.worker == local_key(worker).name)
            assert evm.play(*sides(rounds, rounds.claims[lie])).match.winner is Side.CHALLENGER


def test_bases_are_orthonormal_and_turn() -> None:
    bases = turned_bases(3, 32, 8)
    for basis in bases:
        assert torch.allclose(basis.T @ basis, torch.eye(8), atol=1e-5)
    assert not np.allclose(bases[0], bases[1], atol=1e-3)
