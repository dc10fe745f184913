"""The journal of an execution: what a process that was killed knew about a disputed segment."""

import errno
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import toy_program
from dispute_harness import LoudTrace, dearest_lie, replay_claim
from lab.disputes.dispute_match import play
from pol.arithmetic.primitives import Words
from pol.commitments.program_hash import ProgramCommitment
from pol.dispute import dispute_needs
from pol.dispute.dispute_needs import DisputeNeeds, Speeds, dispute_seconds
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.position import Position, Side
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Seen
from pol.roles.party.execution_journal import HELD, SPARE, ExecutionJournal, forget_executions
from pol.training.storage.party_database import PartyDatabase

pytestmark = pytest.mark.rules

FIRST, STEPS, STEP = 3, 40, 31
TASK, START = bytes(range(32)), bytes(32)


def folder(party: Path) -> Path:
    """Where the states of the segment lie."""
    return party / "executions" / TASK.hex() / f"1-{START.hex()}"


class CountingExecutor(CpuExecutor):
    """Counts the steps that it watches."""

    steps = 0

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        self.steps += 1
        return super().watch(state, step, seen)


def begun(evidence: Path | None) -> tuple[SegmentTrace, CountingExecutor]:
    """An execution as a process begins it, which keeps no state in memory; with a journal if it has a disk."""
    program, constants, start = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    executor = CountingExecutor(program, constants)
    journal = None if evidence is None else ExecutionJournal(PartyDatabase(evidence), TASK, 1, START)
    about = (program, constants, executor, start, FIRST, STEPS, 0)
    return SegmentTrace(*about, load=toy_program.initial_state, journal=journal), executor


def asked(trace: SegmentTrace) -> list[object]:
    """The answers down to a node of the disputed step."""
    roots = [trace.state_root(step) for step in range(FIRST, FIRST + STEPS + 1)]
    return [*roots, *trace.node_roots(STEP), *trace.slot_roots(STEP + 1), trace.output_leaves(STEP, 2)]


def test_a_restart_executes_the_disputed_step_alone(tmp_path: Path) -> None:
    right = asked(begun(None)[0])
    assert asked(begun(tmp_path)[0]) == right
    again, executor = begun(tmp_path)
    assert asked(again) == right
    assert executor.steps <= 2  # for the state after it, and for what the node reads


class Forgetful:
    """A player whose memory is empty before each move, but not its disk; counts the steps of each."""

    def __init__(self, evidence: Path | None) -> None:
        self._evidence, self.steps = evidence, list[int]()

    def open(self, position: Position) -> bytes:
        trace, executor = begun(self._evidence)
        found = ReplayPlayer(trace).open(position)
        self.steps.append(executor.steps)
        return found

    def move(self, position: Position) -> Move:
        trace, executor = begun(self._evidence)
        try:
            return ReplayPlayer(trace).move(position)
        finally:
            self.steps.append(executor.steps)


@pytest.mark.parametrize("number", range(len(toy_program.build().nodes)))
@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_what_is_computed_again_is_counted_before_anything_is_staked(
    tmp_path: Path, number: int, side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, own = begun(None)[0], Forgetful(tmp_path)
    liar = LoudTrace(honest, replace(dearest_lie(honest, number, Random(1)), step=STEP))
    players: dict[Side, Player] = {side: own, side.other: ReplayPlayer(liar)}
    claim = replay_claim(honest, honest if side is Side.ASSERTER else liar)
    header = ProgramCommitment.of(honest.program).header
    assert play(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER]).winner is side
    monkeypatch.setattr(dispute_needs, "RESTING_BYTES", 0)
    needs = DisputeNeeds(honest.program, STEPS, kept_bytes=0)
    taken = dispute_seconds(needs, Speeds(1, math.inf, math.inf))
    assert sum(own.steps) <= taken.all
    assert sorted(own.steps)[-1] <= taken.at_trace
    # The first move, the one at the trace; the others are below it.
    assert sorted(own.steps)[-3] <= taken.later


def test_roots_are_noted_as_they_are_hashed(tmp_path: Path) -> None:
    killed, _ = begun(tmp_path)
    killed.state_root(STEP)
    again, executor = begun(tmp_path)
    again.state_root(STEP)
    assert executor.steps == 0


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "a folder", "a copy", "rows", "no rows"])
def test_a_damaged_disk_costs_time_only(tmp_path: Path, damage: str) -> None:
    right = asked(begun(tmp_path)[0])
    held, database = folder(tmp_path) / f"state.{STEP}", PartyDatabase(tmp_path)
    content = held.read_bytes()
    match damage:
        case "cut":
            held.write_bytes(content[:-5])
        case "flipped":
            held.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        case "gone":
            held.unlink()
        case "a folder":
            held.unlink()
            held.mkdir()
        case "a copy":
            held.rename(f"{held}.bak")
            (held.parent / "state.new").touch()
        case "rows":
            database.write(("UPDATE executions SET roots = zeroblob(length(roots)) WHERE step > ?", (STEP - 2,)))
        case "no rows":
            database.write(("DELETE FROM executions", ()))
    assert asked(begun(tmp_path)[0]) == right
    assert asked(begun(tmp_path)[0]) == right


def test_two_processes_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them removes just now stops the other nowhere."""
    begun(tmp_path)[0].node_roots(5)
    trace, _ = begun(tmp_path)
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda path, pattern: [path / "state.6", *glob(path, pattern)])
    assert trace.node_roots(7) == begun(None)[0].node_roots(7)


def test_what_a_killed_writer_has_left_is_removed(tmp_path: Path) -> None:
    begun(tmp_path)[0].node_roots(5)
    (folder(tmp_path) / f".{bytes(16).hex()}").write_bytes(b"half a state")
    begun(tmp_path)[0].node_roots(9)
    assert sorted(path.name for path in folder(tmp_path).iterdir()) == ["state.5", "state.9"]


def test_a_disk_that_takes_nothing_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "executions").write_text("no folder")
    PartyDatabase(tmp_path).write(("CREATE TABLE executions (other)", ()))
    assert asked(begun(tmp_path)[0]) == asked(begun(None)[0])
    assert "takes longer after a restart" in caplog.text
    trace, _ = begun(tmp_path)
    trace.node_roots(STEP)
    assert not trace.is_journaled


def test_a_disk_that_cannot_be_listed_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = asked(begun(tmp_path)[0])

    def broken(path: Path, pattern: str) -> list[Path]:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "glob", broken)
    trace, _ = begun(tmp_path)
    assert asked(trace) == right
    assert not trace.is_journaled


def test_a_disk_without_room_holds_no_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox and the evidence of other tasks are on the same disk."""
    trace, _ = begun(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=SPARE))
    trace.node_roots(STEP)
    assert f"only {SPARE} bytes are free" in caplog.text
    assert not trace.is_journaled
    monkeypatch.undo()
    trace.node_roots(STEP - 1)
    assert trace.is_journaled


def test_few_states_of_a_segment_are_held_and_none_of_a_task_that_is_over(tmp_path: Path) -> None:
    trace, _ = begun(tmp_path)
    journal = ExecutionJournal(PartyDatabase(tmp_path), TASK, 1, START)
    for step in (5, 9, 30, 7):
        trace.node_roots(step)
        assert step in journal.held()
        assert len(journal.held()) <= HELD
        state = journal.state(step, [slot.type for slot in trace.program.slots])
        assert state is not None
        assert all(map(np.array_equal, state, trace.state(step)))
    forget_executions(PartyDatabase(tmp_path), TASK)
    assert not journal.held()
    assert not journal.roots()
