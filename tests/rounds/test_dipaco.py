"""DiPaCo on four processes: what is routed, trained and merged is what was signed; three lies about a shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.dipaco_cheats import EasierShard, FalseRouting, OwnShard
from lab.rounds.pipeline_runs import trained
from pol.decentralised.dipaco import PATHS, SHARD, DiPaCo, dipaco_plan, dipaco_round, local, merge, path_roster
from pol.decentralised.processes.local_processes import local_key
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

OPTIONS = DiPaCo(rounds=2, steps=3, batch=4, rows=64)


def plan_of(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return dipaco_plan(store, OPTIONS, coordinator, nonce)


def test_honest_paths(tmp_path: Path) -> None:
    rounds = trained(tmp_path, plan_of, dipaco_round, PATHS, path_roster)
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    shards = [
        set(load_end(rounds, entry)[1].tolist())
        for entry in rounds.claims.values()
        if rounds.plan.phases[entry.claim.phase].name == SHARD and entry.claim.round == 0
    ]
    assert all(shards)
    assert sorted(row for shard in shards for row in shard) == list(range(OPTIONS.rows))  # each document has one path
    merged = [entry for entry in rounds.claims.values() if rounds.plan.phases[entry.claim.phase].name == merge("a", 0)]
    assert {entry.worker for entry in merged} == {local_key(0).name, local_key(1).name}
    for round_ in range(OPTIONS.rounds):
        assert len({entry.claim.end for entry in merged if entry.claim.round == round_}) == 1


def test_lies_about_a_shard(tmp_path: Path) -> None:
    cheats = {1: EasierShard, 2: FalseRouting, 3: OwnShard}
    rounds = trained(tmp_path, plan_of, dipaco_round, PATHS, path_roster, cheats)
    (by_roots,) = findings_by_roots(rounds)
    assert (by_roots.lie, by_roots.worker, by_roots.phase) == (Lie.SOURCE, local_key(3).name, local(3))
    honest = [entry for entry in rounds.claims.values() if entry.claim.digest != by_roots.claim]
    found = {finding.worker: finding for finding in findings_by_replay(rounds, honest, CpuExecutor)}
    told = {worker: (finding.lie, finding.round, finding.phase) for worker, finding in found.items()}
    assert told == {
        local_key(1).name: (Lie.EXECUTION, 1, local(1)),
        local_key(2).name: (Lie.EXECUTION, 1, SHARD),
    }
    rows = load_end(rounds, rounds.claims[found[local_key(2).name].claim])[1]
    assert len(np.unique(rows)) == 1
    with court() as evm:
        for finding in found.values():
            assert evm.play(*sides(rounds, rounds.claims[finding.claim])).match.winner is Side.CHALLENGER
