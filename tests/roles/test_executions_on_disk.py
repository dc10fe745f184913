"""What a party's disk remembers of an execution: of the training that is judged, and only where it can be had again."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from log_market import EXACT, Seer, honest, not_drawn, play
from role_market import Town, awarded, fill_disk

from pol.arithmetic.primitives import Words
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status
from pol.dispute.play.honest_players import SumPlayer
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory, Seen
from pol.roles.party import replaying_party
from pol.roles.party.data_availability import demand_state, expire_demands
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
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
    (journal,) = (tmp_path / "t" / "executions" / task_id.hex()).iterdir()
    lines = (journal / "roots").read_text().split("\n")
    noted = [line for line in lines if line]
    assert len(noted) == len(set(noted)) == EXACT.interval + 1
    solver.release(task_id)
    assert not journal.exists()
