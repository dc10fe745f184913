"""NoLoCo on real processes: partners are drawn; who chooses one is found by roots alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.rounds.noloco_cheats import LYING_ROUND, Loner, with_chosen_partners
from pol.decentralised.noloco import NoLoCo, noloco_plan, noloco_round, with_drawn_partners
from pol.decentralised.parts.small_gpt import Shape
from pol.decentralised.processes.local_processes import Author, local_key, run_workers
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

Train = Callable[..., LoggedRounds]
SEATS = 3


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RoundsPlan]:
    """A store with the plan, captured once."""
    folder = tmp_path_factory.mktemp("captured")
    options = NoLoCo(rounds=3, steps=3, seats=SEATS, shape=Shape(layers=1, width=16, heads=2, length=8))
    return folder, noloco_plan(Store(f"file://{folder}"), options, local_key(-1).name, bytes(32))


@pytest.fixture
def train(captured: tuple[Path, RoundsPlan], tmp_path: Path) -> Train:
    def trained(
        cheats: dict[int, Author] | None = None, wired: Callable[[Roster], Roster] = with_drawn_partners
    ) -> LoggedRounds:
        shutil.copytree(captured[0], tmp_path / "store")
        run_workers(tmp_path, captured[1], noloco_round, SEATS, cheats, wired)
        store = Store(f"file://{tmp_path}/store")
        plan, head = load_head(store)
        require_whole(store, head)
        return read_rounds(store, plan, head)

    return trained


def test_honest_workers(train: Train) -> None:
    rounds = train()
    assert len(rounds.claims) == 3 * 3 * SEATS
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    assert len({roster.partners for (roster,) in rounds.rosters.values()}) > 1


def test_chosen_partners(train: Train) -> None:
    rounds = train({1: Loner}, with_chosen_partners)
    (roster,) = rounds.rosters[LYING_ROUND]
    assert roster.partners[1] != 1
    found = {(one.lie, one.worker, one.round) for one in findings_by_roots(rounds)}
    coordinator, loner = local_key(-1).name, local_key(1).name
    assert found == {(Lie.ROSTER, coordinator, LYING_ROUND), (Lie.SOURCE, loner, LYING_ROUND)}
