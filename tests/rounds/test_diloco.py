"""DiLoCo with int8 messages on four processes: honest workers are never accused, its own lies are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import DiLoCo, diloco_plan, diloco_round
from pol.decentralised.local_processes import Author, local_key, run_workers
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.claim_replay import findings_by_replay
from pol.rounds.round_audit import Lie, LoggedRounds, findings_by_roots, read_rounds
from pol.rounds.rounds_log import load_head, require_whole
from pol.rounds.source_rules import ClaimPlace
from pol.training.storage.store import Store

OPTIONS = DiLoCo(rounds=3, steps=5, seats=3, sizes=(3,))
LIAR = 1


class Sandbagger(ClaimAuthor):
    """Does two of five steps, goes on in the same direction, and adds a little noise."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if self.plan.phases[place.phase].name != "local" or place.round != 1:
            return super().run(place, start, first_step, steps)
        end = super().run(place, start, first_step, 2)
        noise = np.random.default_rng(0)
        return [_extrapolated(before, after, steps / 2, noise) for before, after in zip(start, end, strict=True)]


class Magnifier(ClaimAuthor):
    """Sends ten times its pseudo-gradient."""

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if self.plan.phases[place.phase].name == "message" and place.round == 1:
            end[-1] = (end[-1].view(np.float32) * np.float32(10)).view(np.uint32)  # the scales
        return end


def _extrapolated(before: Words, after: Words, times: float, noise: np.random.Generator) -> Words:
    start, end = before.view(np.float32), after.view(np.float32)
    moved = start + (end - start) * np.float32(times)
    return (moved * (1 + 1e-3 * noise.standard_normal(moved.shape))).astype(np.float32).view(np.uint32)


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
    assert (found.lie, found.worker, found.round, found.phase) == (Lie.EXECUTION, local_key(LIAR).name, 1, phase)
    with court() as evm:
        played = evm.play(*sides(rounds, rounds.claims[found.claim]))
    assert played.match.winner is Side.CHALLENGER  # by its proof, or because the liar's proof refutes nothing
