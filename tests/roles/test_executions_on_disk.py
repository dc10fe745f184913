"""What a party's disk remembers of an execution: of the training that is judged, and only where it can be had again.

Parties publish the trace that they open, and show the first lie in those of others, on a real node.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from all_parties import Solver, Whistleblower, next_of_solver, next_of_whistleblower
from log_market import EXACT, Seer, honest, not_drawn, play
from role_market import Town, awarded, fill_disk

from pol.arithmetic.primitives import Words
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status
from pol.commitments.merkle import tree
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.moves import Show
from pol.dispute.play.honest_players import HASH, SumPlayer
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory, Seen
from pol.roles.party import replaying_party
from pol.roles.party.data_availability import demand_state, expire_demands
from pol.roles.party.trace_publications import TracePublications
from pol.training.storage.atomic_files import Pieces
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import OpenFile, Store
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.verification.replay.canonical_replay import replay_end

pytestmark = pytest.mark.long


def trained_elsewhere(solver: Solver, task_id: bytes) -> None:
    """Another training of the same task, from segment 1 on canonical and from zeros."""
    task = solver.task(task_id)
    recorder, zeros = TaskRecorder(solver.store, task), [0 * words for words in task.initial_state]
    recorder(0, task.initial_state)
    recorder(1, zeros)
    executor, interval = CpuExecutor(task.program, task.constants), task.document.interval
    recorder(2, [*replay_end(task.program, executor, zeros, interval, interval)])
    solver.commit(task_id, recorder.publish({})[0])


@pytest.mark.parametrize("restarts", [False, True])
def test_an_execution_of_the_training_before_decides_nothing(
    proven: bytes, town: Town, tmp_path: Path, restarts: bool
) -> None:
    """A solver withholds its data, and loses the task to another one, which goes another way."""
    watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    first = watcher.task(proven).document.interval
    before = watcher.trace(proven, 1).state_root(first)
    demand, market = demand_state(watcher, proven, 1), watcher.market
    town.connection.wait_until(demand.deadline)
    assert expire_demands(watcher, proven) == [demand]
    assert market.registry.task(proven).status is Status.BIDDING
    solver = town.join(Solver, "u")
    awarded(solver, proven)
    trained_elsewhere(solver, proven)
    if restarts:
        watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    (_, entry, end) = watcher.proof(proven).checkpoints
    trace = watcher.trace(proven, 1)
    assert trace.state_root(first) == entry.state_root != before
    assert trace.state_root(2 * first) == end.state_root


def test_what_the_disk_has_refused_stays_in_memory(
    proven: bytes, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solver's file may vanish between two moves."""
    watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    monkeypatch.setattr(replaying_party, "RESTING_BYTES", 0)
    fill_disk(watcher.store, monkeypatch)
    with watcher.about(proven):
        trace = watcher.trace(proven, 1)
    watcher.rest()
    with watcher.about(proven):
        assert watcher.trace(proven, 1) is trace
    monkeypatch.undo()


class Counting(Whistleblower):
    """Counts the steps of its executions."""

    steps = 0

    def replayer(self, task: LoadedTask, opinion: int) -> ExecutorFactory:
        party = self

        class Counted(CpuExecutor):
            def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
                party.steps += 1
                return super().watch(state, step, seen)

        return Counted


def test_the_end_of_a_segment_is_remembered_for_a_dispute_about_its_distance(
    proven: bytes, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each move looks at it, and not at the steps before."""
    watcher = town.join(Counting, "w", evidence=tmp_path / "w")
    monkeypatch.setattr(replaying_party, "RESTING_BYTES", 0)
    claim, charge = watcher.own_claim(proven, 1), ClaimCharge(0, ClaimChargeKind.DISTANCE, 1)
    assert claim is not None
    for _ in range(3):
        with watcher.about(proven):
            player = watcher.player(proven, claim, charge)
        assert isinstance(player, SumPlayer)
        assert player.sums.total() == claim.distances[0]
        watcher.rest()
    assert watcher.steps == watcher.task(proven).document.interval


def test_what_the_disk_remembers_is_let_go(
    proven: bytes, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    monkeypatch.setattr(replaying_party, "RESTING_BYTES", 0)
    with watcher.about(proven):
        trace = watcher.trace(proven, 1)
    watcher.rest()
    with watcher.about(proven):
        assert watcher.trace(proven, 1) is not trace


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
    database = PartyDatabase(tmp_path / "t")
    assert database.rows("SELECT count(*) FROM executions WHERE what = 'states'") == [(EXACT.interval + 1,)]
    assert list((tmp_path / "t" / "executions" / task_id.hex()).iterdir())
    solver.release(task_id)
    assert database.rows("SELECT * FROM executions") == []
    assert not (tmp_path / "t" / "executions" / task_id.hex()).exists()


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
    assert TracePublications(store).row(tree(row), len(row)) is None
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
