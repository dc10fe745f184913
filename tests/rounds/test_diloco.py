"""DiLoCo with int8 messages on four processes: honest workers are never accused, its own lies are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.diloco_cheats import LYING_ROUND, Magnifier
from pol.decentralised.diloco import DiLoCo, diloco_plan, diloco_round
from pol.decentralised.processes.local_processes import Author, local_key, run_workers
from pol.demo.cheating_workers import Sandbagger
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.training.storage.store import Store

OPTIONS = DiLoCo(rounds=3, steps=5, seats=3, sizes=(3,))
LIAR = 1


def trained(folder: Path, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    store = Store(f"file://{folder}/store")
    plan = diloco_plan(store, OPTIONS, local_key(-1).name, bytes(32))
    run_workers(folder, plan, diloco_round, 3, cheats)
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)


def test_honest_workers(tmp_path: Path) -> None:
    rounds = trained(tmp_path)
    assert len(rounds.claims) == 3 * 3 * 3
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    merged = [entry.claim.end for entry in rounds.claims.values() if entry.claim.round == 2 and entry.claim.phase == 2]
    assert len(merged) == 3
    assert len(set(merged)) == 1


@pytest.mark.parametrize(("cheat", "phase"), [(Sandbagger, "local"), (Magnifier, "message")])
def test_lies_end_at_one_scalar(cheat: Author, phase: str, tmp_path: Path) -> None:
    rounds = trained(tmp_path, {LIAR: cheat})
    assert not list(findings_by_roots(rounds))
    (found,) = findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    assert (found.lie, found.worker, found.round, found.phase) == (
        Lie.EXECUTION,
        local_key(LIAR).name,
        LYING_ROUND,
        phase,
    )
    with court() as evm:
        played = evm.play(*sides(rounds, rounds.claims[found.claim]))
    assert played.match.winner is Side.CHALLENGER  # by its proof, or because the liar's proof refutes nothing
