"""Groups of processes of which one is killed in a round, and that are started again: nobody can be accused."""

import fcntl
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

import chosen_rows
from lab.rounds.killed_processes import BEGUN, JOURNALED, SHARED, DyingOnce, dying_round
from lab.rounds.tiny_training import COORDINATOR, key, tiny_plan
from pol.decentralised.decoupled import Decoupled, decoupled_plan, run_decoupled
from pol.decentralised.diloco import DiLoCo, diloco_plan, diloco_round
from pol.decentralised.pipelines.checkfree import THREE_BLOCKS, checkfree_plan, checkfree_round, spare_roster
from pol.decentralised.pipelines.oobleck import template_roster
from pol.decentralised.pipelines.pipeline import Pipeline, pipeline_plan, pipeline_round, staged_roster
from pol.decentralised.pipelines.pipeline_processes import require_there, run_pipeline
from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.local_processes import local_key, run_workers
from pol.decentralised.processes.round_worker import RoundWorker, first_round
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

DILOCO = DiLoCo(rounds=3, steps=2, seats=2, sizes=(2,))
PIPELINE = Pipeline(rounds=3, rows=64)
STAGES = partial(staged_roster, stages=2, parts=PIPELINE.parts)


Train = Callable[[Path, RoundsPlan, tuple[int, str] | None], None]
"""Trains in a folder whose store has the plan; a process may die."""


def train_by_diloco(folder: Path, plan: RoundsPlan, dies: tuple[int, str] | None) -> None:
    do_round = diloco_round if dies is None else partial(dying_round, diloco_round, str(folder / "dead"), *dies)
    run_workers(folder, plan, do_round, 2)


def train_by_pipeline(folder: Path, plan: RoundsPlan, dies: tuple[int, str] | None) -> None:
    do_round = pipeline_round if dies is None else partial(dying_round, pipeline_round, str(folder / "dead"), *dies)
    run_pipeline(folder, plan, do_round, 2, STAGES)


def log_of(folder: Path) -> bytes:
    """The root of the log, of a training that an audit accepts."""
    store = Store(f"file://{folder}/store")
    assert audit(store).outcome == "accepted"
    assert not list(findings_by_roots(open_rounds(store)))
    return load_head(store)[1].root


def require_same(train: Train, folder: Path, plan: RoundsPlan, deaths: Sequence[tuple[int, str]]) -> None:
    """A training goes on after each death, to the log of one without; the plan is made once, in ``folder/planned``."""
    copytree(folder / "planned", folder / "undisturbed")
    train(folder / "undisturbed", plan, None)
    root = log_of(folder / "undisturbed")
    for death in deaths:
        place = copytree(folder / "planned", folder / "-".join(map(str, death)))
        with pytest.raises(Exception, match=r"SIGKILL|has failed"):
            train(place, plan, death)
        train(place, plan, death)
        assert log_of(place) == root, death


@pytest.mark.long
@pytest.mark.parametrize("place", chosen_rows.first([JOURNALED, BEGUN], 1, others=pytest.mark.slow))
def test_a_group_that_is_started_again_goes_on(tmp_path: Path, place: str) -> None:
    plan = diloco_plan(Store(f"file://{tmp_path}/planned/store"), DILOCO, local_key(-1).name, bytes(32))
    require_same(train_by_diloco, tmp_path, plan, [(0, place)])
    train_by_diloco(tmp_path / "undisturbed", plan, None)  # it is done
    log_of(tmp_path / "undisturbed")


@pytest.mark.long
def test_a_pipeline_that_is_started_again_goes_on(tmp_path: Path) -> None:
    plan = pipeline_plan(Store(f"file://{tmp_path}/planned/store"), PIPELINE, local_key(-1).name, bytes(32))
    require_same(train_by_pipeline, tmp_path, plan, [(1, SHARED)])


@pytest.mark.long
def test_a_round_in_which_a_stage_changes_hands_goes_on(tmp_path: Path) -> None:
    """Worker 1 dies before it, and worker 3, who is to get a stage, in it: who holds that finds it in the log."""
    plan = pipeline_plan(Store(f"file://{tmp_path}/store"), PIPELINE, local_key(-1).name, bytes(32))
    rosters = partial(template_roster, parts=PIPELINE.parts)
    dying = partial(dying_round, pipeline_round, str(tmp_path / "dead"), 2, BEGUN)
    with pytest.raises(OperationalError, match="has failed"):
        run_pipeline(tmp_path, plan, dying, 4, rosters, killed={1: 1})
    assert first_round(Store(f"file://{tmp_path}/store"), plan, local_key(-1)) == 1
    run_pipeline(tmp_path, plan, pipeline_round, 4, rosters)
    log_of(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("round_", "rank"), [(1, 0), (2, 2)], ids=["recovered", "taken over"])
