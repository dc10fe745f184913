"""kill -9 at drawn moments and a full disk: real processes, a real disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from killed_recorders import ENOUGH

PROGRAM = Path(__file__).parent / "killed_recorders.py"


def run(folder: Path, kills: int, seed: int) -> dict[str, dict[str, int]]:
    command = [sys.executable, str(PROGRAM), str(folder), str(kills), str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


@pytest.mark.long
def test_killed_and_resumed(tmp_path: Path) -> None:
    """After each kill the record is whole and only grows; the run ends with the root that it would have had."""
    found = run(tmp_path, 30, 1)
    assert found["killed"]["kills"] >= 30
    assert found["killed"]["with_temporary_files"] >= ENOUGH
    assert found["killed"]["checkpoints"] == 5
    assert found["full"]["errors"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_killed_and_resumed_often(tmp_path: Path, seed: int) -> None:
    assert run(tmp_path, 200, seed)["killed"]["kills"] >= 200
