"""Parties publish the trace that they open, and show the first lie in those of others, on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_market import EXACT, Seer, honest, not_drawn, play
from role_market import Town

from pol.commitments.merkle import tree
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.moves import Show
from pol.dispute.play.published_trace import HASH
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.roles.party.trace_publications import TracePublications
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.storage.atomic_files import Pieces
from pol.training.storage.kept_store import KeptStore
from pol.training.storage.store import Store

BOTH = (next_of_solver, next_of_whistleblower)


def objected(town: Town, evidence: Path | None = None) -> tuple[DisputeRecord, Side]:
    """The whole dispute about a true segment, between two processes."""
    task_id = honest(town, EXACT)
    seer = town.join(Seer, "x", evidence=evidence)
    number = seer.baseless(task_id, next(iter(not_drawn(seer, task_id))))
    play(town.join(Solver, "t", evidence=evidence and evidence.parent / "solver"), seer, BOTH)
    game = seer.market.objection_game
    return game.record(number, seer.task(task_id).program), game.winner(number)


def clear(town: Town) -> None:
    """Nothing that was published is there any more."""
    for file in Path(town.store_url.removeprefix("file://")).glob("??/*.*"):
        if file.suffix in {".trace", ".leaves"}:
            file.unlink()


def test_a_lie_is_shown_in_the_published_trace(town: Town, tmp_path: Path) -> None:
    record, winner = objected(town, tmp_path / "seer")
    assert winner is Side.ASSERTER
    shows = [(position, move) for position, move, _ in record.walk() if isinstance(move, Show)]
    assert len(shows) == 1
    # Both rows are objects that anybody can check: their names are the roots that they hash to.
    ((position, move),) = shows
    store = Store(town.store_url)
    with store.open_file(f"{position.opening.hex()}.trace") as file:
        joined = file.read()
    row = [joined[at : at + HASH] for at in range(0, len(joined), HASH)]
    assert tree(row) == position.opening
    assert row[move.node] == move.root
    # The side that has shown has its own copy.
    shower = tmp_path / ("solver" if position.turn is Side.ASSERTER else "seer")
    assert list(shower.glob(f"??/{position.opening.hex()}.trace"))


def test_without_publications_a_dispute_takes_more_moves(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, _ = objected(town)
    clear(town)
    monkeypatch.setattr(TracePublications, "publish", lambda self, trace, step: None)
    record, winner = objected(town)
    assert winner is Side.ASSERTER
    assert not any(isinstance(move, Show) for move in record.moves)
    assert len(record.moves) > len(shown.moves)


def test_a_store_that_takes_nothing_stops_no_move(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clear(town)

    def full(self: Store, name: str, pieces: Pieces) -> None:
        raise OperationalError("no space left")

    monkeypatch.setattr(Store, "put_file", full)
    record, winner = objected(town)
    assert winner is Side.ASSERTER
    assert record.moves
    assert "isn't published, so the dispute takes more moves: no space left" in caplog.text


def test_a_row_outlives_the_store_and_the_process(tmp_path: Path) -> None:
    row = [bytes([number]) * HASH for number in range(5)]
    shared, trace = Store(f"file://{tmp_path / 'shared'}"), tree(row)
    name = f"{trace.hex()}.trace"
    shared.put_file(name, [b"".join(row)])
    kept = KeptStore(shared.url, tmp_path / "own")
    with kept.about("aa"):
        assert TracePublications(kept).row(trace, len(row)) == row
    (tmp_path / "shared" / name[:2] / name).unlink()
    again = KeptStore(shared.url, tmp_path / "own")
    assert TracePublications(again).row(trace, len(row)) == row
    assert again.release("aa") == 1
    assert TracePublications(KeptStore(shared.url, tmp_path / "own")).row(trace, len(row)) is None


@pytest.mark.parametrize("damage", ["cut", "changed", "longer"])
def test_rows_that_do_not_hash_to_the_trace_are_left_alone(tmp_path: Path, damage: str) -> None:
    row = [bytes([number]) * HASH for number in range(5)]
    joined = {"cut": b"".join(row[:4]), "changed": b"".join(row[::-1]), "longer": b"".join([*row, row[0]])}[damage]
    shared = Store(f"file://{tmp_path / 'shared'}")
    shared.put_file(f"{tree(row).hex()}.trace", [joined])
    kept = KeptStore(shared.url, tmp_path / "own")
    assert TracePublications(kept).row(tree(row), len(row)) is None
    assert not list((tmp_path / "own").glob("??/*.trace"))


def test_a_row_that_cannot_be_kept_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof needs it: whoever shows and then loses the row loses the dispute."""
    row = [bytes([number]) * HASH for number in range(5)]
    shared = Store(f"file://{tmp_path / 'shared'}")
    shared.put_file(f"{tree(row).hex()}.trace", [b"".join(row)])
    kept = KeptStore(shared.url, tmp_path / "own")
    for path in (tmp_path / "own").iterdir():
        path.rmdir()
    (tmp_path / "own").rmdir()
    (tmp_path / "own").write_text("no folder")
    assert TracePublications(kept).row(tree(row), len(row)) is None