def test_a_round_in_which_a_lost_stage_is_recovered_goes_on(tmp_path: Path, round_: int, rank: int) -> None:
    """CheckFree: worker 1 dies with the middle stage; who recovers it, or the spare that takes it, dies as well."""
    options = Pipeline(rounds=3, parts=1, stages=3, rows=32, shape=THREE_BLOCKS)
    plan = checkfree_plan(Store(f"file://{tmp_path}/store"), options, local_key(-1).name, bytes(32))
    rosters = partial(spare_roster, parts=options.parts, lost=1)
    dying = partial(dying_round, checkfree_round, str(tmp_path / "dead"), rank, BEGUN, round_=round_)
    with pytest.raises(OperationalError, match="has failed"):
        run_pipeline(tmp_path, plan, dying, 4, rosters, killed={1: 1})
    assert first_round(Store(f"file://{tmp_path}/store"), plan, local_key(-1)) == round_
    run_pipeline(tmp_path, plan, checkfree_round, 4, rosters)
    log_of(tmp_path)


@pytest.mark.long
def test_asynchronous_workers_of_which_one_is_killed_go_on(tmp_path: Path) -> None:
    options = Decoupled(rounds=4, steps=2, seats=2, quorum=1)
    plan = decoupled_plan(Store(f"file://{tmp_path}/store"), options, local_key(-1).name, bytes(32))
    run_decoupled(tmp_path, plan, options, {1: DyingOnce, 2: DyingOnce})  # one message ends a round: either may do all
    assert Store(f"file://{tmp_path}/store").holds(DyingOnce.flag)
    log_of(tmp_path)


def worker(store: Store, plan: RoundsPlan, alone: Exchange) -> RoundWorker:
    return RoundWorker(ClaimAuthor(store, plan, key(0), CpuExecutor), alone, COORDINATOR)


def test_a_coordinator_signs_no_second_roster_of_a_round(tmp_path: Path, alone: Exchange) -> None:
    """It would cost it its stake."""
    store = Store(f"file://{tmp_path}")
    plan = tiny_plan(store)
    roster = Roster(plan.digest, 0, (Member(key(0).name, 0),))
    before = worker(store, plan, alone)
    assert before.begun(0) is None
    before.begin(roster)
    after = worker(store, plan, alone)
    assert first_round(store, plan, COORDINATOR) == 0
    assert after.begun(0) == roster
    with pytest.raises(ProtocolError, match="has signed another roster for round 0 before it was started again"):
        after.begin(Roster(plan.digest, 0, (Member(key(0).name, 1),)))
    newest = worker(store, plan, alone)
    newest.begin(roster)
    newest.finish()
    assert len([e for e in open_rounds(store).entries if isinstance(e, RosterEntry)]) == 1
    with pytest.raises(OperationalError, match="another coordinator was started"):
        before.begin(Roster(plan.digest, 1, (Member(key(0).name, 0),)))


def test_a_round_that_is_over_is_not_begun_again(tmp_path: Path, alone: Exchange) -> None:
    """Processes of your own that begin with round 0 again would have it sign second rosters."""
    store = Store(f"file://{tmp_path}")
    plan = tiny_plan(store)
    one = worker(store, plan, alone)
    for round_ in range(2):
        one.begin(Roster(plan.digest, round_, (Member(key(0).name, 0),)))
        one.finish()
    again = worker(store, plan, alone)
    with pytest.raises(ProtocolError, match="round 0 has begun before, and round 1 as well"):
        again.begin(Roster(plan.digest, 0, (Member(key(0).name, 1),)))


def test_a_log_without_its_journal_is_left_alone(tmp_path: Path, alone: Exchange) -> None:
    store = Store(f"file://{tmp_path}")
    plan = tiny_plan(store)
    one = worker(store, plan, alone)
    one.begin(Roster(plan.digest, 0, (Member(key(0).name, 0),)))
    one.finish()
    store.remove(f"keeper-{plan.digest.hex()}.json")
    for start in (lambda: worker(store, plan, alone), lambda: first_round(store, plan, COORDINATOR)):
        with pytest.raises(ProtocolError, match="has begun already"):
            start()


def test_a_pipeline_is_started_once(tmp_path: Path) -> None:
    plan = pipeline_plan(Store(f"file://{tmp_path}/store"), PIPELINE, local_key(-1).name, bytes(32))
    (tmp_path / "meeting").mkdir()
    with (tmp_path / "meeting" / "lock-1").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OperationalError, match="a worker of an earlier run still works"):
            run_pipeline(tmp_path, plan, pipeline_round, 2, STAGES)
    assert not list((tmp_path / "store").glob("start-*"))  # or the earlier run's coordinator would stop


def test_a_round_that_has_begun_waits_for_its_members() -> None:
    roster = Roster(bytes(32), 1, tuple(Member(local_key(number).name, number) for number in range(2)))
    require_there(roster, [0, 1])
    with pytest.raises(OperationalError, match=f"round 1 has begun with {local_key(1).name}"):
        require_there(roster, [0])
