"""A worker of a pipeline is killed: others go on from the same state, or recover it as the plan says, or lie."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.failure_cheats import FAILED_ROUND, NeighborCopier, OlderWeights, SilentlyOlderWeights
from lab.rounds.pipeline_runs import trained
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.checkfree import THREE_BLOCKS, checkfree_plan, checkfree_round, spare_roster
from pol.decentralised.pipelines.oobleck import pipelines, start_roots, state_roots, template_roster
from pol.decentralised.pipelines.pipeline import HEAD, Pipeline, forward, pipeline_plan, pipeline_round, update
from pol.decentralised.processes.local_processes import Author, local_key
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end, load_start
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

OOBLECK = Pipeline(rounds=4, parts=2, rows=32)
CHECKFREE = Pipeline(rounds=4, parts=1, stages=3, rows=32, shape=THREE_BLOCKS)


def oobleck_plan(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return pipeline_plan(store, OOBLECK, coordinator, nonce)


def three_stages(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return checkfree_plan(store, CHECKFREE, coordinator, nonce)


def failed(folder: Path, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    """Two pipelines of two, of which worker 1 is killed: worker 0 is left with worker 2, worker 3 has both stages."""
    rosters = partial(template_roster, parts=OOBLECK.parts)
    return trained(folder, oobleck_plan, pipeline_round, 4, rosters, cheats, killed={1: FAILED_ROUND})


def recovered(folder: Path, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    rosters = partial(spare_roster, parts=CHECKFREE.parts, lost=FAILED_ROUND)
    return trained(folder, three_stages, checkfree_round, 4, rosters, cheats, killed={1: FAILED_ROUND})


def test_templates() -> None:
    assert pipelines(4) == [(0, 1), (2, 3)]
    assert pipelines(3) == [(0, 1), (2, 2)]
    assert pipelines(1) == [(0, 0)]
    with pytest.raises(ProtocolError, match="no worker is left"):
        pipelines(0)


def test_another_partition_has_the_same_state(tmp_path: Path) -> None:
    rounds = failed(tmp_path)
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    sizes = [len(roster.members) for _, (roster,) in sorted(rounds.rosters.items())]
    assert sizes == [4, 4, 3, 3]
    for round_ in range(1, OOBLECK.rounds):
        assert start_roots(rounds, round_) == state_roots(rounds, round_ - 1)
    makers = {e.worker for e in rounds.claims.values() if e.claim.round == FAILED_ROUND and e.claim.phase == 0}
    assert makers == {local_key(0).name, local_key(3).name}  # worker 3 had stage 1 before


def test_older_weights_are_found(tmp_path: Path) -> None:
    rounds = failed(tmp_path, {3: OlderWeights, 2: SilentlyOlderWeights})
    (by_roots,) = findings_by_roots(rounds)
    assert (by_roots.lie, by_roots.worker, by_roots.phase) == (Lie.SOURCE, local_key(3).name, forward(0))
    others = [entry for entry in rounds.claims.values() if entry.claim.digest != by_roots.claim]
    (found,) = findings_by_replay(rounds, others, CpuExecutor)
    assert (found.lie, found.worker, found.phase) == (Lie.EXECUTION, local_key(2).name, HEAD)
    assert (found.round, by_roots.round) == (FAILED_ROUND, FAILED_ROUND)
    with court() as evm:
        assert evm.play(*sides(rounds, rounds.claims[found.claim])).match.winner is Side.CHALLENGER


def test_a_lost_stage_is_the_mean_of_its_neighbors(tmp_path: Path) -> None:
    rounds = recovered(tmp_path)
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    phases = rounds.plan.phases
    (entry,) = [
        e for e in rounds.claims.values() if phases[e.claim.phase].members == 2 and recovers(rounds, e.claim.phase)
    ]
    size = gpt_stages(CHECKFREE.shape, 3)[1].block_size
    left, right = (words.view(np.float32)[:size] for words in load_start(rounds, entry)[-2:])
    mean = load_end(rounds, entry)[0].view(np.float32)
    assert np.array_equal(mean, np.float32(0.5) * (left + right))
    spare = local_key(3).name
    assert {phases[e.claim.phase].name for e in rounds.claims.values() if e.worker == spare} == {
        forward(1),
        "backward 1",
        update(1),
    }


def test_another_recovery_is_found(tmp_path: Path) -> None:
    rounds = recovered(tmp_path, {0: NeighborCopier})
    assert not list(findings_by_roots(rounds))
    (found,) = findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    assert (found.lie, found.worker, found.round, found.phase) == (Lie.EXECUTION, local_key(0).name, 2, update(1))
    with court() as evm:
        assert evm.play(*sides(rounds, rounds.claims[found.claim])).match.winner is Side.CHALLENGER


def recovers(rounds: LoggedRounds, phase: int) -> bool:
    return rounds.plan.phases[phase].name == update(1)
