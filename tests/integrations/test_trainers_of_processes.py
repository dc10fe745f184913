"""Trainers of other packages on two processes: killed by SIGKILL and resumed, they end with the same complete roots."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ended_process import ran

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent


def doctor(folder: Path, *program: str) -> dict[str, Any]:
    """What `pol doctor` finds. The text of torchtitan is endless: it has no epoch to be seen."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    epochs = ["--one-epoch"] if program[0] == "titan_ranks.py" else []
    options = ["doctor", "--steps", "12", *epochs, "--json", "--keep", str(folder), "--"]
    done = ran(
        [str(BIN / "pol"), *options, *torchrun, str(HERE / program[0]), *program[1:]],
        code=None,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    assert (done.returncode, found.get("verdict")) == (0, "exact"), done.stdout + done.stderr
    return found


# Each imports its packages many times: here is the one with the fewest, and tests/cli/test_doctor_ranks.py has our own.
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(["accelerate_ranks.py", "ddp"], marks=pytest.mark.slow),
        pytest.param(["accelerate_ranks.py", "fsdp2"], marks=pytest.mark.slow),
        pytest.param(["transformers_ranks.py", "ddp"], marks=pytest.mark.slow),
        pytest.param(["transformers_ranks.py", "fsdp2"], marks=pytest.mark.slow),
        pytest.param(["transformers_ranks.py", "unseeded"], marks=pytest.mark.slow),
        pytest.param(["lightning_ranks.py"], marks=pytest.mark.slow),
        ["titan_ranks.py"],
    ],
    ids="-".join,
)
def test_a_killed_training_ends_with_the_same_roots(tmp_path: Path, program: list[str]) -> None:
    """One record of both processes; the store in the program's arguments isn't used."""
    if program[0] == "titan_ranks.py":
        for package in ("torchdata", "torchtitan", "triton"):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} isn't installed: .ci/setup --slow")
    found = doctor(tmp_path, *program, "memory://unused")
    assert found["advice"] == []
    assert [path.name for path in (tmp_path / "cut" / "store").iterdir()] == ["rank0"]
