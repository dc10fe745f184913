"""A party whose executions are too large to stay in memory between two moves, on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_market import EXACT, Seer, honest, not_drawn, play
from role_market import Town

from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.roles.party import replaying_party
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.storage.kept_store import KeptStore


def test_it_defends_its_log_with_what_the_disk_remembers(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = honest(town, EXACT)
    seer = town.join(Seer, "x")
    number = seer.baseless(task_id, next(iter(not_drawn(seer, task_id))))
    monkeypatch.setattr(replaying_party, "RESTING_BYTES", 0)
    solver = town.join(Solver, "t", evidence=tmp_path / "t")
    held = list[int]()
    execute = solver.execute

    def counted(task_id: bytes, segment: int) -> object:
        held.append(len(solver._traces))
        return execute(task_id, segment)

    monkeypatch.setattr(solver, "execute", counted)
    play(solver, seer, (next_of_solver, next_of_whistleblower))
    assert seer.market.objection_game.winner(number) is Side.ASSERTER
    # Made anew for every move, and the first execution has noted all roots.
    assert len(held) > 1
    assert not any(held)
    (journal,) = (tmp_path / "t" / "executions" / task_id.hex()).iterdir()
    lines = (journal / "roots").read_text().split("\n")
    noted = [line for line in lines if line]
    assert len(noted) == len(set(noted)) == EXACT.interval + 1
    solver.release(task_id)
    assert not journal.exists()


def test_it_holds_what_its_disk_did_not_take(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = honest(town, EXACT)
    monkeypatch.setattr(replaying_party, "RESTING_BYTES", 0)
    solver = town.join(Solver, "t", evidence=tmp_path / "t")
    own = solver.store
    assert isinstance(own, KeptStore)

    def full(data: object) -> str:
        raise OperationalError("no space left")

    monkeypatch.setattr(own._own, "put", full)
    monkeypatch.setattr(own._own, "put_pieces", full)
    with solver.about(task_id):
        trace = solver.trace(task_id, 0)
    solver.rest()
    assert solver.trace(task_id, 0) is trace
