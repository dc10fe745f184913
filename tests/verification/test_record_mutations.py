"""An auditor of a task's record notices each change of its own checkpoints, or lists it as not compared."""

import json
from pathlib import Path

import pytest

from cli_runner import Said, pol
from lab.benchmarks.record_mutations import INTERVAL, STEPS, accepted_by, changes, missed, recorded
from pol.training.record.learning_record import load_record
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage.store import Store

CHOSEN = (
    *(f"parameters/3.weight: {what}" for what in ("value", "type")),
    *("optimizer/state/state/4/exp_avg: absence", "optimizer/state/state/4/step: value", "parameters: all renamed"),
    *("cursor: absence", "optimizer/value/dict/0/1/0/0", "record: interval", "record: absence"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    store = Store(f"file://{tmp_path_factory.mktemp('record')}")
    recorded(store)
    return RecordedRun(store, load_record(store))


def test_a_change_of_what_the_task_defines_is_bad_evidence(run: RecordedRun) -> None:
    found = {where: accepted_by(where, forged, 4) for where, forged in changes(run, 4, CHOSEN)}
    assert {where: found.get(where) for where in CHOSEN} == {where: set() for where in CHOSEN}


def test_a_newest_checkpoint_that_names_no_task_is_bad_evidence(run: RecordedRun) -> None:
    forged = dict(changes(run, STEPS, ["task: absence"]))
    assert accepted_by("task: absence", forged["task: absence"], STEPS) == set()


def test_the_record_of_an_exact_training_says_so(tmp_path: Path) -> None:
    recorded(Store(f"file://{tmp_path}"), is_exact=True)
    found = json.loads(pol("verify", tmp_path, "--all", "--json").out)
    assert (found["outcome"], found["mode"]) == ("accepted", "exact")
    assert any("cursor, environment, exact, model, optimizer, random" in line for line in found["unchecked"])
    drawn = pol("verify", tmp_path, "--draws", "1", "--seed", "00" * 32)
    assert drawn == Said(0, match="of the record's own checkpoints: they end no replayed segment")
    assert pol("report", tmp_path, "--out", tmp_path / "page.html") == Said(0, match="accepted")


@pytest.mark.slow
@pytest.mark.parametrize("step", range(0, STEPS + 1, INTERVAL))
def test_every_change_is_noticed_or_listed(step: int) -> None:
    made, found = missed([step])
    assert made > 300
    assert found == []
