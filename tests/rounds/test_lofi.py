"""lo-fi on real processes: one mean of whole fine-tunings; the base model and a copied one are found."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.lofi_cheats import BaseSender, Copycat
from pol.decentralised.lofi import LoFi, lofi_plan, lofi_round
from pol.decentralised.parts.small_gpt import Shape
from pol.decentralised.processes.local_processes import Author, local_key, run_workers
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.plan.source_rules import ClaimPlace
from pol.training.storage.store import Store


def trained(folder: Path, seats: int, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    options = LoFi(parts=2, steps=3, seats=seats, shape=Shape(layers=1, width=16, heads=2, length=8))
    store = Store(f"file://{folder}/store")
    plan = lofi_plan(store, options, local_key(-1).name, bytes(32))
    run_workers(folder, plan, partial(lofi_round, options), seats, cheats)
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)


def test_honest_workers(tmp_path: Path) -> None:
    rounds = trained(tmp_path, 2)
    assert len(rounds.claims) == 2 * 3
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    tuned = [load_end(rounds, rounds.places[ClaimPlace(local_key(number).name, 0, 0, 1)]) for number in range(2)]
    (mean,) = {
        tuple(words.tobytes() for words in load_end(rounds, entry).values())
        for entry in rounds.claims.values()
        if entry.claim.phase == 1
    }
    first, second = (found[0].view(np.float32) for found in tuned)
    assert mean[0] == ((first + second) * np.float32(0.5)).tobytes()


def test_lies_end_at_one_scalar(tmp_path: Path) -> None:
    rounds = trained(tmp_path, 3, {1: BaseSender, 2: Copycat})
    ends = {
        number: rounds.places[ClaimPlace(local_key(number).name, 0, 0, part)].claim
        for number in range(3)
        for part in (0, 1)
    }
    assert ends[1].end == ends[1].start
    assert ends[2].end == ends[0].end
    assert not list(findings_by_roots(rounds))
    found = list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    guilty = {local_key(1).name, local_key(2).name}
    assert {(one.lie, one.worker, one.phase) for one in found} == {(Lie.EXECUTION, name, "tuned") for name in guilty}
    assert len(found) == 4
    last = {one.worker: one.claim for one in found}
    with court() as evm:
        for claim in last.values():
            assert evm.play(*sides(rounds, rounds.claims[claim])).match.winner is Side.CHALLENGER
