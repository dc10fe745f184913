"""Parties publish the trace that they open, and show the first lie in those of others, on a real node."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
from pol.training.storage.store import OpenFile, Store

pytestmark = pytest.mark.long

BOTH = (next_of_solver, next_of_whistleblower)


def objected(town: Town) -> tuple[DisputeRecord, Side]:
    """The whole dispute about a true segment, between two processes."""
    task_id = honest(town, EXACT)
    seer = town.join(Seer, "x")
    number = seer.baseless(task_id, next(iter(not_drawn(seer, task_id))))
    play(town.join(Solver, "t"), seer, BOTH)
    game = seer.market.objection_game
    return game.record(number, seer.task(task_id).program), game.winner(number)


def clear(town: Town) -> None:
    """Nothing that was published is there any more."""
    for file in town.folder.glob("??/*.*"):
        if file.suffix in {".trace", ".leaves"}:
            file.unlink()


def test_a_lie_is_shown_in_the_published_trace(town: Town) -> None:
    record, winner = objected(town)
    assert winner is Side.ASSERTER
    shows = [(position, move) for position, move, _ in record.walk() if isinstance(move, Show)]
    assert len(shows) == 1
    # Anybody can check it: its name is the root that it hashes to.
    ((position, move),) = shows
    with Store(town.store_url).open_file(f"{position.opening.hex()}.trace") as file:
        joined = file.read()
    row = [joined[at : at + HASH] for at in range(0, len(joined), HASH)]
    assert tree(row) == position.opening
    assert row[move.node] == move.root


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


def a_row(store: Store) -> tuple[list[bytes], bytes]:
    row = [bytes([number]) * HASH for number in range(5)]
    store.put_file(f"{tree(row).hex()}.trace", [b"".join(row)])
    return row, tree(row)


@pytest.mark.parametrize("damage", ["cut", "changed", "longer"])
def test_rows_that_do_not_hash_to_the_trace_are_left_alone(tmp_path: Path, damage: str) -> None:
    row = [bytes([number]) * HASH for number in range(5)]
    joined = {"cut": b"".join(row[:4]), "changed": b"".join(row[::-1]), "longer": b"".join([*row, row[0]])}[damage]
    store = Store(f"file://{tmp_path}")
    store.put_file(f"{tree(row).hex()}.trace", [joined])
    traces = TracePublications(store)
    assert traces.row(tree(row), len(row)) is None
    assert TracePublications(Store(f"file://{tmp_path}")).row(b"\1" * 32, 5) is None


def test_a_row_is_asked_for_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(f"file://{tmp_path}")
    traces = TracePublications(store)
    row = [bytes([number]) * HASH for number in range(5)]
    assert traces.row(tree(row), 5) is None
    assert not caplog.records, "nobody has to publish a trace"
    a_row(store)
    assert traces.row(tree(row), 5) is None
    assert TracePublications(store).row(tree(row), 5) == row


def test_a_store_that_does_not_answer_gets_seconds_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A clock runs: the move is made as if nothing were published, and only one thread waits."""
    store = Store(f"file://{tmp_path}")
    row, trace = a_row(store)
    answers = threading.Event()
    opened = Store.open_file

    @contextmanager
    def slow(self: Store, name: str) -> Iterator[OpenFile]:
        answers.wait()
        with opened(self, name) as file:
            yield file

    monkeypatch.setattr(Store, "open_file", slow)
    traces, before = TracePublications(store, patience=0.05), threading.active_count()
    try:
        for number in range(3):
            assert traces.row(trace[:-1] + bytes([number]), len(row)) is None
        assert threading.active_count() <= before + 1
        assert "the store took more than" in caplog.text
        assert "hasn't answered yet" in caplog.text
    finally:
        answers.set()


@pytest.mark.parametrize("error", [OSError("input/output error"), OperationalError("no such host")])
def test_a_store_that_fails_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store = Store(f"file://{tmp_path}")
    row, trace = a_row(store)

    def broken(self: Store, name: str) -> OpenFile:
        raise error

    monkeypatch.setattr(Store, "open_file", broken)
    assert TracePublications(store).row(trace, len(row)) is None
