"""What goes wrong for a while, or with another task, costs no party its stake and no watcher its window."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from all_parties import Solver, Submitter, Verifier, Whistleblower, next_of_solver, next_of_verifier
from odd_tasks import Desk
from role_market import OFTEN, WATCHED, Town, awarded, captured, fill_disk, seated, seated_with_duty, submitted

from node_snapshots import order
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.decisions import Decision, Mode, Wait
from pol.roles.party.policy import PUBLIC_CHAIN
from pol.roles.process.obligations import at_stake, final_tasks
from pol.roles.process.party_process import LONGEST_REST, LONGEST_WAIT, DecisionResult, LoggedDecision, Process
from pol.roles.process.process_loop import LONGEST_BACKOFF, ProcessLoop
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import CorruptObjectError
from pol.training.task.published_task import held_bytes
from pol.training.task.task_document import TaskDocument

pytestmark = pytest.mark.long

MARKET_RULES, JOINED = OFTEN, WATCHED
POLL = 12.0


class Days:
    """A process of one task, on a clock that is turned by hand."""

    def __init__(self, role: Any, task_id: bytes, decide: Callable[[], Decision]) -> None:
        self.now, self.told = 0.0, list[LoggedDecision]()

        class Alone(Process[Any]):
            def tasks(self) -> list[bytes]:
                return [task_id]

        self.process = Alone(role, lambda *_: decide(), note=self.told.append, poll=POLL, clock=lambda: self.now)

    def pass_by(self, turns: int) -> list[float]:
        """When something was tried."""
        tried = []
        for _ in range(turns):
            if self.process.turn():
                tried.append(self.now)
            self.now += POLL
        return tried


# --- blocks that are replaced -----------------------------------------------------------------------------------------


def test_a_cancellation_that_is_undone_costs_no_profiler_its_seat(town: Town, tmp_path: Path) -> None:
    """Until the block that closes a task is final, its party looks again and keeps its evidence."""
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    task_id, submitter = submitted(town)
    seated(verifier, task_id)
    process = Process(verifier, next_of_verifier)
    with verifier.about(task_id):
        verifier.task(task_id)
    kept = {path.name for path in (tmp_path / "v" / "evidence").glob("??/*")}
    snapshot = order(town.connection, "evm_snapshot")
    submitter.market.registry.cancel(submitter.wallet, task_id)
    assert [taken.why for taken in process.turn() if taken.task_id == task_id] == ["the task is closed: cancelled"]
    assert {path.name for path in (tmp_path / "v" / "evidence").glob("??/*")} == kept
    order(town.connection, "evm_revert", snapshot)
    order(town.connection, "anvil_mine", hex(2))
    assert ("post the profile", DecisionResult.DONE) in [(taken.verb, taken.result) for taken in process.turn()]
    assert verifier.market.profiles.standing(task_id).is_posted


def test_what_is_closed_for_good_is_let_go(town: Town, tmp_path: Path) -> None:
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    task_id, submitter = submitted(town)
    with verifier.about(task_id):
        verifier.task(task_id)
    submitter.market.registry.cancel(submitter.wallet, task_id)
    process = Process(verifier, next_of_verifier)
    for _ in range(2):
        assert task_id in [taken.task_id for taken in process.turn()]
    assert task_id not in verifier._tasks  # what can be read again takes no memory meanwhile
    order(town.connection, "anvil_mine", hex(100))
    assert task_id in [taken.task_id for taken in process.turn()]
    assert task_id not in [taken.task_id for taken in process.turn()]
    assert PartyDatabase(tmp_path / "v").rows("SELECT * FROM evidence") == []


def test_a_node_that_does_not_say_what_is_final(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    submitter = town.join(Submitter, "s")
    task_id, _ = submitted(town)
    monkeypatch.setattr(Connection, "finalized", lambda self: None)
    assert final_tasks(submitter, [task_id]) == set()
    town.connection.wait_until(town.connection.now() + 25 * 3600)
    assert final_tasks(submitter, [task_id]) == {task_id}


# --- rests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        (OperationalError("no store"), LONGEST_WAIT),
        (CorruptObjectError("wrong bytes"), LONGEST_WAIT),
        (ProtocolError("bad evidence"), LONGEST_REST),
        (ZeroDivisionError(), LONGEST_REST),
    ],
    ids=lambda value: type(value).__name__,
)
def test_trouble_is_put_off_for_a_bounded_time(proven: bytes, town: Town, error: Exception, longest: float) -> None:
    def decide() -> Decision:
        raise error

    days = Days(town.join(Submitter, "stranger"), proven, decide)
    tried = list[float]()
    for _ in range(14):
        tried += days.pass_by(1)
        days.now = days.process._work[proven].rests_until
    waits = [after - before for before, after in itertools.pairwise(tried)]
    assert waits[:3] == [2 * POLL, 4 * POLL, 8 * POLL]
    assert max(waits) == longest
    failed = isinstance(error, OperationalError | CorruptObjectError)
    assert {taken.result for taken in days.told} == {DecisionResult.FAILED if failed else DecisionResult.BROKEN}


def test_a_success_ends_the_trouble(proven: bytes, town: Town) -> None:
    answers = iter([ProtocolError("bad"), ProtocolError("bad"), None, ProtocolError("bad"), ProtocolError("bad")])

    def decide() -> Decision:
        answer = next(answers)
        if answer is not None:
            raise answer
        return Wait(proven, "all is well")

    days = Days(town.join(Submitter, "stranger"), proven, decide)
    assert days.pass_by(13) == [0, 2 * POLL, 6 * POLL, 7 * POLL, 9 * POLL]


def test_a_rest_ends_when_something_is_due_and_when_the_task_goes_on(proven: bytes, town: Town) -> None:
    stranger, calm = town.join(Submitter, "stranger"), [True]
    until = town.connection.now() + 99

    def decide() -> Decision:
        if calm:
            return Wait(proven, "there is something later", until)
        raise ProtocolError("bad")

    days = Days(stranger, proven, decide)
    days.pass_by(1)
    calm.clear()
    # 100 s after the first look something is due: as long as that isn't looked at, every turn tries.
    assert days.pass_by(10) == [POLL * n for n in (1, 3, 7, 9, 10)]
    days = Days(stranger, proven, decide)
    assert days.pass_by(4) == [0, 2 * POLL]
    seated(town.join(Verifier, "v"), proven)
    assert days.pass_by(1) == [4 * POLL]


@pytest.mark.parametrize("error", [OperationalError("no store"), ProtocolError("bad"), KeyError("x")], ids=repr)
def test_what_a_party_has_at_stake_is_never_put_off(proven: bytes, town: Town, error: Exception) -> None:
    def decide() -> Decision:
        raise error

    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    assert not at_stake(watcher, proven)
    for role in (town.join(Solver, "t"), town.join(Submitter, "s")):
        assert Days(role, proven, decide).pass_by(5) == [POLL * n for n in range(5)]
    assert not at_stake(verifier, proven)
    verifier.claim_seat(proven)
    assert at_stake(verifier, proven)
    verifier.take_seat(proven)
    assert Days(verifier, proven, decide).pass_by(5) == [POLL * n for n in range(5)]
    verifier.verify(proven)
    # Its ticket may be drawn.
    assert Days(watcher, proven, decide).pass_by(5) == [POLL * n for n in range(5)]


def test_a_bid_is_at_stake(town: Town) -> None:
    desk, solver = Desk(town), town.join(Solver, "t")
    task_id = desk.submit(desk.edited(lambda document: document.update(model="x"), exact=True))
    assert not at_stake(solver, task_id)
    solver.bid(task_id)
    assert at_stake(solver, task_id)


def test_a_watcher_reads_the_right_proof_once_it_is_there(proven: bytes, town: Town) -> None:
    """A solver serves something else at first, so that watchers give up on its task."""
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    seated(verifier, proven)
    verifier.verify(proven)
    verifier.open_watch(proven)
    assert watcher.watched(proven)
    watcher.connection.wait_until(watcher.connection.now())
    digest = bytes(watcher.market.proofs.events("ProofCommitted", taskId=proven)[-1]["proofDigest"]).hex()
    right = town.file(digest).read_bytes()
    town.file(digest).write_bytes(b"{}")
    process = Process(watcher, next_of_whistleblower, poll=POLL, clock=lambda: 0.0)
    for _ in range(9):
        assert [taken.result for taken in process.turn()] == [DecisionResult.FAILED]
    town.file(digest).write_bytes(right)
    assert [taken.result for taken in process.turn()] == [DecisionResult.WAITED]


# --- other tasks ------------------------------------------------------------------------------------------------------


def test_a_watcher_commits_though_another_task_has_lost_its_files(proven: bytes, town: Town, tmp_path: Path) -> None:
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    desk = Desk(town)
    terms = desk.edited(lambda document: document.update(model="hostile"), exact=True)
    hostile = desk.submit(terms)
    awarded(solver, hostile)
    solver.train(hostile)
    seated(verifier, hostile)
    verifier.verify(hostile)
    seated_with_duty(verifier, proven, forced=True)
    verifier.verify(proven)
    town.file(terms.document.hex()).unlink()
    verifier.open_watch(hostile)
    verifier.open_watch(proven)
    until = watcher.market.verdicts.verdict(proven).watch_until
    began = watcher.connection.now()
    process = Process(watcher, next_of_whistleblower, poll=POLL, clock=lambda: float(watcher.connection.now() - began))
    running = ProcessLoop(process, POLL, print, lambda seconds: False)
    watcher.connection.wait_until(until - 400)
    while watcher.connection.now() <= until:
        pause = running.turn()
        assert pause <= POLL
        watcher.connection.wait_until(watcher.connection.now() + int(pause))
    assert running.failures == 0
    assert watcher.market.jackpot.events("Watched", taskId=proven, account=watcher.wallet.address)


@pytest.mark.parametrize(
    ("kind", "decide"), [(Solver, next_of_solver), (Verifier, next_of_verifier), (Whistleblower, next_of_whistleblower)]
)
def test_a_task_that_cannot_be_read_slows_nobody(town: Town, kind: Any, decide: Any, tmp_path: Path) -> None:
    desk = Desk(town)
    terms = desk.edited(lambda document: document.update(model="gone"), exact=True)
    town.file(terms.document.hex()).unlink()
    desk.submit(terms)
    running = ProcessLoop(
        Process(town.join(kind, "new", evidence=tmp_path), decide), POLL, print, lambda seconds: False
    )
    assert {running.turn() for _ in range(4)} <= {0, POLL}
    assert running.failures == 0


def test_nobody_sleeps_past_what_is_due(proven: bytes, town: Town) -> None:
    """A long poll, and a node that is gone meanwhile."""
    gone: list[bool] = []
    days = Days(town.join(Submitter, "stranger"), proven, lambda: Wait(proven, "later", town.connection.now() + 99))
    turn = days.process.turn

    def failing() -> list[LoggedDecision]:
        if gone:
            raise OperationalError("no node")
        return turn()

    days.process.turn = failing  # type: ignore[method-assign]
    running = ProcessLoop(days.process, 300, print, lambda seconds: False, chance=lambda: 1.0)
    assert running.turn() == 100
    running.poll = POLL
    gone.append(True)
    assert [running.turn() for _ in range(4)] == [24, 48, 96, 100]
    days.now = 60
    assert running.turn() == 40
    days.now = 200
    assert running.turn() == POLL
    gone.clear()
    assert running.turn() == POLL
    assert LONGEST_BACKOFF > 100


def test_a_disk_that_a_hostile_task_fills_keeps_nobody_from_its_verdict(
    proven: bytes, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    seated_with_duty(verifier, proven, forced=False)
    fill_disk(verifier.store, monkeypatch)
    desk = Desk(town)
    desk.submit(desk.replaced("program", b"\0" * 2_000_000))
    process = Process(verifier, next_of_verifier, Mode.PROPOSE)
    (posted,) = [taken for taken in process.turn() if taken.task_id == proven]
    assert (posted.verb, posted.result) == ("post the verdict", DecisionResult.DONE)
    assert "No space left on device" in posted.detail
    assert verifier.market.registry.task(proven).status is Status.WATCHED


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_task_that_is_too_large_is_refused_before_it_is_read(proven: bytes, town: Town, tmp_path: Path) -> None:
    small = replace(PUBLIC_CHAIN, max_task_bytes=1000)
    verifier = town.join(Verifier, "v", policy=small, evidence=tmp_path / "v")
    with pytest.raises(ProtocolError, match=r"\d+ bytes, and 1000 are admitted: leave it alone"):
        verifier.task(proven)
    document = TaskDocument.decode(verifier.store.get(verifier.market.registry.terms(proven).document.hex()))
    assert not list((tmp_path / "v" / "evidence").glob(f"??/{document.constants}"))


def test_tasks_in_memory_have_a_bound(town: Town) -> None:
    first, second, third = (submitted(town)[0] for _ in range(3))
    size = held_bytes(captured().program)
    solver = town.join(Solver, "t", policy=replace(PUBLIC_CHAIN, max_task_bytes=size))
    for task_id in (first, second, first, third):
        solver.task(task_id)
        solver.second_looks(task_id), solver.profile_evidence(task_id)
    assert list(solver._tasks) == [first, third]
    assert sorted(solver._second_looks) == sorted(solver._profile_evidence) == sorted([first, third])
