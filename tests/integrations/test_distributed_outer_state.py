"""DiLoCo on loopback, killed and resumed: weights that go apart, outer optimizer, residuals and counters come back."""

import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from forked_programs import PROCESSES
from pol.commitments.complete_state import complete_root
from pol.training.record import newest_checkpoint
from pol.training.record.recorded_run import open_run
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parent / "diloco_ranks.py"


def run(folder: Path, kind: str, count: int, kill: int = 0, width: int = 40) -> list[dict[str, Any]]:
    """What each process found; nothing if it was killed."""
    processes = [
        PROCESSES.Process(target=program, args=(rank, count, str(folder), kind, str(kill), str(width)))
        for rank in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    expected = -signal.SIGKILL if kill else 0
    assert [process.exitcode for process in processes] == [expected] * count
    return [] if kill else [json.loads((folder / f"{kind}.{rank}.json").read_text()) for rank in range(count)]


def program(rank: int, count: int, *arguments: str) -> None:
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(count)})
    sys.argv = [str(SCRIPT), *arguments]
    runpy.run_path(str(SCRIPT), run_name="__main__")


def killed_and_resumed(folder: Path, kind: str, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results of an uninterrupted run, and of one that was killed in the middle of a round."""
    for name in ("whole", "cut"):
        (folder / name).mkdir()
    whole = run(folder / "whole", kind, count)
    run(folder / "cut", kind, count, kill=7)
    return whole, run(folder / "cut", kind, count)


@pytest.mark.parametrize("count", [2, 4])
def test_workers_that_go_apart_are_resumed_exactly(tmp_path: Path, count: int) -> None:
    whole, resumed = killed_and_resumed(tmp_path, "apart", count)
    assert resumed[0]["roots"] == whole[0]["roots"]
    assert list(whole[0]["roots"]) == ["0", "3", "6", "9", "12"]
    found = newest_checkpoint.load_newest_checkpoint(Store(resumed[0]["store"]))
    assert found is not None
    first, second = (ranks["0.weight"] for ranks in found.components["parameters"]["ranks"][:2])
    assert first.equal(second)  # a round has just ended
    one, other = (ranks["state"]["values"][0] for ranks in found.components["residual"]["ranks"][:2])
    assert not one.equal(other)
    assert found.components["rounds"]["state"] == {"done": 3}
    own = found.components["outer"]["own"]
    assert own["0"].equal(first)  # the weights at the beginning of the round


def test_workers_of_two_processes_are_resumed_exactly(tmp_path: Path) -> None:
    whole, resumed = killed_and_resumed(tmp_path, "sharded", 4)
    assert [found["roots"] for found in resumed] == [found["roots"] for found in whole]
    assert len({found["roots"]["12"] for found in whole}) == 2  # a record of each worker


def test_what_a_process_has_of_its_own_is_said_alike_in_every_run(tmp_path: Path) -> None:
    run(tmp_path, "refusals", 1)


def trained(saved: StoredCheckpoint) -> bytes:
    """The root over what doesn't belong to a process: weights, optimizers, residuals and counters."""
    apart = ("random", "cursor", "environment")
    return complete_root([entry for entry in saved.entries if entry.name.partition("/")[0] not in apart])


def test_a_sharded_state_has_the_root_of_the_whole_one_and_nothing_is_gathered(tmp_path: Path) -> None:
    """Both processes train on the same batches, so that the mean of two gradients is the gradient."""
    width = 300
    (single,) = run(tmp_path, "single", 1, width=width)
    sharded = run(tmp_path, "sharded", 2, width=width)
    one, other = (open_run(found["store"].removeprefix("file://")) for found in (single, sharded[0]))
    assert one.steps == other.steps == [0, 3, 6, 9, 12]
    for step in one.steps:
        a, b = (found.document(found.checkpoint(step)) for found in (one, other))
        assert trained(a) == trained(b), step
    names = {entry.name for entry in b.entries}
    assert {"outer/own/2", "outer/state/state/2/momentum_buffer", "residual/state/values/2"} <= names
    assert b.nbytes > 2_000_000
    assert max(found["exchanged"] for found in sharded) < 0.05 * b.nbytes, sharded
